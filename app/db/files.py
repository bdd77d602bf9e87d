"""Stores as files: make, open, copy under another key, take away.

A kind of store says what a file holds; a face of it says what a handle may touch.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.clock import Clock, Millis
from app.crypto.keys import Key
from app.db import migrations, sqlite
from app.db.authorizer import authorizer
from app.db.driver_errors import translated_os_error
from app.db.migrations import Bucket, Record
from app.db.sqlite import Function, RawKey
from app.errors.stores import StoreDamagedError, StoreMigratingError

Connection = sqlite.Connection
require_fit_driver = sqlite.require_fit_driver

SIDECARS: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database."""
NEW_SUFFIX: Final = ".new"
"""A copy that is being made, until it takes the place it is for."""
_SNAPSHOT: Final = re.compile(r"\.v[0-9.]+$")
"""After a store's name: the copy from before its migration, with the version it was of."""
SALT_BYTES: Final = 16
Admit = Callable[[Connection], None]
"""Judges a file that was opened; refuses it by raising."""


def admit_any(_connection: Connection) -> None:
    """Whose file it may be is no matter."""


class StoreOutdatedError(StoreMigratingError):
    """The store is older than the program and waits to be brought up to date: try again."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of file holds."""

    application_id: int
    buckets: tuple[Bucket, ...]
    functions: tuple[Function, ...] = ()

    @property
    def version(self) -> str:
        """The present version, as `8.4`: one number a bucket, in their order."""
        return ".".join(str(bucket.version) for bucket in self.buckets)


def table_names(kind: Kind, buckets: Sequence[Bucket], clock: Clock) -> frozenset[str]:
    """Every table and view these buckets make, a search index's own included."""
    with contextlib.closing(made_in_memory(kind, buckets, clock)) as connection:
        rows = connection.all("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
        return frozenset(name for (name,) in rows)


def create(
    path: Path, key: Key | None, kind: Kind, clock: Clock, fill: Callable[[Connection], None]
) -> bytes:
    """Make a store's file, complete and durable, or nothing.

    Args:
        path: Where; nothing may stand there.
        key: Its key; None for a plain file.
        kind: What it holds.
        clock: Time for its records.
        fill: Writes its first rows, in one transaction.

    Returns:
        The 16 bytes an encrypted file begins with; empty for a plain one.

    Raises:
        StoreBusyError: Something stands at this path already.
        DiskFullError: There is no room.
        StoreReadOnlyError: The folder cannot be written.
    """
    connection = sqlite.create(path, _raw(key), application_id=kind.application_id, clock=clock)
    try:
        with contextlib.closing(connection):
            connection.register(kind.functions)
            migrations.apply(connection, kind.buckets, clock())
            _fill(connection, fill)
            salt = connection.file_salt()
        sync_folder(path.parent)
    except BaseException:
        remove(path)
        raise
    return salt


def open_handle(  # noqa: PLR0913 - two of them differ by face
    path: Path,
    key: Key | None,
    kind: Kind,
    clock: Clock,
    *,
    reader: bool,
    denied_tables: frozenset[str] = frozenset(),
    admit: Admit = admit_any,
) -> Connection:
    """Open a guarded handle on a store that is there and current.

    Args:
        path: The file.
        key: Its key; None for a plain file.
        kind: What it must hold.
        clock: Time for the triggers.
        reader: True for a handle that cannot write.
        denied_tables: Those that belong to the file's other face.
        admit: Refuses, by raising, a file that is sound and another's, of whatever version.

    Returns:
        A handle with the program's functions, which refuses schema changes and ATTACH.

    Raises:
        StoreTooNewError: Written by a newer program.
        StoreOutdatedError: It waits to be brought up to date.
        StoreError: What `sqlite.open_existing` finds.
    """
    connection, recorded = open_known(path, key, kind, clock, reader=reader, admit=admit)
    try:
        _require_current(recorded, kind)
        connection.guard(authorizer(denied_tables))
    except BaseException:
        close_unwritten(connection, path, key, clock)
        raise
    return connection


def open_maintenance(
    path: Path, key: Key | None, kind: Kind, clock: Clock, *, reader: bool = False
) -> Connection:
    """Open a handle without authorizer, for who has the exclusive lock or only reads."""
    connection = sqlite.open_existing(
        path, _raw(key), application_id=kind.application_id, clock=clock, reader=reader
    )
    connection.register(kind.functions)
    return connection


def open_known(  # noqa: PLR0913 - one of them judges
    path: Path,
    key: Key | None,
    kind: Kind,
    clock: Clock,
    *,
    reader: bool = False,
    admit: Admit = admit_any,
) -> tuple[Connection, Record]:
    """The same on a store of this program's version or an earlier one.

    Returns:
        The handle, and the migrations that the store has had.

    Raises:
        StoreTooNewError: Written by a newer program.
        StoreError: See `open_handle`; of a file that is refused not a byte is changed.
    """
    connection = open_maintenance(path, key, kind, clock, reader=reader)
    try:
        recorded = migrations.applied(connection)
        migrations.require_known(recorded, kind.buckets)
        admit(connection)
    except BaseException:
        close_unwritten(connection, path, key, clock)
        raise
    return connection, recorded


def close_unwritten(connection: Connection, path: Path, key: Key | None, clock: Clock) -> None:
    """Close a handle on a file that is refused, or was only looked at: not a byte of it changes."""
    sqlite.close_unwritten(connection, path, _raw(key), clock)


def copy_under_new_key(  # noqa: PLR0913, PLR0917 - two keys, and what differs in the copy
    path: Path,
    key: Key | None,
    new_key: Key | None,
    kind: Kind,
    clock: Clock,
    amend: Callable[[Connection], None],
) -> bytes:
    """Copy a store into `{path}.new` under another key, whole, checked and durable; or nothing.

    Whatever its version: what `amend` writes must be true of that.

    Args:
        path: The store, whose exclusive lock the caller holds.
        key: Its key; None for a plain file.
        new_key: The copy's; None for a plain one.
        kind: What both hold.
        clock: Time for records.
        amend: Writes what differs in the copy, in one transaction.

    Returns:
        The 16 bytes the copy begins with.

    Raises:
        StoreDamagedError: The source, or the copy, does not pass its checks.
        DiskFullError: There is no room for both.
    """
    target = path.with_name(path.name + NEW_SUFFIX)
    remove(target)
    try:
        _copy(path, key, target, new_key, kind, clock)
        with contextlib.closing(open_maintenance(target, new_key, kind, clock)) as copy:
            copy.all("PRAGMA journal_mode = WAL")
            _fill(copy, amend)
            _require_sound(copy, is_encrypted=new_key is not None)
            salt = copy.file_salt()
        _sync_file(target)
        sync_folder(path.parent)
    except BaseException:
        remove(target)
        raise
    return salt


def _copy(  # noqa: PLR0913, PLR0917 - as copy_under_new_key
    path: Path, key: Key | None, target: Path, new_key: Key | None, kind: Kind, clock: Clock
) -> None:
    with contextlib.closing(open_maintenance(path, key, kind, clock)) as source:
        made = sqlite.create(target, _raw(new_key), application_id=kind.application_id, clock=clock)
        with contextlib.closing(made) as copy:
            source.copy_to(copy)
        # An empty log: after the exchange it must not stand beside the copy.
        source.checkpoint()


def _fill(connection: Connection, fill: Callable[[Connection], None]) -> None:
    """Write in one transaction, and leave nothing in the log."""
    connection.all("BEGIN IMMEDIATE")
    fill(connection)
    connection.all("COMMIT")
    connection.checkpoint()


def _require_sound(copy: Connection, *, is_encrypted: bool) -> None:
    if is_encrypted and copy.all("PRAGMA cipher_integrity_check"):
        raise StoreDamagedError
    if copy.scalar("PRAGMA quick_check") != "ok":
        raise StoreDamagedError


def _require_current(recorded: Record, kind: Kind) -> None:
    if not migrations.is_current(recorded, kind.buckets):
        raise StoreOutdatedError


def snapshots(path: Path) -> list[Path]:
    """The copies of a store from before its migrations."""
    beside = path.parent.glob(f"{path.name}.v*")
    return [each for each in beside if _SNAPSHOT.fullmatch(each.name.removeprefix(path.name))]


def remove_snapshots(path: Path, made_before: Millis | None = None) -> int:
    """Take a store's snapshots away; those made before a time, or all.

    Returns:
        How many there were.
    """
    found = snapshots(path)
    if made_before is not None:
        found = [each for each in found if each.stat().st_mtime * 1000 < made_before]
    for each in found:
        remove(each)
    return len(found)


def replace_with_new(path: Path) -> None:
    """Let `{path}.new` take the store's place; the caller holds the exclusive lock.

    No handle is open anywhere, so the old file has no log beside it that could be
    replayed into the new one; what a crash left is moved out of the way first.
    """
    _remove_sidecars(path)
    path.with_name(path.name + NEW_SUFFIX).replace(path)
    sync_folder(path.parent)


def read_salt(path: Path) -> bytes:
    """The first 16 bytes of a file that no process has open.

    The one place that opens a store's file beside SQLite: before any handle exists, or
    under the exclusive lock, where there is no lock of SQLite's to lose.

    Returns:
        They, fewer of a shorter file; empty when there is no file.
    """
    try:
        with path.open("rb") as file:
            return file.read(SALT_BYTES)
    except FileNotFoundError:
        return b""


def remove(path: Path) -> None:
    """Take a store's file and all that stands beside it away, durably; twice is once."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)  # nothing of ours, but it stands in a store's place
    path.unlink(missing_ok=True)
    _remove_sidecars(path)
    sync_folder(path.parent)


def remove_new(path: Path) -> None:
    """Take an unfinished copy under a new key away."""
    remove(path.with_name(path.name + NEW_SUFFIX))


def remove_all(path: Path) -> None:
    """Take a store's file, its sidecars and any copy of it away."""
    remove_new(path)
    remove_snapshots(path)
    remove(path)


def size(path: Path) -> int:
    """The file's size in bytes; 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def sync_folder(folder: Path) -> None:
    """Make a create, rename or unlink in the folder durable."""
    _sync(folder, os.O_DIRECTORY)


def _remove_sidecars(path: Path) -> None:
    for suffix in SIDECARS:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


def _sync_file(path: Path) -> None:
    """Make a closed file's content durable; no handle of SQLite's is open on it."""
    _sync(path, 0)


def _sync(path: Path, flags: int) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    except OSError as error:
        raise translated_os_error(error) from error
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def made_in_memory(kind: Kind, buckets: Sequence[Bucket], clock: Clock) -> Connection:
    """A database of no file with what these buckets' migrations make."""
    connection = sqlite.in_memory(clock)
    connection.register(kind.functions)
    migrations.apply(connection, buckets, clock())
    return connection


def _raw(key: Key | None) -> RawKey | None:
    return None if key is None else RawKey(key.sqlcipher_raw())
