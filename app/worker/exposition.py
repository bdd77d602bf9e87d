"""The service's counts at an address of their own, for a monitor on a network of its own."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from typing_extensions import override

from app import metrics

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_Start = Callable[[str, list[tuple[str, str]]], object]


class _Quiet(WSGIRequestHandler):
    """Logs nothing, and waits for nobody."""

    timeout: ClassVar[float | None] = 10.0

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.asynccontextmanager
async def serve_metrics(address: str, folder: Path) -> AsyncIterator[int]:
    """Answer `GET /metrics` there; for the leader alone.

    Yields:
        The port, once it listens.

    Raises:
        OSError: The address cannot be had.
    """
    host, _, port = address.rpartition(":")

    def answer(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET" or environ["PATH_INFO"] != "/metrics":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"There are only the counts here: GET /metrics.\n"]
        start("200 OK", [("Content-Type", _TEXT)])
        return [metrics.exposition(folder)]

    server = await asyncio.to_thread(
        make_server, host.strip("[]"), int(port), answer, handler_class=_Quiet
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
