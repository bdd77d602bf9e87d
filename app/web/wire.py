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
_REQUEST_ID_BYTES: Final = 12


class StrictHttp(HttpToolsProtocol):
    """uvicorn's protocol on httptools, with a problem in the place of a line of text."""

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
