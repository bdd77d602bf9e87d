"""The serving parent: takes the root, prepares it, keeps the workers alive, stops them.

The parent listens but answers nothing, and holds no database handle while a worker
serves. Workers are spawned, never forked. A worker that dies is replaced; should the parent
die, its end of a pipe closes with it, and the workers see that and end.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app import telemetry
from app.cli.channel import Orders, WorkerProcess
from app.db.file_lock import FileLock
from app.errors.starting import AlreadyServingError, StartError
from app.settings import Settings

EXIT_FINE = 0
EXIT_FOUND = 1
EXIT_USAGE = 2
EXIT_CANNOT = 3

_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
_BACKLOG = 2048
_PR_SET_DUMPABLE = 4  # prctl(2)

_QUICK_S = 1.0
"""A worker that lived shorter died of its start, not of its work."""
_QUICK_DEATHS_MAX = 5
_FIRST_PAUSE_S = 0.1

_Listen = Callable[[float | None], frozenset[int]]
"""Waits up to so many seconds (None: for ever) and answers the signals that came."""


def run(
    settings: Settings,
    *,
    prepare: Callable[[Settings], None],
    worker_command: Sequence[str],
    first: WorkerProcess | None = None,
) -> int:
    """Serve a root until SIGTERM or SIGINT; for the main thread of a process of its own.

    Args:
        settings: Where and how to serve; handed on to each worker.
        prepare: Makes the root ready while nobody else has it; leaves no database open.
            A signal that comes meanwhile is honoured after it.
        worker_command: A worker's argument vector; it is told the rest (`channel.py`).
        first: The first worker, started already; its end is the caller's affair until this
            returns.

    Returns:
        The exit code: 0 after a signal, 3 when a worker kept dying at its start.

    Raises:
        AlreadyServingError: Another process serves this root.
        StartError: The root, the port or `prepare` stands in the way.
    """
    confine_process()
    with (
        _signals_heard() as listen,
        root_taken(settings) as gate,
        _bind(settings) as listener,
    ):

        def open_root() -> None:
            prepare(settings)
            gate.release()

        crew = _Crew(settings, worker_command, listener, listen)
        return crew.serve(open_root, first)


def confine_process() -> None:
    """Let no memory of this process reach a disk, nobody else its files; raise its handles.

    Raises:
        StartError: The kernel refuses.
    """
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # Not inherited by a new program, so each worker says so again.
    if ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        reason = "The kernel does not let it switch off core dumps."
        raise StartError(reason)


@contextlib.contextmanager
def _signals_heard() -> Iterator[_Listen]:
    """Collect the parent's signals in a pipe, so that none is lost between two looks.

    Handlers, unlike a blocked mask, are not handed on to the workers.

    Yields:
        The one way to wait.
    """
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    poll = select.poll()
    poll.register(read_end, select.POLLIN)

    def listen(timeout_s: float | None) -> frozenset[int]:
        ready = poll.poll(None if timeout_s is None else timeout_s * 1000)
        return frozenset(os.read(read_end, 4096)) if ready else frozenset()

    heard = (*_STOP_SIGNALS, signal.SIGCHLD)
    before = {number: signal.signal(number, lambda *_: None) for number in heard}
    wakeup_before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        yield listen
    finally:
        signal.set_wakeup_fd(wakeup_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read_end)
        os.close(write_end)


@contextlib.contextmanager
def root_taken(settings: Settings) -> Iterator[FileLock]:
    """Hold the root's lock, as a server or in place of one, with no earlier worker left.

    Yields:
        The workers' lock, once nobody else serves this root; held exclusively, so a worker
        waits until it is released.

    Raises:
        AlreadyServingError: Another process holds the lock.
        StartError: The root cannot be used, or a worker outlived its parent for too long.
    """
    with contextlib.ExitStack() as held:
        try:
            if not settings.root.is_dir():
                reason = f"The root folder {settings.root} does not exist; make it first."
                raise StartError(reason)
            settings.database.mkdir(mode=0o700, exist_ok=True)
            settings.database.chmod(0o700)
            lock = _open_lock(settings.lock_file, held)
            if not lock.try_exclusive():
                holder = lock.holder()
                raise AlreadyServingError(f"Its process id is {holder}." if holder else "")
            lock.write_holder(os.getpid())
            # Orphans end within stop_s of their parent, which is gone already.
            workers = _open_lock(settings.workers_lock_file, held)
            if not workers.acquire_exclusive(settings.stop_s):
                reason = "A worker of an earlier server does not end."
                raise StartError(reason)
        except OSError as error:
            reason = f"{settings.database}: {error.strerror}."
            raise StartError(reason) from error
        yield workers


def _open_lock(file: Path, held: contextlib.ExitStack) -> FileLock:
    lock = FileLock(file)
    held.callback(lock.close)
    return lock


def _bind(settings: Settings) -> socket.socket:
    """Listen, so that clients queue while the root is prepared.

    Returns:
        The listening socket.

    Raises:
        StartError: The address is unknown, taken or not allowed.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        cause = getattr(error, "strerror", None) or "Not an address"
        reason = f"{settings.host} port {settings.port}: {cause}."
        raise StartError(reason) from error


@dataclass(slots=True)
class _Place:
    """One worker's place: who is in it, or when the next one is due."""

    index: int
    process: WorkerProcess | None = None
    due_s: float = 0.0
    quick_deaths: int = 0


class _Crew:
    """The workers of one server."""

    def __init__(
        self,
        settings: Settings,
        command: Sequence[str],
        listener: socket.socket,
        listen: _Listen,
    ) -> None:
        self._settings = settings
        self._command = command
        self._listener = listener
        self._listen = listen
        self._places = [_Place(index) for index in range(settings.workers)]

    def serve(self, open_root: Callable[[], None], first: WorkerProcess | None) -> int:
        """Keep every place filled until a signal; then, or on any error, stop them all.

        Args:
            open_root: Prepares the root and lets the workers in. They are started before,
                and load their program meanwhile; but a fresh root, where the cost of a
                derivation is measured, is prepared undisturbed.
            first: A worker that was started before, for the first place; None without.

        Returns:
            The exit code.
        """
        host, port = self._listener.getsockname()[:2]
        try:
            if self._settings.system_file.exists():
                self._start(self._places[0], first)
                self._fill()
            elif first is not None:
                first.kill()
            open_root()
            telemetry.serving(host, port, len(self._places))
            return self._keep()
        finally:
            self._stop()

    def _keep(self) -> int:
        while True:
            for place in self._places:
                self._mourn(place)
                if place.quick_deaths >= _QUICK_DEATHS_MAX:
                    telemetry.gave_up(place.quick_deaths)
                    return EXIT_CANNOT
            self._fill()
            dues = [place.due_s for place in self._places if place.process is None]
            pause_s = max(0.0, min(dues) - time.monotonic()) if dues else None
            if self._listen(pause_s) & _STOP_SIGNALS:
                return EXIT_FINE

    def _fill(self) -> None:
        for place in self._places:
            if place.process is None and place.due_s <= time.monotonic():
                self._start(place)

    def _start(self, place: _Place, process: WorkerProcess | None = None) -> None:
        place.process = process or WorkerProcess(self._command)
        settings = self._settings.model_dump_json()
        place.process.order(Orders(settings, place.index, self._listener))
        telemetry.worker_started(place.process.pid, place.index)

    @staticmethod
    def _mourn(place: _Place) -> None:
        """Empty the place of a dead worker and say when the next is due."""
        if place.process is None or (code := place.process.poll()) is None:
            return
        telemetry.worker_ended(place.process.pid, code)
        now_s = time.monotonic()
        lived_s = now_s - place.process.started_s
        place.process = None
        # A slow box may take longer than that to find out that it cannot start.
        if lived_s < _QUICK_S or code == EXIT_CANNOT:
            place.due_s = now_s + _FIRST_PAUSE_S * 2**place.quick_deaths
            place.quick_deaths += 1
        else:
            place.due_s = now_s
            place.quick_deaths = 0

    def _stop(self) -> None:
        telemetry.stopping()
        alive = [place.process for place in self._places if place.process]
        for process in alive:
            process.terminate()
        deadline_s = time.monotonic() + self._settings.stop_s
        while any(process.poll() is None for process in alive):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            self._listen(left_s)
        for process in alive:
            telemetry.worker_ended(process.pid, process.kill())
        telemetry.stopped()
