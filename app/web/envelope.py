"""The outermost layer: one pure ASGI class that every request passes.

It names the request, bounds its body, refuses what no call takes, and answers what
escaped everything else. Nothing here reads a body or keeps a header.
"""

import asyncio
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import metrics, telemetry
from app.errors.inputs import PayloadTooLargeError
from app.errors.root import StrongroomError
from app.errors.stores import OverloadedError
from app.web import idempotency
from app.web.errors import CODE, REQUEST_ID, framework_problem, problem, response_to
from app.web.hot import HEADERS_MAX, Answer, HotPath

_REQUEST_ID_BYTES: Final = 12
_UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_TRACE_PARENT: Final = re.compile(
    rb"^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$"
)
TRACE_ID: Final = "strongroom.trace_id"
"""Key of the caller's W3C trace id in the ASGI scope; absent when none was sent."""
GiveWhole = Callable[[Scope, int, Iterable[tuple[bytes, bytes]], bytes], bool]
"""Gives a request a whole answer in one write: its status, its headers but for `SECURITY`, its
body. False, and nothing is written, when it must be sent piece by piece."""
GIVE_WHOLE: Final = "strongroom.give_whole"
"""Key of such a function among the server's ASGI extensions; a server need not have it."""
_BOX_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Asked for by the box and its proxy, under whatever name they know it by."""
SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"cache-control", b"private, no-cache"),
)
"""What every answer tells a browser."""


class Envelope:
    """Wraps the application."""

    def __init__(  # noqa: PLR0913 - three of them bound a body
        self,
        app: ASGIApp,
        hot: HotPath,
        *,
        json_bytes_max: int,
        body_limits: Mapping[str, int],
        limits_below: Mapping[tuple[str, str], int] = MappingProxyType({}),
        host: str | None = None,
    ) -> None:
        """Wrap it.

        Args:
            app: What answers.
            hot: What answers at once, before the application is asked.
            json_bytes_max: Most bytes of a body, unless its path is named next.
            body_limits: Exact path to the most bytes of its body.
            limits_below: Method and beginning of a path to the same.
            host: The name, and port, that clients know the service by; None takes any.
        """
        self._app = app
        self._hot = hot
        self._json_bytes_max = json_bytes_max
        self._body_limits = body_limits
        self._limits_below = tuple(limits_below.items())
        self._host = None if host is None else host.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(_REQUEST_ID_BYTES)
        scope[REQUEST_ID] = request_id
        exchange = _Exchange(receive, send, request_id)
        ready = None
        try:
            # Reads the headers once and gives up at the first that is not plain.
            ready = self._hot.answer(scope)
            if self._host is not None:
                _require_host(scope, self._host)
            if ready is None:
                exchange.left = self._limit_of(scope["method"], scope["path"])
                _judge_headers(scope, exchange.left)
                await self._app(scope, exchange.receive, exchange.send)
            else:
                await exchange.give(ready, scope)
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, StrongroomError | _MisreadError | asyncio.CancelledError):
                telemetry.unexpected(f"{scope['method']} {_template(scope)}", error)
            if exchange.has_begun:
                raise
            await _problem_of(error, request_id)(scope, receive, exchange.send)
        finally:
            template = _template(scope) if ready is None else scope["path"]
            metrics.answered(scope["method"], template, exchange.status, scope.get(CODE, ""))

    def _limit_of(self, method: str, path: str) -> int:
        """Most bytes of a body sent so to this path."""
        limit = self._body_limits.get(path)
        if limit is not None:
            return limit
        for (only, beginning), below in self._limits_below:
            if method == only and path.startswith(beginning):
                return below
        return self._json_bytes_max


class _Exchange:
    """One request's body, bounded, and its answer, signed."""

    __slots__ = ("_receive", "_send", "_signature", "has_begun", "left", "status")

    def __init__(self, receive: Receive, send: Send, request_id: str) -> None:
        self._receive = receive
        self._send = send
        self._signature = (b"x-request-id", request_id.encode())
        self.left = 0
        """Bytes that the body may still have."""
        self.has_begun = False
        """Whether the answer's head is sent."""
        self.status = 0
        """Of the answer; 0 until it begins."""

    async def receive(self) -> Message:
        """Await the next piece of the body.

        Returns:
            It, as ASGI has it.

        Raises:
            PayloadTooLargeError: With it the body is over its limit.
        """
        message = await self._receive()
        if message["type"] == "http.request":
            self.left -= len(message.get("body", b""))
            if self.left < 0:
                raise PayloadTooLargeError
        return message

    async def send(self, message: Message) -> None:
        """Send the next piece of the answer; its head is given what every answer has."""
        if message["type"] == "http.response.start":
            message["headers"] = self._signed(message["headers"])
            self.status = message["status"]
        await self._send(message)

    async def give(self, answer: Answer, scope: Scope) -> None:
        """Send a whole answer, in one write if the server can."""
        status, headers, body = answer
        self.status, self.has_begun = status, True
        give_whole: GiveWhole | None = scope.get("extensions", {}).get(GIVE_WHOLE)
        if give_whole is not None and give_whole(scope, status, [*headers, self._signature], body):
            return
        signed = self._signed(headers)
        await self._send({"type": "http.response.start", "status": status, "headers": signed})
        await self._send({"type": "http.response.body", "body": body})

    def _signed(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """The head's headers and what every answer has; a list of its own, for some are shared."""
        self.has_begun = True
        return [*headers, self._signature, *SECURITY]


def _judge_headers(scope: Scope, limit: int) -> None:
    size = 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name == b"content-length" and (not value.isdigit() or int(value[:20]) > limit):
            raise PayloadTooLargeError
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise _MisreadError(400)  # its other codings nobody has undone
        if name == idempotency.HEADER and scope["method"] in _UNSAFE:
            idempotency.note_key(scope, value)
        if name == b"traceparent" and (match := _TRACE_PARENT.match(value)):
            scope[TRACE_ID] = match[1].decode()
    if size > HEADERS_MAX:
        raise _MisreadError(400)


def _require_host(scope: Scope, host: bytes) -> None:
    # A page that made another name point here would else be of the same origin as the service.
    sent = [value.lower() for name, value in scope["headers"] if name == b"host"]
    if sent != [host] and scope["path"] not in _BOX_PATHS:
        raise _MisreadError(421)


class _MisreadError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


def _template(scope: Mapping[str, Any]) -> str:
    return str(getattr(scope.get("route"), "path", "unrouted"))


def _problem_of(error: BaseException, request_id: str) -> Response:
    if isinstance(error, StrongroomError):
        return response_to(error, request_id)
    if isinstance(error, asyncio.CancelledError):
        # The service stops, and the rest of this request did not come in time.
        return response_to(OverloadedError(), request_id)
    if isinstance(error, _MisreadError):
        return framework_problem(error.status, request_id)
    detail = "Something went wrong here; it is on record."
    return problem(500, "internal_error", detail, request_id)
