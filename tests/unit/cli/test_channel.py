"""What a parent tells its worker, and how each learns of the other's end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import cli
from app.cli import channel
from app.cli.channel import WORKER_COMMAND, Orders, WorkerProcess
from app.project import PROJECT_FOLDER

pytestmark = pytest.mark.timeout(60)

_OBEDIENT = """
import sys
from app.cli import channel
orders = channel.receive()
if orders is None:
    sys.exit(5)
client, _ = orders.listener.accept()
client.sendall(f"{orders.place} {orders.settings}".encode())
client.close()
channel.wait_for_parents_end()
sys.exit(6)
"""

_HEARING = """
import signal, time
from app.cli import channel
channel.receive()
# Whoever started the tests may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
channel.hear_interrupts()
time.sleep(30)
"""

_PARENT = """
import sys
from app.cli.channel import WorkerProcess
worker = WorkerProcess(sys.argv[1:])
print("started", flush=True)
sys.stdin.read()
"""


def _ended(process: WorkerProcess) -> int:
    while (code := process.poll()) is None:
        time.sleep(0.01)
    return code


def test_orders_reach_the_worker_whole() -> None:
    """Settings of many KiB, its place, and a socket that listens."""
    settings = "{" + "\u00e4 " * 20_000 + "}"
    process = WorkerProcess([sys.executable, "-c", _OBEDIENT])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process.order(Orders(settings, 3, listener))
        with socket.create_connection(listener.getsockname()) as client:
            said = b"".join(iter(lambda: client.recv(65_536), b""))
    assert said.decode() == f"3 {settings}"
    assert process.poll() is None
    assert process.kill() == -signal.SIGKILL


@pytest.mark.parametrize("command", [WORKER_COMMAND, (sys.executable, "-c", _OBEDIENT)])
def test_a_worker_without_orders_ends_with_its_parent(command: tuple[str, ...]) -> None:
    """A parent that ends first, even killed, leaves no process and nothing said."""
    parent = subprocess.Popen(  # noqa: S603 - the project's own program
        [sys.executable, "-c", _PARENT, *command],
        cwd=PROJECT_FOLDER,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline()
    parent.kill()
    _, said = parent.communicate(timeout=30)  # at its end all who have its stderr are gone
    assert said == ""


def test_a_worker_hears_no_ctrl_c_before_it_is_ready() -> None:
    """It is held back, not lost; a terminal sends it to every process, and the parent decides."""
    process = WorkerProcess([sys.executable, "-c", _HEARING])
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process.order(Orders("{}", 0, listener))
    assert _ended(process) in {1, -signal.SIGINT}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_amid_loading_is_in_order(tmp_path: Path, number: int) -> None:
    """Nothing is said but the log, nothing left, and the exit code is 0."""
    server = subprocess.Popen(  # noqa: S603 - the program under test
        [sys.executable, "-m", "app", "serve", "--root", str(tmp_path), "--port", "0"],
        cwd=PROJECT_FOLDER,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text():
        assert server.poll() is None
        time.sleep(0.01)
    os.killpg(server.pid, number)
    _, said = server.communicate(timeout=30)
    assert server.returncode == 0
    assert "Traceback" not in said
    assert "unexpected" not in said


def test_an_interrupted_command_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends as shells have it."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "build", interrupt)
    monkeypatch.setattr(sys, "argv", ["strongroom", "user", "list"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 130


def test_a_dead_worker_is_told_nothing_and_looked_at() -> None:
    """Its exit code is there, and orders for it are no error."""
    process = WorkerProcess([sys.executable, "-c", "raise SystemExit(4)"])
    assert _ended(process) == 4
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process.order(Orders("{}", 0, listener))
    process.terminate()
    assert process.kill() == 4


@pytest.fixture
def _own_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_own_handlers")
@pytest.mark.parametrize(
    ("words", "starts"),
    [
        pytest.param(["serve", "--root", "/absent"], 1, id="serve"),
        pytest.param(["serve", "--help"], 1, id="help"),
        pytest.param(["check", "--root", "/absent"], 0, id="another command"),
    ],
)
def test_a_server_that_is_refused_leaves_no_worker(
    monkeypatch: pytest.MonkeyPatch, words: list[str], starts: int
) -> None:
    """The worker that is started before the settings are read ends with the command."""
    started: list[WorkerProcess] = []

    class Seen(WorkerProcess):
        def __init__(self, command: tuple[str, ...]) -> None:
            super().__init__(command)
            started.append(self)

    monkeypatch.setattr(channel, "WorkerProcess", Seen)
    monkeypatch.setattr(sys, "argv", ["strongroom", *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert len(started) == starts
    assert [Path(f"/proc/{process.pid}").exists() for process in started] == [False] * starts
