"""The whole service in processes of its own, as integration tests drive it."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from app.project import PROJECT_FOLDER
from app.settings import Settings
from tests.support import measuring
from tests.support.serve_cheap import EVERYBODY, kill_file

PASSWORD: Final = "a fine long password"
_WAIT_S = 60


class LiveService:
    """A server on a root: real workers, real HTTP, cheap key derivation.

    Used as a context it is started at the beginning and killed at the end.
    """

    def __init__(
        self,
        root: Path,
        workers: int = 1,
        kill_at: str | None = None,
        descriptors: int | None = None,
        *,
        measured: bool = False,
        **chosen: float | str | None,
    ) -> None:
        self.settings = Settings.model_validate(
            {"root": root, "port": 0, "workers": workers, **chosen}
        )
        """Any field may be chosen by name."""
        self.kill_at = kill_at
        """The point at which a worker kills itself; takes effect at the next start."""
        self.descriptors = descriptors
        """RLIMIT_NOFILE of every process; None leaves it as it is."""
        self.measured = measured
        """Whether the lines that it runs count as covered."""
        self.log: list[str] = []
        """Every line that parent and workers wrote, over all starts."""
        self.process: subprocess.Popen[str] | None = None
        self.client = httpx.Client(timeout=_WAIT_S, trust_env=False)
        """Speaks to the server; its base URL is set at each start."""
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.kill()
        self.client.close()

    def start(self) -> Self:
        """Start it and wait until it is ready to answer."""
        self.spawn()
        port = self.wait_for("serving")["port"]
        self.client.base_url = httpx.URL(f"http://127.0.0.1:{port}")
        # The parent listens already, so this waits for the first worker by itself.
        ready = self.client.get("/readyz")
        assert ready.status_code == 200, self.log
        return self

    def spawn(self) -> "subprocess.Popen[str]":
        """Start it and wait for nothing; the parent."""
        command = [sys.executable, "-m", "tests.support.serve_cheap", "serve"]
        command += ["--settings", self.settings.model_dump_json()]
        command += ["--kill-at", self.kill_at or ""]
        command += ["--descriptors", str(self.descriptors or 0)]
        self._events = queue.SimpleQueue()
        self.process = subprocess.Popen(  # noqa: S603 - the project's own program
            command,
            cwd=PROJECT_FOLDER,
            env=measuring.measured() if self.measured else None,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self.process, self._events))
        self._reader.start()
        return self.process

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next event of this name in the log; events before it are passed over."""
        while facts := self._events.get(timeout=_WAIT_S):
            if facts["event"] == event:
                return facts
        raise AssertionError(self.log)

    def stop(self) -> int:
        """Stop it in order; the parent's exit code."""
        assert self.process is not None
        self.process.terminate()
        return self._end(self.process)

    def kill_once(self, point: str, *, everybody: bool) -> None:
        """Have the worker that reaches this point next end itself, or the whole server."""
        file = kill_file(self.settings.root)
        file.write_text(f"{point} {EVERYBODY}" if everybody else point)

    def kill(self) -> None:
        """Make an end of parent and workers at once, as a power cut does."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self._end(self.process)

    def _end(self, process: subprocess.Popen[str]) -> int:
        code = process.wait(_WAIT_S)
        assert self._reader is not None
        self._reader.join(_WAIT_S)  # the workers' ends of the pipe are closed with them
        self.process = None
        return code

    def _read(
        self, process: subprocess.Popen[str], events: queue.SimpleQueue[dict[str, Any] | None]
    ) -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                self.log.append(line)
                if line.startswith("{"):
                    events.put(json.loads(line))
        events.put(None)

    def workers(self) -> list[int]:
        """Process ids of the workers that live now."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    @property
    def database(self) -> Path:
        """The folder of its data."""
        return self.settings.database

    def set_up(
        self, username: str = "ana", password: str = PASSWORD, **more: str | bool
    ) -> dict[str, Any]:
        """Make the first administrator with the setup token; the answer's body."""
        token = self.settings.setup_token_file.read_text().strip()
        body = {"setup_token": token, "username": username, "password": password, **more}
        made = self.client.post("/api/setup", json=body)
        assert made.status_code == 201, made.text
        return dict(made.json())

    def sign_in(self, username: str = "ana", password: str = PASSWORD) -> dict[str, str]:
        """Sign in; the headers of every further call."""
        body = {"username": username, "password": password}
        made = self.client.post("/api/session", json=body)
        assert made.status_code == 201, made.text
        return {"Authorization": f"Bearer {made.json()['token']}"}
