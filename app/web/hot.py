"""The one call made thousands of times a second, answered in front of the router.

`GET /api/file` with a bearer token is answered here when everything it needs is at hand:
the registry and the store open, the note small. Every other case, and every refusal, is
left to the ordinary route, so that there is one place that decides them; a test holds the
two alike.
"""

from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from app.bridge import quick
from app.bridge.strongroom import Strongroom
from app.crypto import tokens
from app.crypto.tokens import Token
from app.errors.root import StrongroomError
from app.owner import paths
from app.owner.paths import PathRef

PATH: Final = "/api/file"
_PREFIX: Final = b"path="
_SCHEME: Final = b"bearer "
_MARKDOWN: Final = (b"content-type", b"text/markdown; charset=utf-8")
_VARY: Final = (b"vary", b"Accept")
_TEXT_KINDS: Final = frozenset({b"*/*", b"text/markdown", b"text/plain"})
_SENSITIVE: Final = frozenset({b"cookie", b"if-none-match", b"if-match", b"content-length"})
"""Headers with which a read is not plain."""
HEADERS_MAX: Final = 64 * 1024
"""Bytes of all header names and values together."""


class Answer(NamedTuple):
    """A whole response."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class HotPath:
    """Answers plain reads at once."""

    def __init__(self) -> None:
        self.room: Strongroom | None = None
        """The running service; None before it is open, when nothing is asked yet."""

    def answer(self, scope: Scope) -> Answer | None:
        """The answer to a plain read; None when the ordinary route must answer."""
        room = self.room
        if scope["path"] != PATH or scope["method"] != "GET" or room is None:
            return None
        token = _token_of(scope["headers"])
        query = scope["query_string"]
        if token is None or not query.startswith(_PREFIX):
            return None
        try:
            ref = _ref_of(query[len(_PREFIX) :])
            if ref is None or ref.is_on_disk:
                return None
            note = quick.find_note(room, token, ref)
        except StrongroomError:
            return None
        if note is None:
            return None
        body = note.content.encode()
        etag = b'"%d"' % note.version
        length = b"%d" % len(body)
        headers = [_MARKDOWN, (b"content-length", length), (b"etag", etag), _VARY]
        return Answer(200, headers, body)


def _token_of(headers: list[tuple[bytes, bytes]]) -> Token | None:
    """The bearer's token when it is all there is to know of the caller and the answer's form."""
    bearer = None
    size = 0
    for name, value in headers:
        size += len(name) + len(value)
        if name == b"authorization":
            if bearer is not None or value[: len(_SCHEME)].lower() != _SCHEME:
                return None
            bearer = value[len(_SCHEME) :]
        elif (name == b"accept" and value not in _TEXT_KINDS) or name in _SENSITIVE:
            return None
    return None if bearer is None or size > HEADERS_MAX else tokens.parse(bearer)


def _ref_of(raw: bytes) -> PathRef | None:
    """The place that a query's only value names; None when it takes more to read it."""
    # Another parameter, a space in disguise, or bytes that the framework reads as Latin-1.
    if b"&" in raw or b"+" in raw or not raw.isascii():
        return None
    if b"%" not in raw:
        return paths.clean(raw.decode())
    try:
        return paths.clean(unquote_to_bytes(raw).decode())
    except UnicodeDecodeError:
        return None
