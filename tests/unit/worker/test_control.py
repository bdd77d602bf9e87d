"""The control socket."""

import asyncio
import contextlib
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from app import telemetry
from app.bridge import commands
from app.bridge.strongroom import Strongroom
from app.errors.stores import StoreBusyError
from app.settings import Settings
from app.worker import control
from app.worker.control import LINE_BYTES_MAX, serve_control
from tests.support.rooms import PASSWORD, open_room, prepared

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A prepared root whose path is too long for the address of a socket."""
    root = tmp_path / ("long" * 40)
    root.mkdir()
    return prepared(root)


@contextlib.asynccontextmanager
async def _served(settings: Settings) -> AsyncIterator[Strongroom]:
    async with open_room(settings) as room, serve_control(room):
        yield room


@contextlib.asynccontextmanager
async def _connected(
    settings: Settings,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    folder = os.open(settings.database, os.O_PATH)
    try:
        path = f"/proc/self/fd/{folder}/control.sock"
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 26)
    finally:
        os.close(folder)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _ask(settings: Settings, line: bytes) -> Any:  # noqa: ANN401 - what JSON can hold
    async with _connected(settings) as (reader, writer):
        writer.write(line)
        answer = await reader.readline()
    return json.loads(answer) if answer else None


def _line(command: str, **arguments: object) -> bytes:
    return json.dumps({"command": command, "arguments": arguments}).encode() + b"\n"


def test_the_socket_is_private_and_goes_with_its_server(settings: Settings) -> None:
    """It has mode 0600 whatever the umask, and is gone after a clean stop."""

    async def run() -> None:
        before = os.umask(0)
        try:
            async with _served(settings):
                mode = settings.control_socket.lstat().st_mode
                assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
        finally:
            os.umask(before)
        assert not settings.control_socket.exists()

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["socket", "file"])
def test_what_a_killed_leader_left_is_replaced(settings: Settings, kind: str) -> None:
    """A stale socket stands in nobody's way."""
    if kind == "file":
        settings.control_socket.touch()
    else:
        folder = os.open(settings.database, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(f"/proc/self/fd/{folder}/control.sock")
        os.close(folder)

    async def run() -> None:
        async with _served(settings):
            assert await _ask(settings, _line("user.list")) == {"result": {"users": []}}

    asyncio.run(run())


def test_a_command_is_done_and_answered(settings: Settings) -> None:
    """One line in, one line out."""

    async def run() -> None:
        async with _served(settings):
            made = await _ask(settings, _line("user.add", username="ana", password=PASSWORD))
            listed = await _ask(settings, _line("user.list"))
            assert listed == {"result": {"users": [made["result"]["user"]]}}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(b"\n", "invalid_input", id="nothing"),
        pytest.param(b"{\n", "invalid_input", id="no JSON"),
        pytest.param(b"\xff\n", "invalid_input", id="no text"),
        pytest.param(b"[" * 60_000 + b"\n", "invalid_input", id="too deep"),
        pytest.param(b"[]\n", "invalid_input", id="no object"),
        pytest.param(b'{"command": "user.list"}\n', "invalid_input", id="no arguments"),
        pytest.param(b'{"command": 1, "arguments": {}}\n', "invalid_input", id="no name"),
        pytest.param(
            b'{"command": "user.list", "arguments": []}\n', "invalid_input", id="wrong arguments"
        ),
        pytest.param(
            b'{"command": "user.list", "arguments": {}, "more": 1}\n', "invalid_input", id="more"
        ),
        pytest.param(_line("fly"), "invalid_input", id="no such command"),
        pytest.param(_line("lock", user="nobody"), "not_found", id="refused"),
        pytest.param(b"x" * (LINE_BYTES_MAX + 1) + b"\n", "payload_too_large", id="too long"),
    ],
)
def test_what_is_no_request_is_refused(settings: Settings, line: bytes, code: str) -> None:
    """Every fault has its code, and the next client is served."""

    async def run() -> None:
        async with _served(settings):
            answer = await _ask(settings, line)
            assert list(answer) == ["error"]
            assert answer["error"]["code"] == code
            assert answer["error"]["detail"]
            assert "result" in await _ask(settings, _line("user.list"))

    asyncio.run(run())


def test_another_user_of_the_box_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever connects must be the server's own user, or root."""

    class Stranger:
        size = control._CREDENTIALS.size

        @staticmethod
        def unpack(_: bytes) -> tuple[int, int, int]:
            return 1, os.geteuid() + 1, 1

    monkeypatch.setattr(control, "_CREDENTIALS", Stranger)

    async def run() -> None:
        async with _served(settings):
            answer = await _ask(settings, _line("user.list"))
            assert answer["error"]["code"] == "not_permitted"

    asyncio.run(run())


def test_a_silent_client_holds_up_nobody(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are served meanwhile, and when its time is over it is cut off without an answer."""
    monkeypatch.setattr(control, "DEADLINE_S", 0.3)

    async def run() -> None:
        async with _served(settings), _connected(settings) as (reader, writer):
            writer.write(b'{"command": ')
            assert "result" in await _ask(settings, _line("user.list"))
            assert await reader.read() == b""

    asyncio.run(run())


def test_a_client_that_does_not_read_is_cut_off(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that nobody takes is dropped, and the stop does not wait for it."""
    monkeypatch.setattr(control, "DEADLINE_S", 1.0)

    async def perform(*_: object) -> dict[str, object]:
        return {"long": "x" * (1 << 22)}

    monkeypatch.setattr(commands, "perform", perform)

    async def run() -> None:
        folder = os.open(settings.database, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as client:
            async with _served(settings):
                client.connect(f"/proc/self/fd/{folder}/control.sock")
                client.sendall(_line("long"))
                await asyncio.sleep(0)
                assert "result" in await _ask(settings, _line("long"))
            taken = 0
            with contextlib.suppress(ConnectionResetError):
                while part := client.recv(1 << 20):
                    taken += len(part)
            assert taken < 1 << 22
        os.close(folder)

    asyncio.run(run())


def test_a_stop_waits_for_nobody_who_has_not_asked(settings: Settings) -> None:
    """Clients that only hold their connection are let go at once."""

    async def run() -> None:
        async with contextlib.AsyncExitStack() as clients:
            async with _served(settings):
                reader, _ = await clients.enter_async_context(_connected(settings))
                await _ask(settings, _line("user.list"))  # by then the other is known too
            assert await reader.read() == b""

    asyncio.run(run())


@pytest.mark.parametrize("finish_s", [30.0, 0.05], ids=["in time", "too slow"])
def test_a_stop_lets_commands_finish(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, finish_s: float
) -> None:
    """A command under way is done and answered; one that takes too long is given up."""
    monkeypatch.setattr(control, "_FINISH_S", finish_s)
    begun, stopping = asyncio.Event(), asyncio.Event()

    async def perform(*_: object) -> dict[str, bool]:
        begun.set()
        await stopping.wait()
        if finish_s < 1:
            await asyncio.Event().wait()
        return {"done": True}

    monkeypatch.setattr(commands, "perform", perform)

    async def run() -> None:
        async with open_room(settings) as room:
            async with serve_control(room):
                asked = asyncio.create_task(_ask(settings, _line("slow")))
                await begun.wait()
                asyncio.get_running_loop().call_soon(stopping.set)
            assert await asked == ({"result": {"done": True}} if finish_s > 1 else None)

    asyncio.run(run())


def test_a_command_goes_on_without_its_client(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked and left has asked."""
    done = asyncio.Event()

    async def perform(
        _room: Strongroom, _name: str, _arguments: Mapping[str, object]
    ) -> dict[str, object]:
        done.set()
        return {}

    monkeypatch.setattr(commands, "perform", perform)

    async def run() -> None:
        async with _served(settings):
            async with _connected(settings) as (_, writer):
                writer.write(_line("user.list"))
            await done.wait()
            assert await _ask(settings, _line("user.list")) == {"result": {}}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "code", "logged"),
    [
        pytest.param(RuntimeError("a secret"), "internal_error", ["control"], id="unexpected"),
        pytest.param(PermissionError("a secret"), "internal_error", ["control"], id="file"),
        pytest.param(StoreBusyError(), "store_busy", [], id="expected"),
    ],
)
def test_a_failing_command_is_answered(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: str,
    logged: list[str],
) -> None:
    """The client learns a code and a sentence, never the text of an unexpected error."""
    seen: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _: seen.append(where))

    async def perform(*_: object) -> dict[str, object]:
        raise error

    monkeypatch.setattr(commands, "perform", perform)

    async def run() -> None:
        async with _served(settings):
            answer = await _ask(settings, _line("user.list"))
            assert answer["error"]["code"] == code
            assert "secret" not in answer["error"]["detail"]

    asyncio.run(run())
    assert seen == logged


def test_a_socket_that_cannot_be_made_is_an_error(settings: Settings) -> None:
    """What stands in its place and is no file is left alone."""
    settings.control_socket.mkdir()

    async def run() -> None:
        async with open_room(settings) as room:
            with pytest.raises(OSError, match="directory"):
                async with serve_control(room):
                    raise AssertionError

    asyncio.run(run())
    assert settings.control_socket.is_dir()


def test_a_socket_that_cannot_be_bound_is_closed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal of the kernel leaves no descriptor behind."""
    opened: list[int] = []

    def refuse(descriptor: int, _mode: int) -> None:
        opened.append(descriptor)
        raise PermissionError

    monkeypatch.setattr(os, "fchmod", refuse)

    async def run() -> None:
        async with open_room(settings) as room:
            with pytest.raises(PermissionError):
                async with serve_control(room):
                    raise AssertionError
            with pytest.raises(OSError, match="descriptor"):
                os.fstat(opened[0])

    asyncio.run(run())
