"""Locks between processes: who has a store open, whose turn it is to write, who plays a role.

They are the kernel's byte-range locks, owned by an open file (`app.db.file_lock`). One owner
has a consequence: threads of one process never meet each other in the kernel, so who holds
what inside the process is kept here, under a mutex.
"""

import fcntl
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Final

from app.db.file_lock import WHOLE_FILE, is_locked, lock_range, open_lock_file, poll
from app.errors.inputs import InvalidInputError
from app.errors.stores import StoreBusyError

ROLE_LEADER: Final = 0
"""Held by the one process that does what must be done once."""

ROLE_DERIVATIONS: Final = (1, 2)
"""One byte a password derivation that may run at a time, over all processes."""

_MAX_NUMBER = 1 << 40
_AREA = 1 << 41  # wider than the numbers, so that no two areas share a byte
_STORE = 1 * _AREA
_WRITE = 2 * _AREA  # and its queue in area 3
_ROLE = 4 * _AREA  # and its queue in area 5
_USE = 6 * _AREA


def _byte(area: int, number: int) -> int:
    """The byte that stands for a number in an area."""
    if not 0 <= number <= _MAX_NUMBER:  # it would meet another area
        raise InvalidInputError
    return area + number


class _State(Enum):
    """Where this process stands with a turn.

    Either FREE -> HELD -> FREE when nobody else has it; or FREE -> ASKED -> GRANTED ->
    HELD -> FREE; or FREE -> ASKED -> FREE when nobody here wanted it any more.
    """

    FREE = auto()
    ASKED = auto()
    GRANTED = auto()
    HELD = auto()


@dataclass(slots=True)
class _Turn:
    """An exclusive byte that processes take in turns."""

    byte: int
    changed: threading.Condition
    state: _State = _State.FREE
    wanted: int = 0
    """How many threads of this process wait for it."""

    @property
    def queue(self) -> int:
        """The byte that must be held to try for the turn's own, and only meanwhile.

        The kernel wakes who waits but hands nothing over: a process that lets go and asks
        again wins almost always. Whoever waits for the turn holds the queue, so the one
        that let go stands behind it.
        """
        return self.byte + _AREA


class LockFile:
    """The byte-range locks of all stores and roles: one open file a process, thread-safe.

    Lock numbers and role indexes are 0 to 2**40, else InvalidInputError. Once closed, what
    was held is free, nothing is given any more (StoreBusyError) and releasing does nothing.
    """

    def __init__(self, path: Path) -> None:
        self._fd = open_lock_file(path)
        self._mutex = threading.Lock()
        self._closed = False
        self._shared: Counter[int] = Counter()
        self._claims: dict[int, bool] = {}  # waited for exclusively: False; held so: True
        self._turns: dict[int, _Turn] = {}
        self._askers = 0  # threads that may be blocked in the kernel, on this descriptor

    def close(self) -> None:
        """Free everything this process holds, and wake who waits with StoreBusyError."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            # Said to the kernel, not left to close(2): an asker keeps the open file alive.
            lock_range(self._fd, fcntl.F_UNLCK, 0, WHOLE_FILE)
            for turn in self._turns.values():
                if turn.state is not _State.ASKED:
                    turn.state = _State.FREE
                turn.changed.notify_all()
            self._close_unused()

    # -- who has a store open --------------------------------------------------------------

    def acquire_shared(self, lock_number: int) -> None:
        """Say that this process has the store open; counted, one release for each.

        Raises:
            StoreBusyError: Another process holds it exclusively, or this one does or waits
                to: new readers must not starve it.
        """
        byte = _byte(_STORE, lock_number)
        with self._mutex:
            if self._closed or lock_number in self._claims:
                raise StoreBusyError
            if not self._shared[lock_number] and not lock_range(self._fd, fcntl.F_RDLCK, byte):
                raise StoreBusyError
            self._shared[lock_number] += 1

    def release_shared(self, lock_number: int) -> None:
        """Take back one acquire_shared; the last one tells the other processes.

        Raises:
            RuntimeError: It was not held.
        """
        with self._mutex:
            if self._closed:
                return
            if not self._shared[lock_number]:
                message = "a shared store lock was released that was not held"
                raise RuntimeError(message)
            self._shared[lock_number] -= 1
            if not self._shared[lock_number]:
                del self._shared[lock_number]
                lock_range(self._fd, fcntl.F_UNLCK, _byte(_STORE, lock_number))

    def acquire_exclusive(self, lock_number: int, timeout_s: float) -> None:
        """Wait until no process, this one included, has the store open, and keep it so.

        Blocks: call it on a thread, never on the event loop. From now until the release
        (or the time-out) acquire_shared is refused in this process.

        Raises:
            StoreBusyError: Somebody still had it after `timeout_s` seconds; nothing changed.
        """
        byte = _byte(_STORE, lock_number)
        deadline = time.monotonic() + timeout_s
        if not poll(partial(self._claim, lock_number), deadline):
            raise StoreBusyError
        seized = False
        try:
            seized = poll(partial(self._seize, lock_number, byte), deadline)
        finally:
            if not seized:
                with self._mutex:
                    del self._claims[lock_number]
        if not seized:
            raise StoreBusyError

    def try_exclusive(self, lock_number: int) -> bool:
        """Take the store exclusively if nobody has it open; False otherwise, at once."""
        try:
            self.acquire_exclusive(lock_number, 0)
        except StoreBusyError:
            return False
        return True

    def release_exclusive(self, lock_number: int) -> None:
        """Let others open the store again.

        Raises:
            RuntimeError: It was not held.
        """
        with self._mutex:
            if self._closed:
                return
            if not self._claims.get(lock_number):
                message = "an exclusive store lock was released that was not held"
                raise RuntimeError(message)
            del self._claims[lock_number]
            lock_range(self._fd, fcntl.F_UNLCK, _byte(_STORE, lock_number))

    def _claim(self, number: int) -> bool:
        with self._mutex:
            if self._closed:
                raise StoreBusyError
            if number in self._claims:
                return False
            self._claims[number] = False
            return True

    def _seize(self, number: int, byte: int) -> bool:
        with self._mutex:
            if self._closed:
                raise StoreBusyError
            # The kernel would turn this process's own shared lock into an exclusive one.
            if self._shared[number] or not lock_range(self._fd, fcntl.F_WRLCK, byte):
                return False
            self._claims[number] = True
            return True

    def is_open(self, lock_number: int) -> bool:
        """Whether any process, this one included, has the store open; one call of the kernel."""
        byte = _byte(_STORE, lock_number)
        with self._mutex:
            if self._closed:
                return False
            is_here = self._shared[lock_number] or self._claims.get(lock_number)
            return bool(is_here) or is_locked(self._fd, byte)

    # -- who uses a store ------------------------------------------------------------------

    def note_used(self, lock_number: int) -> None:
        """Say that the store is used in this process, until `note_unused`; again is no harm."""
        self._set_use(lock_number, fcntl.F_RDLCK)

    def note_unused(self, lock_number: int) -> None:
        """Say so no more; no harm when it was not said."""
        self._set_use(lock_number, fcntl.F_UNLCK)

    def _set_use(self, lock_number: int, kind: int) -> None:
        byte = _byte(_USE, lock_number)
        with self._mutex:
            if not self._closed:
                lock_range(self._fd, kind, byte)

    def is_used_elsewhere(self, lock_number: int) -> bool:
        """Whether another process says that it uses the store."""
        byte = _byte(_USE, lock_number)
        with self._mutex:
            return not self._closed and is_locked(self._fd, byte)

    # -- whose turn it is ------------------------------------------------------------------

    @contextmanager
    def write_lock(self, lock_number: int, timeout_s: float) -> Iterator[None]:
        """Hold the store's turn to write; processes that all want it alternate.

        Blocks: for the writer thread. Held around one transaction, not around a batch of
        them. A process that is stopped while it holds or awaits the turn holds up the
        others; they still meet their deadlines.

        Raises:
            StoreBusyError: The turn did not come within `timeout_s` seconds.
        """
        with self._hold(_byte(_WRITE, lock_number), timeout_s):
            yield

    @contextmanager
    def role_lock(self, index: int, timeout_s: float) -> Iterator[None]:
        """Hold a role that processes take in turns, as write_lock does.

        Raises:
            StoreBusyError: The turn did not come within `timeout_s` seconds.
        """
        with self._hold(_byte(_ROLE, index), timeout_s):
            yield

    def try_role(self, index: int) -> bool:
        """Take a role if nobody, this process included, has it; False otherwise, at once."""
        with self._mutex:
            return self._try_turn(self._turn(_byte(_ROLE, index)))

    def release_role(self, index: int) -> None:
        """Let go of a role that try_role gave.

        Raises:
            RuntimeError: It was not held.
        """
        with self._mutex:
            turn = self._turn(_byte(_ROLE, index))
            if not self._closed and turn.state is not _State.HELD:
                message = "a role was released that was not held"
                raise RuntimeError(message)
            self._free(turn)

    @contextmanager
    def _hold(self, byte: int, timeout_s: float) -> Iterator[None]:
        deadline = time.monotonic() + timeout_s
        with self._mutex:
            turn = self._turn(byte)
            self._await_turn(turn, deadline)
        try:
            yield
        finally:
            with self._mutex:
                self._free(turn)

    def _turn(self, byte: int) -> _Turn:
        if byte not in self._turns:
            self._turns[byte] = _Turn(byte, threading.Condition(self._mutex))
        return self._turns[byte]

    def _await_turn(self, turn: _Turn, deadline: float) -> None:
        """Return once the turn is held; the mutex is let go while waiting."""
        turn.wanted += 1
        try:
            while not self._try_turn(turn):
                remaining = deadline - time.monotonic()
                if self._closed or remaining <= 0:
                    raise StoreBusyError
                if turn.state is _State.FREE:
                    self._ask(turn)
                turn.changed.wait(remaining)
        finally:
            turn.wanted -= 1
            if turn.state is _State.GRANTED and not turn.wanted:
                self._free(turn)

    def _try_turn(self, turn: _Turn) -> bool:
        if self._closed:
            return False
        granted = turn.state is _State.GRANTED
        if granted or (turn.state is _State.FREE and self._try_bytes(turn)):
            turn.state = _State.HELD
            return True
        return False

    def _try_bytes(self, turn: _Turn) -> bool:
        if not lock_range(self._fd, fcntl.F_WRLCK, turn.queue):
            return False
        try:
            return lock_range(self._fd, fcntl.F_WRLCK, turn.byte)
        finally:
            lock_range(self._fd, fcntl.F_UNLCK, turn.queue)

    def _ask(self, turn: _Turn) -> None:
        """Wait in the kernel on a thread that may be left behind.

        A blocking lock has no deadline. When all who wanted the turn have given up, the
        asker stays; the next who wants it finds ASKED and awaits the same asker. So at most
        one thread a turn touches its bytes, and what an asker gets it either hands to
        somebody here or drops while nobody here holds it.
        """
        # In line from now on if the line is empty: a thread takes a while to start, and a
        # busy holder comes round many times meanwhile. The asker's own request changes nothing.
        lock_range(self._fd, fcntl.F_WRLCK, turn.queue)
        try:
            threading.Thread(target=self._asker, args=(turn,), name="turn", daemon=True).start()
        except RuntimeError:  # no more threads
            lock_range(self._fd, fcntl.F_UNLCK, turn.queue)
            raise
        turn.state = _State.ASKED
        self._askers += 1

    def _asker(self, turn: _Turn) -> None:
        try:
            lock_range(self._fd, fcntl.F_WRLCK, turn.queue, wait=True)
            try:
                got = lock_range(self._fd, fcntl.F_WRLCK, turn.byte, wait=True)
            finally:
                lock_range(self._fd, fcntl.F_UNLCK, turn.queue)
        except OSError:
            got = False  # who wants the turn tries again, and meets the error itself
        with self._mutex:
            self._askers -= 1
            turn.state = _State.GRANTED if got else _State.FREE
            if got and (self._closed or not turn.wanted):
                self._free(turn)
            turn.changed.notify_all()
            self._close_unused()

    def _free(self, turn: _Turn) -> None:
        if turn.state in {_State.GRANTED, _State.HELD}:
            lock_range(self._fd, fcntl.F_UNLCK, turn.byte)
            turn.state = _State.FREE
            turn.changed.notify_all()

    def _close_unused(self) -> None:
        """Close the descriptor once no asker can use it: its number may be given away."""
        if self._closed and not self._askers:
            os.close(self._fd)
