"""A worker process as its parent has it, and the socket between the two.

Over it the worker is told its work, once; and it ends with the parent, which the worker sees.
Nothing but the standard library is loaded here: a server starts its first worker before it
reads its own settings, so that both load their programs at the same time.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from app.project import PROJECT_FOLDER

WORKER_COMMAND: Final = (sys.executable, "-m", "app.cli.worker")
"""Argument vector of the program's own worker."""
_STDIN: Final = 0
_ORDERS_BYTES_MAX: Final = 256 * 1024


class Orders(NamedTuple):
    """What a worker is told before it does anything."""

    settings: str
    """As JSON; none of them is a secret."""
    place: int
    """Its place among the workers, from 0."""
    listener: socket.socket
    """The listening socket, which all workers share."""


class WorkerProcess:
    """A worker that was started; for one thread."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it; it loads its program and waits for its orders.

        Args:
            command: Its argument vector. It runs in the project's folder, so that
                `-m app` finds this app wherever the caller stands; its stdin is the socket.
        """
        self.started_s = time.monotonic()
        self._mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its, _interrupts_held_back():
            self._process = subprocess.Popen(command, cwd=PROJECT_FOLDER, stdin=its.fileno())  # noqa: S603 - the program's own command

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def order(self, orders: Orders) -> None:
        """Tell it its work; of one that is dead already, `poll` tells.

        Args:
            orders: All of it; their socket stays the caller's too.
        """
        words = f"{orders.place} {orders.settings}".encode()
        if self.poll() is not None:
            return
        with contextlib.suppress(ConnectionError):
            socket.send_fds(self._mine, [words], [orders.listener.fileno()])

    def poll(self) -> int | None:
        """Its exit code, a signal's as its negative; None while it lives."""
        code = self._process.poll()
        if code is not None:
            self._mine.close()
        return code

    def terminate(self) -> None:
        """Ask it to stop, unless it has."""
        self._process.terminate()

    def kill(self) -> int:
        """End it, unless it has; its exit code."""
        self._process.kill()
        self._mine.close()
        return self._process.wait()


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Hold Ctrl-C back here for a moment, and in what is started until it is ready to hear it.

    A terminal sends it to every process; the parent's word is what ends a worker that loads.

    Yields:
        Nothing.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear_interrupts() -> None:
    """From now on this worker hears Ctrl-C, whose handlers stand."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def receive() -> Orders | None:
    """Wait for this worker's orders; None when its parent ended before it gave any."""
    with socket.socket(fileno=os.dup(_STDIN)) as parent:
        words, descriptors, _, _ = socket.recv_fds(
            parent, _ORDERS_BYTES_MAX, 1, socket.MSG_CMSG_CLOEXEC
        )
    if not words:
        return None
    place, _, settings = words.decode().partition(" ")
    return Orders(settings, int(place), socket.socket(fileno=descriptors[0]))


def wait_for_parents_end() -> None:
    """Return when this worker's parent has ended, however it did."""
    os.read(_STDIN, 1)
