"""Servers in processes of their own, on a core of their own, and what they cost."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from typing_extensions import override

from app.project import PROJECT_FOLDER
from app.settings import Settings

PASSWORD: Final = "a password for the benchmark"  # noqa: S105 - of stores that are thrown away
_FIRST_ERROR: Final = 400
_CORES: Final = frozenset(os.sched_getaffinity(0))
"""Those that the benchmark was given, before it keeps to one of them."""


class Server:
    """A process that says on standard error where it listens; killed at the end of the block."""

    def __init__(
        self, command: Sequence[str], *, descriptors: int | None = None, is_pinned: bool = True
    ) -> None:
        """Remember how it is started.

        Args:
            command: Its argument vector.
            descriptors: Most files and sockets that it may have open; None leaves it.
            is_pinned: Whether it has the first core alone; False for every core there is.
        """
        self._place = pin_to_first_core if is_pinned else spread
        self._command = list(command)
        if descriptors is not None:
            self._command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "-", *command]
        self.port = 0
        self.pid = 0
        """Of the process that answers."""
        self._said: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - the project's own programs
            self._command,
            cwd=PROJECT_FOLDER,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=self._place,  # noqa: PLW1509 - before any thread is started
        )
        try:
            self.port = self._await("serving")["port"]
            self.pid = self._process.pid
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Kill it now."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _await(self, event: str) -> dict[str, Any]:
        # The order in which a starting server says things is its own.
        while event not in self._said:
            line = self._process.stderr.readline() if self._process.stderr else ""
            if not line:
                message = f"{self._command} ended without {event}"
                raise RuntimeError(message)
            if line.startswith("{"):
                facts = json.loads(line)
                self._said[facts["event"]] = facts
        return self._said[event]

    @property
    def cpu_s(self) -> float:
        """Seconds of processor time that it has taken so far."""
        # By thread, in nanoseconds; /proc/PID/stat counts ticks of ten milliseconds.
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text("ascii").split()[0]) for task in tasks) / 1e9

    @property
    def resident_kib(self) -> int:
        """Memory of it that is in RAM."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return int(status.partition("VmRSS:")[2].split()[0])

    @property
    def descriptors(self) -> int:
        """Files and sockets that it has open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


def reference() -> Server:
    """The bare framework."""
    return Server([sys.executable, "-m", "scripts.benchmark.reference"])


class Strongroom(Server):
    """The service with one worker, and a way to ask it something."""

    def __init__(
        self,
        settings: Settings,
        *,
        is_cheap: bool = True,
        descriptors: int | None = None,
        is_pinned: bool = True,
    ) -> None:
        """Remember how it is started.

        Args:
            settings: Its own; of any port.
            is_cheap: False for key derivation at the root's own cost.
            descriptors: Most files and sockets that it may have open; None leaves it.
            is_pinned: Whether it has the first core alone; False for every core there is.
        """
        self.settings = settings
        cheap = ["-m", "tests.support.serve_cheap", "serve"]
        cheap += ["--settings", settings.model_dump_json()]
        true = ["-P", "-m", "app", "serve", "--root", str(settings.root), "--port", "0"]
        command = [sys.executable, *(cheap if is_cheap else true)]
        super().__init__(command, descriptors=descriptors, is_pinned=is_pinned)

    @override
    def __enter__(self) -> Self:
        super().__enter__()
        self.pid = self._await("worker_started")["worker_pid"]
        # Whatever it logs from now on must not fill the pipe.
        threading.Thread(target=self._drain, daemon=True).start()
        self.call("GET", "/readyz")
        return self

    def _drain(self) -> None:
        for _ in self._process.stderr or ():
            continue

    def call(
        self, method: str, path: str, body: object = None, token: str | None = None
    ) -> dict[str, Any]:
        """Ask once and require a good answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = None
        if isinstance(body, str):
            content = body.encode()
        elif body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        try:
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            found = answer.read()
        finally:
            connection.close()
        if answer.status >= _FIRST_ERROR:
            message = f"{method} {path}: {answer.status} {found.decode(errors='replace')}"
            raise RuntimeError(message)
        is_json = answer.headers.get_content_type() == "application/json"
        return dict(json.loads(found)) if is_json else {}

    def set_up(self) -> str:
        """Make the first administrator; the token of a session of theirs."""
        setup_token = self.settings.setup_token_file.read_text("ascii").strip()
        body = {"setup_token": setup_token, "username": "admin", "password": PASSWORD}
        self.call("POST", "/api/setup", body)
        return self.sign_in("admin")

    def add_member(self, username: str, admin: str) -> str:
        """Make a member; the token of a session of theirs."""
        body = {"username": username, "password": PASSWORD, "role_id": "member"}
        self.call("POST", "/api/admin/users", body | {"encrypted": True}, admin)
        return self.sign_in(username)

    def sign_in(self, username: str) -> str:
        """Sign in; the session's token."""
        made = self.call("POST", "/api/session", {"username": username, "password": PASSWORD})
        return str(made["token"])


def pin_to_first_core() -> None:
    """Leave the last core to the load."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def spread() -> None:
    """Take every core again that the benchmark was given."""
    os.sched_setaffinity(0, _CORES)
