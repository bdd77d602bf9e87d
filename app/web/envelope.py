"""The outermost layer: one pure ASGI class that every request passes.

It names the request, bounds its body, refuses what no call takes, and answers what
escaped everything else. Nothing here reads a body or keeps a header.
"""

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import telemetry
from app.errors import IdempotencyNotSupportedError, PayloadTooLargeError, StrongroomError
from app.web.errors import REQUEST_ID, framework_problem, problem, response_to

_REQUEST_ID_BYTES: Final = 12
_UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_TRACE_PARENT: Final = re.compile(rb"^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$")
TRACE_ID: Final = "strongroom.trace_id"
"""Key of the caller's W3C trace id in the ASGI scope; absent when none was sent."""
_HEADERS_MAX: Final = 64 * 1024
"""Bytes of all header names and values together."""

_SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"cache-control", b"private, no-cache"),
)


class Envelope:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, *, json_bytes_max: int, body_limits: Mapping[str, int]) -> None:
        """Wrap it.

        Args:
            app: What answers.
            json_bytes_max: Most bytes of a body, unless its path is named next.
            body_limits: Exact path to the most bytes of its body.
        """
        self._app = app
        self._json_bytes_max = json_bytes_max
        self._body_limits = body_limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_urlsafe(_REQUEST_ID_BYTES)
        scope[REQUEST_ID] = request_id
        id_header = (b"x-request-id", request_id.encode())
        has_begun = False

        async def answer(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                message["headers"] = [*message["headers"], id_header, *_SECURITY]
            await send(message)

        limit = self._body_limits.get(scope["path"], self._json_bytes_max)
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            if message["type"] == "http.request":
                taken += len(message.get("body", b""))
                if taken > limit:
                    raise PayloadTooLargeError
            return message

        try:
            self._judge_headers(scope, limit)
            await self._app(scope, bounded, answer)
        except StrongroomError as error:
            if has_begun:
                raise
            await response_to(error, request_id)(scope, receive, answer)
        except _MisreadError as error:
            await framework_problem(error.status, request_id)(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - the boundary of the process
            telemetry.unexpected(f"{scope['method']} {_template(scope)}", error)
            if has_begun:
                raise
            failure = problem(
                500, "internal_error", "Something went wrong here; it is on record.", request_id
            )
            await failure(scope, receive, answer)

    def _judge_headers(self, scope: Scope, limit: int) -> None:
        size = 0
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name == b"content-length" and (not value.isdigit() or int(value[:20]) > limit):
                raise PayloadTooLargeError
            if name == b"idempotency-key" and scope["method"] in _UNSAFE:
                raise IdempotencyNotSupportedError
            if name == b"traceparent" and (match := _TRACE_PARENT.match(value)):
                scope[TRACE_ID] = match[1].decode()
        if size > _HEADERS_MAX:
            raise _MisreadError(400)


class _MisreadError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


def _template(scope: Mapping[str, Any]) -> str:
    return str(getattr(scope.get("route"), "path", "unrouted"))
