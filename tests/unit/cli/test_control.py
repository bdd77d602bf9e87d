"""How a command reaches the service."""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import control, supervisor
from app.cli.control import NoAnswerError, RefusedError
from app.errors.starting import AlreadyServingError, StartError
from app.settings import Settings
from tests.unit.cli.conftest import Terminal

pytestmark = pytest.mark.timeout(60)


@contextlib.contextmanager
def listening(settings: Settings, reply: bytes) -> Iterator[list[bytes]]:
    """A server of the socket that says one thing; what it was asked."""
    settings.database.mkdir(exist_ok=True)
    folder = os.open(settings.database, os.O_PATH)
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/control.sock")
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            with client, client.makefile("rb") as lines:
                if reply != b"hang up":
                    asked.append(lines.readline())
                client.sendall(reply.removeprefix(b"hang up"))

        thread = threading.Thread(target=serve)
        thread.start()
        yield asked
        thread.join()
    os.close(folder)
    settings.control_socket.unlink()


def test_a_running_server_is_asked(terminal: Terminal) -> None:
    """The command goes to it whole, and nothing is done here."""
    with listening(terminal.settings, b'{"result": {"x": 1}}\n') as asked:
        assert control.perform(terminal.settings, "lock", {"user": "ana"}) == {"x": 1}
    assert json.loads(asked[0]) == {"command": "lock", "arguments": {"user": "ana"}}
    assert not terminal.settings.system_file.exists()


def test_a_refusal_is_told_as_the_server_says_it(terminal: Terminal) -> None:
    """Code and sentence are the server's; exit code 2 is for what cannot be taken."""
    for code, ends in (("store_busy", 3), ("weak_password", 2)):
        refusal = {"error": {"code": code, "detail": "So it is."}}
        reply = json.dumps(refusal).encode() + b"\n"
        told = pytest.raises(RefusedError, match=r"^So it is\.$")
        with listening(terminal.settings, reply), told:
            control.perform(terminal.settings, "lock", {"user": "ana"})
        with listening(terminal.settings, reply):
            assert terminal.answer("lock", "ana", code=ends) == refusal


@pytest.mark.parametrize("reply", [b"", b'{"result": ', b"hang up"])
def test_a_server_that_goes_away_is_told(terminal: Terminal, reply: bytes) -> None:
    """It is not known whether the command was done, so it is not done again here."""
    with listening(terminal.settings, reply), pytest.raises(NoAnswerError, match="look whether"):
        control.perform(terminal.settings, "lock", {"user": "ana"})
    assert not terminal.settings.system_file.exists()


def test_a_root_that_is_held_is_not_entered(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has it and does not listen: after a while that is said."""
    monkeypatch.setattr(control, "_CONNECT_S", 0.05)
    monkeypatch.setattr(control, "_PAUSE_S", 0.01)
    with supervisor.root_taken(terminal.settings), pytest.raises(AlreadyServingError) as caught:
        control.perform(terminal.settings, "lock", {"user": "ana"})
    assert str(os.getpid()) in caught.value.reason
    assert not terminal.settings.system_file.exists()


def test_a_server_that_starts_is_waited_for(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its root is taken before its socket listens."""
    with contextlib.ExitStack() as later:

        def listen(_: float) -> None:
            later.enter_context(listening(terminal.settings, b'{"result": {}}\n'))

        monkeypatch.setattr(time, "sleep", listen)
        with supervisor.root_taken(terminal.settings):
            assert control.perform(terminal.settings, "lock", {"user": "ana"}) == {}


def test_a_stale_socket_is_nobody(terminal: Terminal) -> None:
    """What a killed server left does not keep a command from taking the root."""
    terminal.settings.database.mkdir()
    folder = os.open(terminal.settings.database, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(f"/proc/self/fd/{folder}/control.sock")
    os.close(folder)
    assert control.perform(terminal.settings, "user.list", {}) == {"users": []}


def test_what_the_box_refuses_is_told(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder or socket that is not this user's, a file in the folder's place."""
    terminal.settings.database.touch()
    with pytest.raises(StartError, match="database: Not a directory"):
        control.perform(terminal.settings, "user.list", {})
    terminal.settings.database.unlink()
    terminal.settings.database.mkdir()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        with pytest.raises(StartError, match="control socket: Permission denied"):
            control.perform(terminal.settings, "user.list", {})
    with monkeypatch.context() as patch:
        patch.setattr("app.bridge.commands.perform", refuse)
        with pytest.raises(StartError, match="Permission denied"):
            control.perform(Settings(root=tmp_path), "user.list", {})
