"""The one door to the database driver: open, create, probe and copy.

What leaves this module is a plain value or a `Connection`; a driver's error that a person
or a program can act on leaves as one of `app.errors`.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NewType

import sqlcipher3.dbapi2 as driver

from app.clock import Clock, Millis
from app.db import functions, pragmas
from app.db.authorizer import Authorizer
from app.db.context import Actor
from app.db.driver_errors import translated, translated_os_error
from app.db.place import Place, require_content, require_place
from app.errors.starting import DriverUnfitError
from app.errors.stores import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreReadOnlyError,
    StoreSwappedError,
)
from app.ids import new_uuid7

Value = functions.Value
Function = functions.Function
Row = tuple[Any, ...]
Params = Mapping[str, Value]
RawKey = NewType("RawKey", str)
"""SQLCipher's raw form, `x'<64 hex digits>'`."""

OLDEST_SQLITE: Final = (3, 51, 3)
"""The first release without the WAL-reset corruption bug (3.7.0 to 3.51.2)."""
PAGE_SIZE: Final = 4096
RAW_KEY_LENGTH: Final = len("x''") + 64
BUSY_WAIT_S: Final = 5.0
"""How long a handle waits where it may: for the end of another's recovery, closing or write."""
PLAIN_HEADER: Final = b"SQLite format 3\x00"
"""The first 16 bytes of a plain database; an encrypted one begins with its salt."""

_ANY_KEY: Final = RawKey(f"x'{64 * '0'}'")
"""Opens nothing, but under it a file can be asked for its salt."""

_FAULTS: Final = (driver.Error, driver.Warning)
_NO_PARAMS: Final[Params] = {}


def require_fit_driver() -> None:
    """Refuse a driver that would write in clear, or corrupt.

    Raises:
        DriverUnfitError: No SQLCipher, an SQLite too old, or temporary files on disk.
    """
    raw = driver.connect(":memory:")
    try:
        cipher = raw.execute("PRAGMA cipher_version").fetchone()
        options = {row[0] for row in raw.execute("PRAGMA compile_options")}
    finally:
        raw.close()
    reasons = {
        "It is not SQLCipher.": not cipher,
        "Its SQLite is older than 3.51.3.": driver.sqlite_version_info < OLDEST_SQLITE,
        "It keeps temporary tables in files.": not options & {"TEMP_STORE=2", "TEMP_STORE=3"},
    }
    for reason, stands in reasons.items():
        if stands:
            raise DriverUnfitError(reason)


class Connection:
    """One handle on one file. Used by one thread at a time; the owner sees to that."""

    __slots__ = (
        "_clock",
        "_cursor",
        "_failure",
        "_raw",
        "_version",
        "actor",
        "is_damaged",
        "path",
        "place",
    )

    def __init__(self, raw: Any, path: Path | None, clock: Clock) -> None:  # noqa: ANN401 - the driver has no types
        self._raw = raw
        self._cursor = raw.cursor()  # one for all: a new one each time costs a tenth of a read
        self._clock = clock
        self._failure: Exception | None = None
        self._version: Value = None  # of the data, as the handle last saw it
        self.path = path
        """The store's file; None for one in memory."""
        self.actor: Actor | None = None
        """Who writes now; a tracked write without one fails."""
        self.is_damaged = False
        """Whether it met damage; SQLCipher then refuses the sound pages as well, for ever."""
        self.place: Place | None = None
        """The file that it opened; None for one that it made."""

    def all(self, sql: str, params: Params = _NO_PARAMS) -> list[Row]:
        """Run one statement to its end and return every row."""
        try:
            rows: list[Row] = self._cursor.execute(sql, params).fetchall()
        except _FAULTS as error:
            raise self._meaning(error) from error
        return rows

    def one(self, sql: str, params: Params = _NO_PARAMS) -> Row | None:
        """Run one statement to its end; its first row, or None when it gave none."""
        # An unfinished cursor pins its snapshot and fails COMMIT, so rows are always drained.
        rows = self.all(sql, params)
        return rows[0] if rows else None

    def scalar(self, sql: str) -> Value:
        """The first column of the first row; None when there is none."""
        row = self.one(sql)
        value: Value = row[0] if row else None
        return value

    @property
    def now_ms(self) -> Millis:
        """The present, as this handle's clock tells it."""
        return self._clock()

    def new_id(self) -> str:
        """A new UUIDv7 of this moment."""
        return new_uuid7(self._clock())

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open: some errors end it by themselves."""
        return bool(self._raw.in_transaction)

    def has_news(self) -> bool:
        """Whether another handle committed since this one was last asked; at first, yes."""
        before, self._version = self._version, self.scalar("PRAGMA data_version")
        return self._version != before

    def set_wait(self, seconds: float) -> None:
        """How long to wait for another's lock from now on; 0 never waits."""
        self._raw.set_busy_timeout(seconds)

    def interrupt(self) -> None:
        """Stop what runs on this handle; safe from any thread."""
        self._raw.interrupt()

    def close(self) -> None:
        """Let the file go."""
        with self._translating():
            self._raw.close()

    def checkpoint(self) -> bool:
        """Move the write-ahead log into the file and empty it, as far as readers allow.

        Returns:
            False when somebody still reads what only the log holds; then it is not empty.
        """
        row = self.one("PRAGMA wal_checkpoint(TRUNCATE)")
        return row is not None and row[0] == 0

    def copy_to(self, target: "Connection") -> None:
        """Copy the whole database into an empty one, page by page, under the target's own key."""
        with self._translating():
            self._raw.backup(target._raw)  # noqa: SLF001 - the same class

    def file_salt(self) -> bytes:
        """The 16 bytes an encrypted file begins with, of one this key does not open as well.

        Returns:
            They; empty on a handle without a key.
        """
        found = self.scalar("PRAGMA cipher_salt")
        return bytes.fromhex(found) if isinstance(found, str) else b""

    def guard(self, judge: Authorizer) -> None:
        """Refuse, from now on, every statement the authorizer does not admit."""
        self._raw.set_authorizer(judge)

    def register(self, extra: Sequence[Function]) -> None:
        """Make the triggers' functions, and these, known to SQL on this handle."""
        for name, count, body in (*functions.FOR_TRIGGERS, *extra):
            self._define(name, count, body, deterministic=True)
        for name, read in functions.ACTOR_FUNCTIONS.items():
            self._define_actor(name, read)
        self._define("sys_now_ms", 0, self._clock)
        self._define("sys_new_id", 0, self.new_id)
        self._define("sys_new_salt", 0, functions.new_salt)

    def _define(
        self, name: str, count: int, body: Callable[..., Value], *, deterministic: bool = False
    ) -> None:
        def call(*values: Value) -> Value:
            try:
                return body(*values)
            except Exception as error:
                # SQLite passes on that a function failed, but neither why nor which.
                self._failure = error
                raise

        self._raw.create_function(name, count, call, deterministic=deterministic)

    def _define_actor(self, name: str, read: Callable[[Actor], Value]) -> None:
        # Flat, for the triggers of one change call many of these.
        def call() -> Value:
            actor = self.actor
            if actor is None:
                message = "a tracked write needs an actor"
                self._failure = RuntimeError(message)
                raise self._failure
            return read(actor)

        self._raw.create_function(name, 0, call)

    def _meaning(self, error: Exception) -> Exception:
        failure, self._failure = self._failure, None
        meant = failure or translated(error, self.path)
        self.is_damaged = self.is_damaged or isinstance(meant, StoreDamagedError)
        return meant

    @contextlib.contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except _FAULTS as error:
            raise self._meaning(error) from error


def open_existing(
    path: Path, key: RawKey | None, *, application_id: int, clock: Clock, reader: bool
) -> Connection:
    """Open a store's file that must be there; never makes one, nor writes to one it refuses.

    Args:
        path: The file.
        key: Its raw key; None for a plain file.
        application_id: The kind of store it must be.
        clock: Time for the triggers' functions.
        reader: True for a handle that cannot write, and waits for nobody.

    Returns:
        A configured handle, without authorizer or functions.

    Raises:
        StoreMissingError: No such file.
        StoreDamagedError: Empty, damaged, or not under this key.
        StoreSwappedError: A sound file of another kind, or a plain one for an encrypted.
        StoreReadOnlyError: This process may not write it.
        OutOfHandlesError: No descriptor is free.
    """
    _require_raw(key)
    place = require_content(path)
    connection = _connect(path, key, clock)
    try:
        _require_kind(connection, application_id)
        require_place(path, place)
        connection.place = place
        _configure(connection, encrypted=key is not None, reader=reader)
    except StoreDamagedError as error:
        close_unwritten(connection, path, key, clock)
        error.file_salt = _salt_of(path, clock)
        if key is not None and error.file_salt == PLAIN_HEADER:
            raise StoreSwappedError from error
        raise
    except BaseException:
        close_unwritten(connection, path, key, clock)
        raise
    return connection


def close_unwritten(connection: Connection, path: Path, key: RawKey | None, clock: Clock) -> None:
    """Close a handle on a file that is refused, and leave the log beside it where it is.

    The last handle to close moves the log into the file, be the log another file's. The driver
    has no switch for that; so the last one is one that may not write, if there is a log.
    """
    with contextlib.ExitStack() as last:
        with contextlib.suppress(StoreError, FileNotFoundError):
            if path.with_name(f"{path.name}-wal").stat().st_size:
                other = _connect(path, key, clock, "ro")
                last.callback(other.close)
                other.scalar("SELECT count(*) FROM sqlite_schema")
        connection.close()


def create(path: Path, key: RawKey | None, *, application_id: int, clock: Clock) -> Connection:
    """Make a new store's file, mode 0600; an existing one is refused, a failed one removed.

    Args:
        path: Where; its folder is there.
        key: Its raw key; None for a plain file.
        application_id: The kind of store it will be.
        clock: Time for the triggers' functions.

    Returns:
        A configured handle on the only connection to the file.

    Raises:
        StoreBusyError: Something stands at this path already.
        DiskFullError: There is no room.
        StoreReadOnlyError: The folder cannot be written, or its file system has no
            shared memory.
    """
    _require_raw(key)
    # O_EXCL, so that nothing is ever overwritten; closed before SQLite opens it.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError as error:
        raise StoreBusyError from error
    except OSError as error:
        raise translated_os_error(error) from error
    with contextlib.ExitStack() as undo:
        undo.callback(path.unlink, missing_ok=True)
        connection = _connect(path, key, clock)
        undo.callback(connection.close)
        connection.all(f"PRAGMA page_size = {PAGE_SIZE}")
        if connection.scalar("PRAGMA journal_mode = WAL") != "wal":
            raise StoreReadOnlyError
        connection.all(f"PRAGMA application_id = {application_id:d}")
        _configure(connection, encrypted=key is not None, reader=False)
        undo.pop_all()
    return connection


def is_complete(sql: str) -> bool:
    """Whether the text ends a statement, triggers' bodies understood."""
    return bool(driver.complete_statement(sql))


def in_memory(clock: Clock) -> Connection:
    """A database of no file: what the migrations make, for comparison."""
    connection = Connection(driver.connect(":memory:", isolation_level=None), None, clock)
    _configure(connection, encrypted=False, reader=False)
    return connection


def _require_raw(key: RawKey | None) -> None:
    """Refuse a key that SQLCipher would take for a passphrase, and make another file of."""
    if key is not None and len(key) != RAW_KEY_LENGTH:
        message = "a raw key has 64 hexadecimal digits"
        raise ValueError(message)


def _require_kind(connection: Connection, application_id: int) -> None:
    """Read the file's first page, which the key must open, and its kind."""
    connection.scalar("SELECT count(*) FROM sqlite_schema")
    if connection.scalar("PRAGMA application_id") != application_id:
        raise StoreSwappedError


def _salt_of(path: Path, clock: Clock) -> bytes:
    """The file's first 16 bytes, as a cipher finds them whatever the key; empty when unknown."""
    try:
        probe = _connect(path, _ANY_KEY, clock)
        try:
            with contextlib.suppress(StoreError):
                probe.scalar("SELECT count(*) FROM sqlite_schema")
            return probe.file_salt()
        finally:
            close_unwritten(probe, path, _ANY_KEY, clock)
    except StoreError:
        return b""


def _connect(path: Path, key: RawKey | None, clock: Clock, mode: str = "rw") -> Connection:
    target = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        raw = driver.connect(
            target, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_WAIT_S
        )
    except _FAULTS as error:
        raise translated(error, path) from error
    connection = Connection(raw, path, clock)
    if key is None:
        return connection
    try:
        # Before the key: a wrong one would otherwise write lines to standard error.
        connection.all("PRAGMA cipher_log_level = NONE")
        # set_key, not PRAGMA key: no SQL text, and so no trace, ever holds it.
        raw.set_key(key)
        connection.all("PRAGMA cipher_compatibility = 4")
        connection.all(f"PRAGMA cipher_page_size = {PAGE_SIZE}")
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: Connection, *, encrypted: bool, reader: bool) -> None:
    """Set what holds for the life of a handle."""
    for pragma in pragmas.of_handle(encrypted=encrypted, reader=reader):
        connection.all(f"PRAGMA {pragma}")
    if reader:
        connection.set_wait(0)  # the event loop reads on it
