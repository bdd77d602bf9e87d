"""Open handles: a few a store, all stores together within a budget of descriptors.

A store's handles come and go; whether the store is unlocked is another matter
(`app.bridge`). Reading handles may be borrowed on the event loop without waiting
(`try_reader`); everything that opens, waits or closes runs on threads.
"""

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from app.db.budget import Pool, budget_for, descriptors_allowed
from app.db.driver_errors import StoreClosedError
from app.db.place import Place, require_place
from app.db.sqlite import BUSY_WAIT_S, Connection
from app.errors.stores import (
    OutOfHandlesError,
    StoreDamagedError,
    StoreError,
    StoreMissingError,
    StoreSwappedError,
)

__all__ = ["Handles", "Pool", "StoreClosedError", "budget_for", "descriptors_allowed"]

READERS_MAX: Final = 2
"""Reading handles a store."""
_WAIT_STEP_S: Final = 0.005


class Handles:
    """The handles on one face of one store.

    The event loop takes and returns reading handles without a lock: `_free` is a deque,
    whose pop and append are atomic, and who pops a handle has it alone. Closing is the same:
    it pops too, and a store is idle when it got every handle there is.
    """

    def __init__(
        self,
        pool: Pool,
        open_handle: Callable[[bool], Connection],
        *,
        close_unwritten: Callable[[Connection], None] = Connection.close,
        is_pinned: bool = False,
    ) -> None:
        """Hold none yet.

        Args:
            pool: Whose budget they count in.
            open_handle: Opens one; True asks for a reading one. Runs on threads.
            close_unwritten: Closes one of a file that damage was met in, and leaves the log
                beside it where it is: it may be another file's.
            is_pinned: True for a store that is never evicted.
        """
        self._pool = pool
        self._open_handle = open_handle
        self._close_unwritten = close_unwritten
        self._is_suspect = False
        self.is_pinned = is_pinned
        self.last_used = time.monotonic()
        """Monotonic seconds of the last time a handle was lent."""
        self.last_wanted = self.last_used
        """The same, but for those who only watch the store."""
        self.is_lost = False
        """Whether the file was deleted, exchanged or cut under these handles: all of them go."""
        self._standing: tuple[Path, Place] | None = None  # the file they are on, and where
        self._found_at = -math.inf  # monotonic seconds, when it was found there
        self._changed = threading.Condition()
        self._closed = False
        self._free: deque[Connection] = deque()
        self._damaged: deque[Connection] = deque()
        self._readers: list[Connection] = []
        self._readers_opening = 0
        self._writer: Connection | None = None
        self._writer_used = self.last_used  # as that, but of the writing handle alone
        self._is_writer_lent = False
        self._waiting = 0
        self._count = 0  # handles open or opening
        self._count_max = 0  # since there were none
        pool.add(self)

    def try_reader(self, *, is_watch: bool = False) -> Connection | None:
        """A free reading handle at once, or None; for the event loop, so without any lock."""
        if self._closed:
            return None
        try:
            connection = self._free.pop()
        except IndexError:
            return None
        self._note_use(is_watch=is_watch)
        return connection

    def glance_reader(self) -> Connection | None:
        """As `try_reader`, but no use at all: neither of the store nor of its handles."""
        if self._closed:
            return None
        try:
            return self._free.pop()
        except IndexError:
            return None

    def _note_use(self, *, is_watch: bool) -> None:
        self.last_used = time.monotonic()
        if not is_watch:
            self.last_wanted = self.last_used

    def want(self) -> None:
        """Note that the store is used, which keeps it from being locked as idle."""
        self.last_wanted = time.monotonic()

    def give_back(self, connection: Connection) -> None:
        """Return a reading handle; a damaged one is closed by the next thread that comes."""
        self._is_suspect = self._is_suspect or connection.is_damaged
        is_spent = connection.is_damaged or self.is_lost
        (self._damaged if is_spent else self._free).append(connection)
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    @contextlib.contextmanager
    def borrow_reader(self, *, is_watch: bool = False) -> Iterator[Connection]:
        """Lend a reading handle that may wait for locks, opening or awaiting one as needed.

        Args:
            is_watch: That this is no use of the store, which keeps it from no idle locking.

        Yields:
            A handle for this thread alone.

        Raises:
            StoreClosedError: The store was closed for good.
            OutOfHandlesError: The budget has no room.
        """
        connection = self._take_reader(is_watch=is_watch)
        try:
            connection.set_wait(BUSY_WAIT_S)
            self.require_in_place()
            yield connection
        finally:
            connection.set_wait(0)
            self.give_back(connection)

    def _take_reader(self, *, is_watch: bool) -> Connection:
        self._drop_damaged()
        while True:
            connection = self.try_reader(is_watch=is_watch)
            if connection is not None:
                return connection
            with self._changed:
                self._require_open()
                if len(self._readers) + self._readers_opening < READERS_MAX:
                    self._readers_opening += 1
                    break
                self._wait()
        try:
            connection = self._open(reader=True)
            self._note_use(is_watch=is_watch)
            with self._changed:
                self._readers.append(connection)
        finally:
            with self._changed:
                self._readers_opening -= 1
                self._changed.notify_all()
        return connection

    @contextlib.contextmanager
    def borrow_writer(self) -> Iterator[Connection]:
        """Lend the writing handle, opening it as needed; to one at a time.

        Yields:
            A handle for this thread alone, outside of any transaction.

        Raises:
            StoreClosedError: The store was closed for good.
            OutOfHandlesError: The budget has no room.
        """
        with self._changed:
            while self._is_writer_lent and not self._closed:
                self._wait()
            self._require_open()
            self._is_writer_lent = True
        try:
            if self._writer is None:
                self._writer = self._open(reader=False)
            self._note_use(is_watch=True)
            yield self._writer
        finally:
            try:
                self._drop_spent_writer()
            finally:
                with self._changed:
                    self._writer_used = time.monotonic()
                    self._is_writer_lent = False
                    self._changed.notify_all()

    def _drop_spent_writer(self) -> None:
        """Close the writing handle if it is of no use, or could not end its transaction."""
        spent = self._writer
        self._is_suspect = self._is_suspect or (spent is not None and spent.is_damaged)
        if spent is not None and (spent.is_damaged or self.is_lost or spent.in_transaction):
            self._writer = None
            self._close_all([spent])

    def close_idle(self) -> bool:
        """Close every handle if none is lent; False when one is, or there is none."""
        with self._changed:
            closing = self._take_all()
        self._close_all(closing or [])
        return bool(closing)

    def close_idle_writer(self, idle_s: float = 0) -> None:
        """Close the writing handle if it is not lent and was not for so many seconds."""
        with self._changed:
            is_rested = self._writer_used <= time.monotonic() - idle_s
            if self._is_writer_lent or self._writer is None or not is_rested:
                return
            writer, self._writer = self._writer, None
        self._close_all([writer])

    def close(self, *, interrupt: bool = False) -> None:
        """Refuse new borrowers, wait for the present ones, and close everything for good.

        Args:
            interrupt: Stop reading statements that run; a write is always let finish.
        """
        with self._changed:
            self._closed = True
            while (closing := self._take_all()) is None:
                for reader in self._readers if interrupt else ():
                    reader.interrupt()
                self._wait()
        self._close_all(closing)
        with self._changed:
            # Another thread may be closing some still: idle ones evicted, or damaged ones.
            while self._count:
                self._wait()
        self._pool.remove(self)

    def _take_all(self) -> list[Connection] | None:
        """Take every handle out of use; None, with nothing taken, while one is lent or opening."""
        taken: list[Connection] = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._free.pop())
        lent = len(self._readers) - len(taken) - len(self._damaged)
        if self._is_writer_lent or self._readers_opening or lent:
            self._free.extend(taken)
            return None
        taken += self._damaged
        taken += [self._writer] if self._writer is not None else []
        self._damaged.clear()
        self._readers.clear()
        self._writer = None
        return taken

    def require_in_place(self, within_s: float = 0) -> None:
        """Refuse to go on when the file at the path is no longer the one that is open.

        Args:
            within_s: Seconds for which it counts that it was found there.

        Raises:
            StoreMissingError: It was deleted or moved away.
            StoreSwappedError: It was exchanged.
            StoreDamagedError: It was cut.
        """
        now = time.monotonic()
        if now - self._found_at < within_s:
            return
        try:
            if self._standing is not None:
                require_place(*self._standing)
        except StoreError:
            self.is_lost = True
            raise
        self._found_at = now

    def _drop_damaged(self) -> None:
        """Close the handles that met damage, for a new one reads what is sound."""
        with contextlib.suppress(IndexError):
            while True:
                connection = (self._free if self.is_lost and self._free else self._damaged).pop()
                with self._changed:
                    self._readers.remove(connection)
                self._close_all([connection])

    def _close_all(self, closing: list[Connection]) -> None:
        close = self._close_unwritten if self._is_suspect else Connection.close
        for connection in closing:
            close(connection)
        self._pool.refund(self._count_down(len(closing)))

    def _open(self, *, reader: bool) -> Connection:
        """Open one handle within the budget, on the file that the others have."""
        cost = self._count_up()
        try:
            self._pool.reserve(cost, self)
        except BaseException:
            self._count_down(1)
            raise
        try:
            connection = self._open_now(reader)
        except BaseException as error:
            self._pool.refund(self._count_down(1))
            if isinstance(error, StoreDamagedError):
                self.require_in_place()  # else what cannot be opened is another file
            self.is_lost = self.is_lost or isinstance(error, StoreMissingError | StoreSwappedError)
            raise
        self.is_lost = False
        return connection

    def _open_now(self, reader: bool) -> Connection:  # noqa: FBT001 - as `open_handle`
        """Open one; once more after an eviction when there was no descriptor."""
        try:
            connection = self._open_handle(reader)
        except OutOfHandlesError:
            if not self._pool.evict_one(self):
                raise
            connection = self._open_handle(reader)
        if self._standing is None and connection.path and connection.place:
            self._standing = connection.path, connection.place
        if self._standing is not None and connection.place != self._standing[1]:
            connection.close()
            raise StoreSwappedError
        return connection

    @property
    def _descriptors(self) -> int:
        """What the handles hold: one for shared memory, one log each, and the database's.

        SQLite keeps the database's descriptor of a closed handle until the file's last
        handle in the process goes, for closing it would drop the others' locks.
        """
        return 1 + self._count + self._count_max if self._count else 0

    def _count_up(self) -> int:
        """Count one more handle; how many descriptors that adds."""
        with self._changed:
            before = self._descriptors
            self._count += 1
            self._count_max = max(self._count_max, self._count)
            return self._descriptors - before

    def _count_down(self, handles: int) -> int:
        """Count that many less; how many descriptors that frees."""
        with self._changed:
            before = self._descriptors
            self._count -= handles
            if not self._count:
                self._count_max = 0
            self._changed.notify_all()
            return before - self._descriptors

    def _require_open(self) -> None:
        if self._closed:
            raise StoreClosedError

    def _wait(self) -> None:
        # With a time-out: the event loop gives back without taking the lock first.
        self._waiting += 1
        self._changed.wait(_WAIT_STEP_S)
        self._waiting -= 1
