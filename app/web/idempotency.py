"""`Idempotency-Key`: the header's form, the request it stands for, and the answer given again."""

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from starlette.types import Scope
from typing_extensions import override

from app.bridge.callers import Caller
from app.bridge.strongroom import Strongroom
from app.errors.inputs import IdempotencyNotSupportedError, InvalidIdempotencyKeyError
from app.runtime.idempotency import Answer, Once
from app.web.rules import Rule
from app.web.strict_json import JsonRequest

HEADER: Final = b"idempotency-key"
REPLAYED: Final = "Idempotency-Replayed"
_SCOPE: Final = "strongroom.idempotency_key"
"""Key of the caller's key in the ASGI scope; absent when none was sent, or to a safe method."""
_FORM: Final = re.compile(rb"[!-~]{1,128}")
_HOUR_MS: Final = 3_600_000
_KEPT: Final = frozenset({"content-type", "etag", "location"})
"""Headers that are part of an answer; every other is of one response alone."""
_ASKING: Final = ("content-type", "if-match", "if-none-match")
"""Headers that are part of what is asked."""

DESCRIPTION: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Chosen by the caller, new for each thing that is to be done. The same request "
    "with the same key is done once; asked again within a day it gets the first answer, with "
    "`Idempotency-Replayed: true`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]*$"},
}
"""The header as OpenAPI describes it on the calls that take it."""


def note_key(scope: Scope, value: bytes) -> None:
    """Note the key of a request, from one of its headers.

    Raises:
        InvalidIdempotencyKeyError: It has not the form of one, or there are two.
    """
    if _SCOPE in scope or not _FORM.fullmatch(value):
        raise InvalidIdempotencyKeyError
    scope[_SCOPE] = value.decode("ascii")


def has_key(scope: Scope) -> bool:
    """Whether the request came with a key."""
    return _SCOPE in scope


class KeyedRequest(JsonRequest):
    """A request with a key: what its body was is told when it has been read, whole or in pieces."""

    _body_digest: str | None = None

    @override
    async def stream(self) -> AsyncGenerator[bytes, None]:
        digest = hashlib.sha256()
        async for chunk in super().stream():
            digest.update(chunk)
            yield chunk
        self._body_digest = digest.hexdigest()

    async def body_digest(self) -> str:
        """SHA-256 of the body, hex; what nobody has read is read now."""
        if self._body_digest is None:
            await self.body()
        return self._body_digest or ""


async def require_no_secret(request: Request, field: str) -> None:
    """Refuse a key on a request with a secret: what is kept of it would be a way to try secrets.

    Raises:
        IdempotencyNotSupportedError: The field is there.
    """
    body = await request.json()
    if isinstance(body, dict) and field in body:
        raise IdempotencyNotSupportedError


@dataclass(frozen=True, slots=True, repr=False)
class _Asked:
    """All that one request asks, and what its credential was made for, apart from who asks it."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, ...], ...]
    body_digest: str
    scopes: tuple[str, ...]
    """An answer may tell what another credential of the caller's may not read."""

    def digest(self) -> bytes:
        """Its SHA-256; a list in JSON, so that no part runs into the next."""
        parts = [
            self.method,
            self.path,
            self.query,
            self.headers,
            self.body_digest,
            self.scopes,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).digest()


async def once_of(
    request: Request,
    rule: Rule,
    room: Strongroom,
    caller: Caller,
    render: Callable[[Any], Response],
) -> Once | None:
    """What lets the request act once.

    Args:
        request: As it came; its body is read to the end if it is not yet.
        rule: Of its route.
        room: The service.
        caller: Whoever the route's rule let through.
        render: Makes the answer of what the deciding write returns.

    Returns:
        It; None for a request without a key, and for one that only reads.
    """
    if not isinstance(request, KeyedRequest) or rule.repeats != "kept":
        return None
    asked = _Asked(
        method=request.method,
        path=request.scope["path"],
        query=request.scope["query_string"].decode("latin-1"),
        headers=tuple(tuple(request.headers.getlist(name)) for name in _ASKING),
        body_digest=await request.body_digest(),
        scopes=tuple(sorted(caller.scopes)),
    )
    settings = room.settings
    return Once(
        caller=caller.author,
        key=request.scope[_SCOPE],
        route=f"{request.method} {request.scope['route'].path}",
        digest=asked.digest(),
        render=lambda result: _answer_of(render(result)),
        keep_ms=settings.idempotency_hours * _HOUR_MS,
        body_bytes_max=settings.idempotency_answer_bytes_max,
        reach=room.reach,
    )


def _answer_of(response: Response) -> Answer:
    headers = {name: value for name, value in response.headers.items() if name in _KEPT}
    return Answer(response.status_code, headers, bytes(response.body))


def replay(answer: Answer) -> Response:
    """A kept answer given again."""
    headers = {**answer.headers, REPLAYED: "true"}
    return Response(answer.body, status_code=answer.status, headers=headers)
