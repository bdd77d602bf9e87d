"""The server's own protocol: who takes nothing is dropped, and a stop is told at once."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from app.web.wire import ENDING, StrictHttp

pytestmark = pytest.mark.anyio

_WAIT_S: Final = 20
_CHUNK: Final = b"x" * 65_536
_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def anyio_backend() -> str:
    """The loop that serves."""
    return "asyncio"


class Endless:
    """Answers without an end, until it is told that the client is gone."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.sent = 0

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI
        """Answer."""
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        waiting = asyncio.create_task(receive())
        while not waiting.done():
            await send({"type": "http.response.body", "body": _CHUNK, "more_body": True})
            self.sent += 1
            await asyncio.sleep(0)
        assert waiting.result()["type"] == "http.disconnect"
        self.gone.set()


@contextlib.asynccontextmanager
async def served(
    app: Endless, state: dict[str, Any], protocols: list[StrictHttp] | None = None
) -> AsyncIterator[tuple[socket.socket, ServerState]]:
    """A client that sent its request, and the server's state."""
    config = Config(app, lifespan="off", ws="none", log_config=None, access_log=False)
    config.load()
    server_state = ServerState()

    def connect() -> StrictHttp:
        protocol = StrictHttp(config=config, server_state=server_state, app_state=state)
        if protocols is not None:
            protocols.append(protocol)
        return protocol

    loop = asyncio.get_running_loop()
    server = await loop.create_server(connect, "127.0.0.1", 0)
    async with server:
        client = socket.socket()
        client.setblocking(False)  # noqa: FBT003 - the socket's own
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with client:
            await loop.sock_connect(client, server.sockets[0].getsockname())
            await loop.sock_sendall(client, _REQUEST)
            yield client, server_state


async def test_a_client_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it holds neither the answer's memory nor the stop of the process."""
    monkeypatch.setattr(StrictHttp, "stall_s", 0.05)
    app = Endless()
    async with served(app, {}) as (_, state):
        async with asyncio.timeout(_WAIT_S):
            await app.gone.wait()
        assert state.connections == set()


async def test_a_client_that_takes_what_comes_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it falls behind for a moment."""
    monkeypatch.setattr(StrictHttp, "stall_s", _WAIT_S)
    app = Endless()
    protocols: list[StrictHttp] = []
    async with served(app, {}, protocols) as (client, _):
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_WAIT_S):
            while app.sent < 100:
                await loop.sock_recv(client, 1 << 20)
            client.close()
            await app.gone.wait()
        assert protocols[0]._stalling is None


async def test_a_stop_is_told_at_once() -> None:
    """To whatever of the application waits for it; without such a one nothing happens."""
    ending = asyncio.Event()
    protocols: list[StrictHttp] = []
    for state in ({ENDING: ending}, {}):
        app = Endless()
        async with served(app, state, protocols) as (client, _):
            await asyncio.get_running_loop().sock_recv(client, 100)
            assert not ending.is_set() or not state
            protocols[-1].shutdown()
            assert ending.is_set()
            client.close()
            async with asyncio.timeout(_WAIT_S):
                await app.gone.wait()
