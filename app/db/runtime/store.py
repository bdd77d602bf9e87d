"""Stores as services see them: a reader, a transactor, and one asynchronous face.

Every store has the system tables, so the reader and transactor of each bucket extend
those defined here. `OwnerReader` and `RegistryReader` stay unrelated to one another.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from app.clock import Millis
from app.db import migrations
from app.db.bell import Bell
from app.db.context import Actor
from app.db.migrations import Bucket, load
from app.db.pool import Handles
from app.db.queries import Statement
from app.db.runtime.tracking import TRACKED
from app.db.sqlite import BUSY_WAIT_S, Connection, Value
from app.db.writer import Lane, Writer
from app.errors.stores import StoreBusyError, StoreDamagedError

RUNTIME = Bucket("runtime", load("app.db.runtime"), TRACKED)
"""The bucket of the system tables."""

CHECKPOINT_WAIT_S: Final = 0.2
"""How long a checkpoint waits for readers of old snapshots to end."""
CHECKPOINT_TRIES: Final = 5
"""How often that is tried before the log keeps for a while what was to leave it."""
_BETWEEN_TRIES_S: Final = 0.05

RowT = TypeVar("RowT", bound=tuple[Any, ...])
ResultT = TypeVar("ResultT")
ReaderT = TypeVar("ReaderT", bound="RuntimeReader")
TransactorT = TypeVar("TransactorT", bound="RuntimeTransactor")


class Later(Enum):
    """The answer of an inline read that could not be had at once."""

    LATER = "later"


LATER = Later.LATER


class RuntimeReader:
    """Reads one store, inside one snapshot."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def one(self, statement: Statement[RowT], /, **params: Value) -> RowT | None:
        """The statement's first row; None when it gives none."""
        row = self._connection.one(statement.sql, params)
        return None if row is None else statement.make(row)

    @property
    def now_ms(self) -> Millis:
        """The present, as the store's clock tells it."""
        return self._connection.now_ms

    def outline(self) -> dict[str, str]:
        """What `migrations.outline` says of the store."""
        return migrations.outline(self._connection)

    def all(self, statement: Statement[RowT], /, **params: Value) -> list[RowT]:
        """Every row of the statement."""
        make = statement.make
        return [make(row) for row in self._connection.all(statement.sql, params)]


class RuntimeTransactor(RuntimeReader):
    """Reads and writes one store, inside one transaction that its owner commits."""

    __slots__ = ()

    @property
    def actor(self) -> Actor:
        """Who writes.

        Raises:
            RuntimeError: Outside of a write.
        """
        if self._connection.actor is None:
            message = "a write has an actor"
            raise RuntimeError(message)
        return self._connection.actor

    def new_id(self) -> str:
        """A new UUIDv7 of this moment."""
        return self._connection.new_id()

    def run(self, statement: Statement[RowT], /, **params: Value) -> list[RowT]:
        """Run a writing statement to its end; the rows of its RETURNING, in no order."""
        return self.all(statement, **params)


class Once(Protocol):
    """Lets a work act once, however often its request comes."""

    def __call__(self, tx: RuntimeTransactor, work: Callable[[], ResultT]) -> ResultT:
        """Do the work in the transaction it is given, or raise what keeps it from acting again."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RuntimeStore(Generic[ReaderT, TransactorT]):
    """One store's asynchronous face; the work itself is synchronous and runs on threads."""

    handles: Handles
    """The open handles, of this face alone."""
    lane: Lane
    """The file's queue of writes, which its faces share."""
    writer: Writer
    threads: Executor
    """Runs the reads."""
    reader: type[ReaderT]
    transactor: type[TransactorT]

    def try_one(self, statement: Statement[RowT], /, **params: Value) -> RowT | Later | None:
        """The first row of an inline statement, had at once, on the event loop.

        Args:
            statement: What to run; one not marked `inline` is never run here.
            params: Its parameters, by name.

        Returns:
            The row; None when there is none; LATER when a thread must read it, for the
            store is not open, every handle is lent, or a lock or damage stands in the way.
        """
        if statement.inline is None:
            return LATER
        return self._one_of(self.handles.try_reader(), statement, params)

    def glance(self, statement: Statement[RowT], /, **params: Value) -> RowT | Later | None:
        """As `try_one`, but no use of the store: its handles may close, and it may be locked.

        For whoever looks at thousands of stores each second.

        Returns:
            As `try_one`.
        """
        return self._one_of(self.handles.glance_reader(), statement, params)

    def has_news(self) -> bool:
        """Whether anybody committed to the file since this was last asked; no use of the store.

        In a few microseconds, on the event loop. For one asker only: to answer is to forget.

        Returns:
            False when nobody did, in any process; True when somebody did, or it cannot tell.
        """
        connection = self.handles.glance_reader()
        if connection is None:
            return True
        try:
            # Of two handles, whichever is asked first after a commit tells of it.
            return connection.has_news()
        except (StoreBusyError, StoreDamagedError):
            return True
        finally:
            self.handles.give_back(connection)

    def _one_of(
        self, connection: Connection | None, statement: Statement[RowT], params: Mapping[str, Value]
    ) -> RowT | Later | None:
        if connection is None:
            return LATER
        try:
            row = connection.one(statement.sql, params)
        except (StoreBusyError, StoreDamagedError):
            return LATER
        finally:
            self.handles.give_back(connection)
        return None if row is None else statement.make(row)

    async def one(self, statement: Statement[RowT], /, **params: Value) -> RowT | None:
        """A statement's first row, from a thread when it cannot be had at once."""
        found = self.try_one(statement, **params)
        if isinstance(found, Later):
            return await self.read(lambda reader: reader.one(statement, **params))
        return found

    @property
    def bell(self) -> Bell:
        """Rung after each commit of this process on the file."""
        return self.lane.bell

    async def read(self, work: Callable[[ReaderT], ResultT]) -> ResultT:
        """Run the work on a thread, in one snapshot.

        Returns:
            What the work returned.

        Raises:
            StoreClosedError: The store was closed meanwhile.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, partial(self._read, work))

    async def watch(self, work: Callable[[ReaderT], ResultT]) -> ResultT:
        """As `read`, but no use of the store: whoever only watches keeps it from no idle locking.

        Returns:
            What the work returned.

        Raises:
            StoreClosedError: The store was closed meanwhile.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, partial(self._read, work, is_watch=True))

    def _read(self, work: Callable[[ReaderT], ResultT], *, is_watch: bool = False) -> ResultT:
        with self.handles.borrow_reader(is_watch=is_watch) as connection:
            connection.all("BEGIN")
            try:
                return work(self.reader(connection))
            finally:
                if connection.in_transaction:
                    connection.all("ROLLBACK")

    async def write(
        self,
        work: Callable[[TransactorT], ResultT],
        actor: Actor,
        *,
        once: Once | None = None,
        is_watch: bool = False,
    ) -> ResultT:
        """Run the work in a transaction and return when it is on the disk.

        Args:
            work: Returns plain data; may be run again when a shared commit fails.
            actor: Who writes, as events and audit record it.
            once: Around a work that answers a request which may come again; None for any other.
            is_watch: That this is no use of the store: the program's own upkeep of it, which
                keeps it from no idle locking.

        Returns:
            What the work returned.

        Raises:
            StoreClosedError: The store was closed meanwhile; nothing was written.
            OverloadedError: Too many writes wait; nothing was written.
        """

        def run(connection: Connection) -> ResultT:
            tx = self.transactor(connection)
            return work(tx) if once is None else once(tx, lambda: work(tx))

        if not is_watch:
            self.handles.want()
        return await self.writer.submit(self.lane, self.handles, run, actor)

    async def rest_writer(self) -> None:
        """Let the writing handle go unless writes wait for it; the next one opens another."""
        if not self.lane.jobs:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.threads, self.handles.close_idle_writer)

    async def checkpoint(self) -> bool:
        """Empty the write-ahead log into the file, so that what was deleted leaves the log too.

        Returns:
            False when somebody reads an old snapshot still; then the log keeps it a while.
        """
        loop = asyncio.get_running_loop()
        for _ in range(CHECKPOINT_TRIES):
            # Another process's checkpoint is met with a refusal at once, not with a wait.
            if await loop.run_in_executor(self.threads, self._checkpoint):
                return True
            await asyncio.sleep(_BETWEEN_TRIES_S)
        return False

    def _checkpoint(self) -> bool:
        with self.handles.borrow_writer() as connection:
            # Nobody can write meanwhile, so a slow reader is not waited for.
            connection.set_wait(CHECKPOINT_WAIT_S)
            try:
                return connection.checkpoint()
            finally:
                connection.set_wait(BUSY_WAIT_S)
