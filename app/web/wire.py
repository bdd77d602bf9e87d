"""The refusals of the server itself, before any application: in the form of all the others.

What is no HTTP, and a URL of more than 64 KiB, never becomes a request.
"""

import secrets
from typing import Final

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.web.envelope import SECURITY
from app.web.errors import framework_problem

_STATUS_LINE: Final = b"HTTP/1.1 400 Bad Request"
HEAD_BYTES_MAX: Final = 256 * 1024
"""Bytes of a request's line and headers that are kept while it is unfinished."""
_REQUEST_ID_BYTES: Final = 12


class StrictHttp(HttpToolsProtocol):
    """uvicorn's protocol on httptools: bounded heads, and a problem in the place of a text."""

    _head_bytes = 0
    """Bytes taken since the last head was whole: the next one's, as far as it goes."""

    @override
    def data_received(self, data: bytes) -> None:
        # The parser keeps an unfinished head for as long as it grows, and has no bound.
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response("")

    @override
    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

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
