"""The server's own protocol: who takes nothing is dropped, and a stop is told at once.

An answer that is whole goes out in one write, and is the same as one in pieces.
"""

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from starlette.types import ASGIApp, Scope
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from app.web.envelope import Envelope
from app.web.hot import Answer, HotPath
from app.web.wire import ENDING, StrictHttp

pytestmark = pytest.mark.anyio

_WAIT_S: Final = 20
_DIFFERS: Final = re.compile(rb"(?<=date: )[^\r]+|(?<=x-request-id: )[^\r]+")
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


class Ready(HotPath):
    """Has an answer to everything."""

    @override
    def answer(self, scope: Scope) -> Answer | None:
        """The path that was asked for."""
        body = str(scope["path"]).encode()
        return Answer(200, [(b"content-length", b"%d" % len(body)), (b"etag", b'"1"')], body)


@contextlib.asynccontextmanager
async def served(
    app: ASGIApp,
    state: dict[str, Any],
    protocols: list[StrictHttp] | None = None,
    request: bytes = _REQUEST,
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
            await loop.sock_sendall(client, request)
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


@pytest.mark.parametrize(
    ("request_", "whole"),
    [
        pytest.param(_REQUEST, 1, id="one"),
        pytest.param(2 * _REQUEST, 1, id="two at once"),
        pytest.param(b"GET /a HTTP/1.0\r\n\r\n", 0, id="the last of a connection"),
        pytest.param(b"GET /a HTTP/1.1\r\nExpect: 100-continue\r\n\r\n", 0, id="a body announced"),
    ],
)
async def test_a_whole_answer_is_the_same_as_one_in_pieces(
    monkeypatch: pytest.MonkeyPatch, request_: bytes, whole: int
) -> None:
    """And the connection goes on to the next request, or ends, as it would."""
    heard, given = [], []
    give = StrictHttp._give_whole

    def count(*each: Any) -> bool:  # noqa: ANN401 - as it is given
        given.append(give(*each))
        return given[-1]

    last = b"GET /last HTTP/1.1\r\nConnection: close\r\n\r\n"
    for way in (count, lambda *_: False):
        monkeypatch.setattr(StrictHttp, "_give_whole", way)
        app = Envelope(Endless(), Ready(), json_bytes_max=1, body_limits={})
        async with served(app, {}, request=request_) as (client, _), asyncio.timeout(_WAIT_S):
            heard.append(b"")
            loop = asyncio.get_running_loop()
            while heard[-1].count(b"HTTP/1.1 200 OK") < request_.count(b"GET"):
                heard[-1] += await loop.sock_recv(client, 1 << 20)
            if b"HTTP/1.0" not in request_:
                await loop.sock_sendall(client, last)
            while piece := await loop.sock_recv(client, 1 << 20):
                heard[-1] += piece
    in_one, in_pieces = (_DIFFERS.sub(b"", each) for each in heard)
    assert in_one == in_pieces
    assert given.count(True) == whole


async def test_nothing_is_given_whole_to_who_takes_nothing() -> None:
    """Or is gone, or has had the head of an answer."""
    protocols: list[StrictHttp] = []
    app = Endless()
    async with served(app, {}, protocols) as (client, _):
        async with asyncio.timeout(_WAIT_S):
            await asyncio.get_running_loop().sock_recv(client, 100)
            cycle: RequestResponseCycle = protocols[0].cycle
            scope: Any = cycle.scope
            assert cycle.response_started
            assert not protocols[0]._give_whole(scope, 200, [], b"")
            while not cycle.flow.write_paused:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.001)
            cycle.response_started = False
            assert not protocols[0]._give_whole(scope, 200, [], b"")
            cycle.response_started = True
            client.close()
            await app.gone.wait()
        cycle.response_started = False
        assert cycle.disconnected
        assert not protocols[0]._give_whole(scope, 200, [], b"")


class Kept:
    """Answers each request with its body, and keeps them all."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI
        """Answer."""
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        self.bodies.append(body)
        head = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


_UPGRADE: Final = b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"


def _put(body: bytes, upgrade: bytes = _UPGRADE) -> bytes:
    return b"PUT /a HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (upgrade, len(body), body)


_CHUNKED: Final = b"PUT /a HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n" % _UPGRADE
_LAST: Final = b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "bodies"),
    [
        pytest.param(_put(b"one"), [b"one"], id="at once"),
        pytest.param(_put(b"one") + _put(b"two", b""), [b"one", b"two"], id="one behind it"),
        pytest.param(
            _put(b"zero", b"") + _put(b"one") + _put(b"") + _put(b"two"),
            [b"zero", b"one", b"", b"two"],
            id="some among others",
        ),
        pytest.param(_CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", [b"onetwo"], id="chunked"),
        pytest.param(_put(_put(b"x", b"")), [_put(b"x", b"")], id="what looks like a request"),
        pytest.param(b"GET /a HTTP/1.1\r\n%s\r\n" % _UPGRADE, [b""], id="no body"),
        pytest.param(_put(b"") * 2_000, [b""] * 2_000, id="very many"),
    ],
)
@pytest.mark.parametrize("cut", ["nowhere", "everywhere"])
async def test_a_wish_for_another_protocol_is_passed_over(
    sent: bytes, bodies: list[bytes], cut: str
) -> None:
    """The body is the request's own, and what follows is the next request."""
    app = Kept()
    first, rest = (sent[:1], sent[1:]) if cut == "everywhere" else (sent, b"")
    async with served(app, {}, request=first) as (client, _), asyncio.timeout(_WAIT_S):
        loop = asyncio.get_running_loop()
        pieces = [rest[at : at + 7] for at in range(0, len(rest), 7)][:500]
        for piece in [*pieces, rest[7 * len(pieces) :], _LAST]:
            await loop.sock_sendall(client, piece)
            await asyncio.sleep(0)
        heard = b""
        while piece := await loop.sock_recv(client, 1 << 20):
            heard += piece
    assert app.bodies == [*bodies, b""]
    assert heard.count(b"HTTP/1.1 200 OK") >= len(bodies)


@pytest.mark.parametrize(
    ("sent", "fate"),
    [
        pytest.param(b"", "dropped", id="nothing"),
        pytest.param(b"GET / HTT", "dropped", id="part of a head"),
        pytest.param(
            b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", "dropped", id="part of a body"
        ),
        pytest.param(_put(b"one"), "kept", id="a whole request"),
    ],
)
async def test_a_client_that_owes_and_is_silent_is_dropped(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, fate: str
) -> None:
    """So that it holds no descriptor, and no right that it has lost meanwhile."""
    monkeypatch.setattr(StrictHttp, "stall_s", 0.1)
    protocols: list[StrictHttp] = []
    async with served(Kept(), {}, protocols, request=sent) as (client, _):
        loop = asyncio.get_running_loop()
        if fate == "dropped":
            async with asyncio.timeout(_WAIT_S):
                with contextlib.suppress(ConnectionResetError):
                    assert await loop.sock_recv(client, 100) == b""
        else:
            assert await loop.sock_recv(client, 1 << 16)
            await asyncio.sleep(0.3)
            assert not protocols[0].transport.is_closing()
