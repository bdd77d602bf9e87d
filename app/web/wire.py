"""The service's HTTP server: uvicorn's, with refusals of its own and whole answers in one write.

What is no HTTP, and a URL of more than 64 KiB, never becomes a request; it is refused in the
form of all the others. A wish to go on in another protocol is passed over, as HTTP allows.
"""

import asyncio
import secrets
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import httptools
from starlette.types import Scope
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.web.envelope import GIVE_WHOLE, SECURITY
from app.web.errors import framework_problem

_STATUS_LINE: Final = b"HTTP/1.1 400 Bad Request"
_SECURITY_LINES: Final = b"\r\n".join((b"", *map(b": ".join, SECURITY), b"", b""))
"""The end of a head: what every answer tells a browser, and the empty line."""
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
HEAD_BYTES_MAX: Final = 256 * 1024
"""Bytes of a request's line and headers that are kept while it is unfinished."""
_REQUEST_ID_BYTES: Final = 12
ENDING: Final = "strongroom.ending"
"""Key of the event, in the state that the application's lifespan gives, to be set when the
process is asked to end."""


class StrictHttp(HttpToolsProtocol):
    """uvicorn's protocol on httptools: bounded heads, and a problem in the place of a text."""

    stall_s: ClassVar[float] = 30.0
    """Seconds after which a client is dropped that takes nothing of its answer, or gives nothing
    of a request that is not whole."""
    _stalling: asyncio.TimerHandle | None = None
    _watching: asyncio.TimerHandle | None = None
    _has_asked = False
    """Whether a head was ever whole."""
    _heard_at = 0.0
    """Loop seconds of the last byte that came."""
    _head_bytes = 0
    """Bytes taken since the last head was whole: the next one's, as far as it goes."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        super().connection_made(transport)
        # Of the connection, for a request that held what ends it would outlive its answer. The
        # type that uvicorn gives a scope knows no extension that is a function.
        self._extensions: Any = {GIVE_WHOLE: self._give_whole}
        self._heard_at = self.loop.time()
        self._watching = self.loop.call_later(self.stall_s, self._watch)

    def _watch(self) -> None:
        """Drop a client that owes the rest of a request and is silent."""
        is_head_due = not self._has_asked or self._head_bytes > 0
        is_due = is_head_due or (self.cycle.more_body and not self.flow.read_paused)
        left_s = self.stall_s - (self.loop.time() - self._heard_at) if is_due else self.stall_s
        if left_s <= 0:
            self.transport.abort()
        else:
            self._watching = self.loop.call_later(left_s, self._watch)

    @override
    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        # The parser keeps an unfinished head for as long as it grows, and has no bound.
        self._head_bytes += len(data)
        self._unset_keepalive_if_required()
        rest: bytes | None = data
        while rest is not None:
            rest = self._feed(rest)
        if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response("")

    @override
    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self._has_asked = True
        super().on_headers_complete()
        self.scope["extensions"] = self._extensions

    def _feed(self, data: bytes) -> bytes | None:
        """Have the parser read.

        It stops after a head that wishes for another protocol, and takes what follows for that
        one's, be it the request's own body.

        Returns:
            What follows such a head; None when all was read.
        """
        try:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as stopped:
                framing = [each for each in self.headers if each[0] in _FRAMING]
                lines = [b"POST / HTTP/1.1", *map(b": ".join, framing), b"", b""]
                self.parser = httptools.HttpRequestParser(_AfterHead(self))
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                self.parser.feed_data(b"\r\n".join(lines))
                return data[stopped.args[0] :]
        except httptools.HttpParserError:
            self.send_400_response("")
        return None

    @override
    def on_message_complete(self) -> None:
        # Of a request that wished for another protocol the end is still to come.
        if not self.parser.should_upgrade():
            super().on_message_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def _give_whole(
        self, scope: Scope, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> bool:
        """Do at once what `cycle.send` does for an answer's head and its only piece.

        That one looks for what no header may hold, which costs as much as the rest of it: these
        are the program's own. Whatever is not plain is left to it, and every request that has
        another behind it already.

        Returns:
            Whether the answer is given.
        """
        cycle = self.cycle
        is_plain = cycle.scope is scope and cycle.keep_alive and not cycle.waiting_for_100_continue
        if not is_plain or cycle.response_started or cycle.disconnected or self.flow.write_paused:
            return False
        lines = b"\r\n".join(map(b": ".join, (*cycle.default_headers, *headers)))
        self.transport.write(b"".join((STATUS_LINE[status], lines, _SECURITY_LINES, body)))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()
        return True

    @override
    def shutdown(self) -> None:
        # uvicorn waits for answers under way before it tells the application anything.
        ending = self.app_state.get(ENDING)
        if isinstance(ending, asyncio.Event):
            ending.set()
        super().shutdown()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        # Abort, not close: to close is to wait until the client has taken the rest.
        self._stalling = self.loop.call_later(self.stall_s, self.transport.abort)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_stall()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_stall()
        if self._watching is not None:
            self._watching.cancel()
        super().connection_lost(exc)

    def _cancel_stall(self) -> None:
        if self._stalling is not None:
            self._stalling.cancel()
            self._stalling = None

    @override
    def send_400_response(self, msg: str) -> None:
        request_id = secrets.token_hex(_REQUEST_ID_BYTES)
        answer = framework_problem(400, request_id)
        headers = [
            *self.server_state.default_headers,
            *answer.raw_headers,
            (b"x-request-id", request_id.encode()),
            *SECURITY,
            (b"connection", b"close"),
        ]
        lines = [_STATUS_LINE, *(b": ".join(header) for header in headers), b"", b""]
        self.transport.write(b"\r\n".join(lines) + bytes(answer.body))
        self.transport.close()


class _AfterHead:
    """Hears a parser that is given first a head in the place of one that was told already."""

    def __init__(self, protocol: StrictHttp) -> None:
        self._protocol = protocol
        self._is_told = False
        self.on_body = protocol.on_body
        self.on_message_complete = protocol.on_message_complete

    def on_message_begin(self) -> None:
        if self._is_told:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._is_told:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_told:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._is_told:
            self._protocol.on_headers_complete()
        self._is_told = True
