"""A webhook's far end, on this box: takes what it is sent, and answers as it is told to."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from standardwebhooks.webhooks import Webhook
from typing_extensions import override

HOST: Final = "127.0.0.1"
NETWORKS: Final = ("127.0.0.0/8",)
"""What an operator must allow for it to be reached."""
CHUNK: Final = b"x" * 65_536


@dataclass(frozen=True)
class Received:
    """One request, as it came."""

    headers: Mapping[str, str]
    body: bytes
    path: str

    @property
    def id(self) -> str:
        """Of the delivery."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        """What it tells."""
        return dict(json.loads(self.body))

    def verified(self, secret: str) -> dict[str, Any]:
        """The same, once the convention's own verifier has found it genuine."""
        return dict(Webhook(secret).verify(self.body, dict(self.headers)))


Answer = int | str
"""A status, or `hang`, `linger`, `close`, `half`, `huge`, `garbage`: how an endpoint fails."""


@dataclass
class Endpoint:
    """What it was sent so far, and how it will answer."""

    port: int
    scheme: str = "http"
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], Answer] = lambda _received: 204
    headers: dict[str, str] = field(default_factory=dict)
    """Of every answer."""
    ending: threading.Event = field(default_factory=threading.Event)
    sent_bytes: int = 0
    """Of endless answers."""

    def url(self, path: str = "/hook", host: str = HOST) -> str:
        """Where it is reached."""
        return f"{self.scheme}://{host}:{self.port}{path}"

    @property
    def connection(self) -> str:
        """As breakers name it."""
        return f"{self.scheme}://{HOST}:{self.port}"

    def ids(self) -> list[str]:
        """Of the deliveries, in the order of their coming; one that came twice is there twice."""
        return [each.id for each in self.received]


@contextmanager
def endpoint(context: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """One that listens until the end of the context.

    Args:
        context: Of a server by TLS; None for one in clear.

    Yields:
        It.
    """
    server = _Server((HOST, 0), _Handler)
    found = Endpoint(server.server_port, "https" if context else "http")
    server.endpoint = found
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        found.ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    endpoint: Endpoint
    daemon_threads = True

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who went away in the middle is what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        found = self.server.endpoint
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(headers, body, self.path)
        found.received.append(received)
        self.close_connection = True
        answer = found.answer(received)
        if isinstance(answer, int):
            self.send_response(answer)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        getattr(self, f"_{answer}")(found)

    def _hang(self, found: Endpoint) -> None:
        found.ending.wait(30)

    def _linger(self, found: Endpoint) -> None:
        """After a while, without a word."""
        found.ending.wait(0.1)

    def _close(self, _found: Endpoint) -> None:
        """Without a word."""

    def _half(self, _found: Endpoint) -> None:
        self.wfile.write(b"HTTP/1.1 20")

    def _garbage(self, _found: Endpoint) -> None:
        self.wfile.write(b"\x00\x01 nothing of the kind\r\n\r\n")

    def _huge(self, found: Endpoint) -> None:
        self.send_response(200)
        self.end_headers()
        while not found.ending.is_set():
            self.wfile.write(CHUNK)
            found.sent_bytes += len(CHUNK)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""
