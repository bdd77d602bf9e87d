"""The serving parent and its workers, as real processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app import cli, telemetry
from app.cli import supervisor, worker
from app.cli.channel import WorkerProcess
from app.db.file_lock import FileLock
from app.errors.starting import StartError
from app.project import PROJECT_FOLDER
from app.settings import Settings
from tests.support import measuring

pytestmark = pytest.mark.timeout(60)

_PARENT = """
import os, signal, sys
from pathlib import Path
from app import telemetry
from app.cli import supervisor
from app.errors.starting import StartError
from app.settings import Settings

def prepare(settings):
    (settings.root / "prepared").touch()
    if (settings.root / "stop").exists():
        os.kill(os.getpid(), signal.SIGTERM)

settings = Settings.model_validate_json(sys.argv[1])
telemetry.configure()
try:
    code = supervisor.run(settings, prepare=prepare, worker_command=sys.argv[2:])
except StartError as error:
    sys.exit(f"{type(error).__name__} {error}")
sys.exit(code)
"""

_WORKER = """
import ctypes, json, os, resource, sys, time
from app.cli.worker import run_worker

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        if (settings.root / "unfit").exists():
            raise RuntimeError
        await send({"type": "lifespan.startup.complete"})
        await receive()
        while (settings.root / "hang").exists():
            time.sleep(0.1)
        (settings.root / f"closed-{os.getpid()}").touch()
        await send({"type": "lifespan.shutdown.complete"})
        return
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    body = {
        "pid": os.getpid(),
        "umask": os.umask(0o077),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
        "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
        "all_files": files[0] == files[1],
    }
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})

def create_app(given):
    global settings
    settings = given
    return app

sys.exit(run_worker(create_app))
"""

_DEAF = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('{"event": "deaf"}', file=sys.stderr, flush=True)
time.sleep(60)
"""

_Start = Callable[..., "_Server"]


class _Server:
    """A server of a root in a process of its own, and what it and its workers say."""

    def __init__(self, root: Path, command: list[str], **chosen: int) -> None:
        settings = Settings.load(root=root, **{"port": 0, **chosen})
        self.process = subprocess.Popen(  # noqa: S603 - the test's own program
            [sys.executable, "-c", _PARENT, settings.model_dump_json(), *command],
            cwd=PROJECT_FOLDER,
            env=measuring.measured(),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.said: list[str] = []

    def _lines(self) -> Iterator[str]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.strip())
            yield self.said[-1]

    def wait_for(self, event: str) -> dict[str, int]:
        """Read on until an event comes."""
        for line in self._lines():
            if line.startswith("{") and (facts := json.loads(line))["event"] == event:
                return dict(facts)
        raise AssertionError(self.said)

    def end(self) -> int:
        """Read until parent and workers are gone; the parent's exit code."""
        for _ in self._lines():
            continue
        return self.process.wait(30)

    def kill(self) -> None:
        """Make an end of it and of its workers, whatever they do."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()
            assert self.process.stderr is not None
            self.process.stderr.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[_Start]:
    """Starts servers of one root; all are gone after the test."""
    servers: list[_Server] = []

    def start(*command: str, **chosen: int) -> _Server:
        words = [sys.executable, *(command or ("-c", _WORKER))]
        servers.append(_Server(tmp_path, words, **chosen))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


def _ask(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
        return dict(json.load(answer))


def test_a_server_answers_until_sigterm(start: _Start, tmp_path: Path) -> None:
    """The root is prepared, a worker answers, SIGTERM closes it in order, all exit with 0."""
    server = start()
    port = server.wait_for("serving")["port"]
    pid = _ask(port)["pid"]
    assert (tmp_path / "prepared").exists()
    server.process.terminate()
    ended = server.wait_for("worker_ended")
    assert (ended["worker_pid"], ended["code"]) == (pid, 0)
    assert server.end() == 0
    assert (tmp_path / f"closed-{pid}").exists()


def test_processes_and_files_are_for_the_service_alone(start: _Start, tmp_path: Path) -> None:
    """A worker leaves no core, makes private files and may open all it can; database/ is 0700."""
    (tmp_path / "database").mkdir(mode=0o755)
    facts = _ask(start().wait_for("serving")["port"])
    del facts["pid"]
    assert facts == {"umask": 0o077, "core": 0, "dumpable": 0, "all_files": True}
    assert (tmp_path / "database").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "database" / ".lock").stat().st_mode & 0o777 == 0o600


def test_ctrl_c_on_a_terminal_stops_in_order(start: _Start, tmp_path: Path) -> None:
    """SIGINT to the whole group is one stop, not two, and its exit code is 0."""
    server = start()
    pid = _ask(server.wait_for("serving")["port"])["pid"]
    os.killpg(server.process.pid, signal.SIGINT)
    assert server.end() == 0
    assert (tmp_path / f"closed-{pid}").exists()


def test_a_signal_while_preparing_is_honoured_after_it(start: _Start, tmp_path: Path) -> None:
    """A stop that comes before the first worker is not lost."""
    (tmp_path / "stop").touch()
    server = start()
    assert server.end() == 0
    assert "stopped" in server.said[-1]


def test_a_dead_worker_is_replaced(start: _Start) -> None:
    """Each place is filled again, and the port answers all the while."""
    server = start(workers=2)
    port = server.wait_for("serving")["port"]
    first = [server.wait_for("worker_started") for _ in range(2)]
    assert [worker["index"] for worker in first] == [0, 1]
    os.kill(first[1]["worker_pid"], signal.SIGKILL)
    assert server.wait_for("worker_ended")["code"] == -signal.SIGKILL
    assert server.wait_for("worker_started")["index"] == 1
    os.kill(first[0]["worker_pid"], signal.SIGKILL)
    assert _ask(port)["pid"] not in {worker["worker_pid"] for worker in first}
    server.process.terminate()
    assert server.end() == 0


@pytest.mark.parametrize(
    ("lived_s", "code", "deaths"),
    [
        pytest.param(0.5, 1, 3, id="died young"),
        pytest.param(60.0, 3, 3, id="could not start, slowly"),
        pytest.param(60.0, 1, 0, id="died at work"),
    ],
)
def test_only_deaths_at_the_start_are_counted(lived_s: float, code: int, deaths: int) -> None:
    """A worker that died at its work is replaced at once, and earlier deaths are forgotten."""
    command = [sys.executable, "-c", f"raise SystemExit({code})"]
    process = WorkerProcess(command)
    while process.poll() is None:
        time.sleep(0.01)
    now_s = time.monotonic()
    process.started_s = now_s - lived_s
    place = supervisor._Place(0, process, quick_deaths=2)
    supervisor._Crew._mourn(place)
    assert place.process is None
    assert place.quick_deaths == deaths
    assert (place.due_s > now_s + 0.3) is bool(deaths)


@pytest.mark.parametrize("code", [1, 3])
def test_a_worker_that_cannot_start_ends_the_server(start: _Start, code: int) -> None:
    """After five deaths at the start the server gives up with 3."""
    server = start("-c", f"raise SystemExit({code})")
    assert server.wait_for("gave_up")["deaths"] == 5
    assert server.end() == 3
    assert sum("worker_started" in line for line in server.said) == 5


@pytest.mark.long
def test_an_application_that_cannot_start_ends_the_server(start: _Start, tmp_path: Path) -> None:
    """A failing lifespan is a worker's exit with 3, however long it took."""
    (tmp_path / "unfit").touch()
    server = start()
    assert server.wait_for("worker_ended")["code"] == 3
    assert server.end() == 3


def test_a_deaf_worker_is_killed(start: _Start) -> None:
    """Who has not ended when the time is over is killed, and the stop is still in order."""
    server = start("-c", _DEAF, stop_s=1)
    server.wait_for("deaf")
    server.process.terminate()
    assert server.wait_for("worker_ended")["code"] == -signal.SIGKILL
    assert server.end() == 0


@pytest.mark.parametrize(
    "hangs", [pytest.param(False, id="in order"), pytest.param(True, id="hung")]
)
def test_workers_end_with_a_killed_parent(start: _Start, tmp_path: Path, hangs: bool) -> None:  # noqa: FBT001 - a parameter
    """Orphans end by themselves, hung ones too, and the next server waits for them."""
    server = start(stop_s=2)
    port = server.wait_for("serving")["port"]
    pid = _ask(port)["pid"]
    if hangs:
        (tmp_path / "hang").touch()
    server.process.kill()
    server.process.wait()
    with pytest.raises(OSError, match=r"refused|reset"):  # noqa: PT012 - until it is so
        while True:
            _ask(port)
    assert Path(f"/proc/{pid}").exists() or not hangs
    following = start(stop_s=15)
    assert following.wait_for("serving")["pid"] == following.process.pid
    assert server.end() == -signal.SIGKILL
    assert (tmp_path / f"closed-{pid}").exists() is not hangs


def test_a_second_server_is_refused_at_once(start: _Start) -> None:
    """Who comes second is told the process id of the first and touches nothing."""
    first = start()
    first.wait_for("serving")
    second = start()
    assert second.end() == 1
    refusal = "AlreadyServingError Another process serves this root."
    assert second.said == [f"{refusal} Its process id is {first.process.pid}."]


def test_a_worker_that_does_not_end_keeps_the_next_server_out(
    start: _Start, tmp_path: Path
) -> None:
    """While any worker of an earlier server lives, none is served beside it."""
    (tmp_path / "database").mkdir()
    lock = FileLock(tmp_path / "database" / ".workers.lock")
    lock.acquire_shared()
    server = start(stop_s=1)
    assert server.end() == 1
    assert "A worker of an earlier server does not end." in server.said[-1]
    assert not (tmp_path / "prepared").exists()
    lock.close()


def test_a_taken_port_is_told(start: _Start, tmp_path: Path) -> None:
    """Another listener on the port is named before anything is prepared."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = start(port=port)
        assert server.end() == 1
    assert f"StartError The service cannot start. 127.0.0.1 port {port}: " in server.said[-1]
    assert not (tmp_path / "prepared").exists()


@pytest.mark.parametrize(
    ("host", "words"),
    [
        pytest.param("nowhere.invalid", "nowhere.invalid port 0: ", id="unknown name"),
        pytest.param("x" * 64, "port 0: Not an address.", id="no name at all"),
    ],
)
def test_a_host_that_is_none_is_told(host: str, words: str) -> None:
    """A host that cannot be listened on is a clear refusal."""
    with pytest.raises(StartError) as caught:
        supervisor._bind(Settings(host=host, port=0))
    assert words in caught.value.reason


def test_a_root_that_is_none_is_told(tmp_path: Path) -> None:
    """A missing root, and a file in the place of database/, are refused; nothing is made."""
    with (
        pytest.raises(StartError, match="does not exist"),
        supervisor.root_taken(Settings(root=tmp_path / "absent")),
    ):
        raise AssertionError
    (tmp_path / "database").touch()
    with pytest.raises(StartError, match="exists"), supervisor.root_taken(Settings(root=tmp_path)):
        raise AssertionError
    assert [file.name for file in tmp_path.iterdir()] == ["database"]
    long = Settings(root=tmp_path / ("x" * 256))
    with pytest.raises(StartError, match="too long"), supervisor.root_taken(long):
        raise AssertionError


@pytest.fixture
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "configure", lambda: None)


@pytest.mark.usefixtures("_quiet")
def test_options_come_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`serve` hands its options on as settings, and its exit code back."""
    monkeypatch.setenv("STRONGROOM_PORT", "1")
    monkeypatch.setenv("STRONGROOM_WORKERS", "2")
    seen: list[Settings] = []

    def run(settings: Settings, **_: object) -> int:
        seen.append(settings)
        return 3

    monkeypatch.setattr(supervisor, "run", run)
    options = ["serve", "--root", str(tmp_path), "--port", "9", "--instance-key-file", "/k"]
    assert CliRunner().invoke(cli.build(), options).exit_code == 3
    (settings,) = seen
    assert (settings.root, settings.port, settings.workers) == (tmp_path, 9, 2)
    assert settings.instance_key == Path("/k")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(["serve", "--root", "/absent"], 3, "does not exist", id="cannot"),
        pytest.param(["serve", "--workers", "0"], 2, "--workers", id="usage"),
        pytest.param(["fly"], 2, "fly", id="no such command"),
    ],
)
def test_exit_codes_tell_usage_from_cannot(words: list[str], code: int, says: str) -> None:
    """`python -m app` exits with 2 for a wrong call, 3 for one that cannot be done."""
    ended = subprocess.run(  # noqa: S603 - the program under test
        [sys.executable, "-m", "app", *words],
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unexpected_error_exits_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw goes to the log by type, not to the screen by text."""
    seen: list[str] = []

    def build() -> Callable[[], None]:
        def fail(**_: object) -> None:
            raise OSError

        return fail

    monkeypatch.setattr(telemetry, "configure", lambda **_: None)
    monkeypatch.setattr(cli, "build", build)
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _: seen.append(where))
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 3
    assert seen == ["command"]


@pytest.mark.parametrize("ends", ["root is ready", "asked to stop"])
def test_a_worker_waits_until_the_root_is_ready(tmp_path: Path, ends: str) -> None:
    """It loads its program while the parent prepares, and opens nothing before."""
    gate, mine = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert gate.try_exclusive()
    asked = threading.Event()
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(worker._let_in(mine, asked)))
    waiting.start()
    waiting.join(0.05)
    assert answers == []
    if ends == "root is ready":
        gate.release()
    else:
        asked.set()
    waiting.join(10)
    assert answers == [ends == "root is ready"]
    gate.close()
    mine.close()
