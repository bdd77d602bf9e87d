"""The one call made thousands of times a second, in front of the router.

`GET /api/file` with a bearer token answers here when everything it needs is at hand: the
registry and the store open, the note small. Every other case, and every refusal, is left
to the ordinary route, so the two cannot answer differently where it matters; a test
compares them.
"""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from app.bridge import quick
from app.crypto import tokens
from app.errors import StrongroomError
from app.owner import paths

_PATH: Final = "/api/file"
_PREFIX: Final = b"path="
_SCHEME: Final = b"bearer "
_MARKDOWN: Final = (b"content-type", b"text/markdown; charset=utf-8")
_VARY: Final = (b"vary", b"Accept")
_TEXT_KINDS: Final = frozenset({b"*/*", b"text/markdown", b"text/plain"})


class HotPath:
    """Wraps the application's middleware stack, so that its error handlers still apply."""

    def __init__(self, app: ASGIApp, state: Any) -> None:  # noqa: ANN401 - Starlette's State
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a plain read of a note here; pass everything else on."""
        if scope["type"] == "http" and scope["path"] == _PATH and scope["method"] == "GET":
            found = self._find(scope)
            if found is not None:
                version, content = found
                body = content.encode()
                await send(
                    {
                        "type": "http.response.start",
                        "status": 200,
                        "headers": [
                            _MARKDOWN,
                            (b"content-length", b"%d" % len(body)),
                            (b"etag", b'"%d"' % version),
                            _VARY,
                        ],
                    }
                )
                await send({"type": "http.response.body", "body": body})
                return
        await self._app(scope, receive, send)

    def _find(self, scope: Scope) -> tuple[int, str] | None:
        """The note's version and text; None when the ordinary route must answer."""
        bearer = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                if bearer is not None or value[: len(_SCHEME)].lower() != _SCHEME:
                    return None
                bearer = value[len(_SCHEME) :]
            elif name == b"accept":
                if value not in _TEXT_KINDS:
                    return None
            elif name in {b"cookie", b"if-none-match"}:
                return None
        query: bytes = scope["query_string"]
        if bearer is None or not query.startswith(_PREFIX) or b"&" in query or b"+" in query:
            return None
        token = tokens.parse(bearer)
        if token is None:
            return None
        raw = query[len(_PREFIX) :]
        try:
            text = (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
            ref = paths.clean(text)
            return quick.find_note(self._state.room, token, ref)
        except (StrongroomError, UnicodeDecodeError):
            return None


def install(app: FastAPI) -> None:
    """Put the hot path in front of the router, inside the error handlers' reach."""
    build: Callable[[], ASGIApp] = app.build_middleware_stack

    def build_with_hot_path() -> ASGIApp:
        return HotPath(build(), app.state)

    app.build_middleware_stack = build_with_hot_path  # type: ignore[method-assign]


