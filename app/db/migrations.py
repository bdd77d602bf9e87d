"""Forward-only migrations: numbered SQL, checksummed, all of a store's in one transaction.

The caller holds the store's exclusive lock and gives a handle without authorizer.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Final

from app.clock import Millis
from app.db import triggers
from app.db.sqlite import Connection, is_complete
from app.errors.stores import StoreDamagedError, StoreTooNewError

_TRACKING: Final = 0
"""The number under which a bucket's declaration of tracked tables is recorded."""
_FILE_NAME: Final = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")

Record = Mapping[tuple[str, int], str]
"""What a store has of migrations: bucket and number, with the checksum."""


@dataclass(frozen=True)
class Migration:
    """One numbered file of a bucket."""

    number: int
    name: str
    sql: str

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of its text, as hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Bucket:
    """A set of tables that migrate together."""

    name: str
    migrations: tuple[Migration, ...]
    tracked: tuple[triggers.Tracked, ...] = ()

    @property
    def version(self) -> int:
        """The number of its newest migration."""
        return self.migrations[-1].number

    @cached_property
    def record(self) -> Record:
        """What a present store records of it. Compared at every opening, so made once."""
        made = {(self.name, each.number): each.checksum for each in self.migrations}
        return made | {(self.name, _TRACKING): triggers.digest(self.tracked)}


def load(package: str) -> tuple[Migration, ...]:
    """Read `migrations/NNNN_name.sql` of a bucket's package.

    Returns:
        They, from number 1 on without a gap.

    Raises:
        ValueError: A number is missing or double, or a file is named otherwise.
    """
    folder = resources.files(package) / "migrations"
    found: list[Migration] = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        match = _FILE_NAME.fullmatch(file.name)
        if match is None or int(match[1]) != len(found) + 1:
            message = f"{package} has {file.name} where migration {len(found) + 1} should be"
            raise ValueError(message)
        found.append(Migration(int(match[1]), match[2], file.read_text("utf-8")))
    return tuple(found)


def split(sql: str) -> Iterator[str]:
    """Take a script apart, for the driver's `executescript` would commit first.

    Yields:
        One statement, with the comments before it; comments at the end are left out.
    """
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if is_complete(pending):
            yield pending.strip()
            pending = ""
    if any(line.strip() and not line.startswith("--") for line in pending.splitlines()):
        yield pending.strip()


def apply(
    connection: Connection,
    buckets: Sequence[Bucket],
    now_ms: Millis,
    before_commit: Callable[[], None] = lambda: None,
) -> int:
    """Bring a store to the present version, or leave it exactly as it was.

    Args:
        connection: A handle without authorizer, its functions registered.
        buckets: Those of this kind of store, the runtime first.
        now_ms: Time of the record.
        before_commit: Told when all is done and checked, and nothing of it stands yet.

    Returns:
        How many migrations ran.

    Raises:
        StoreTooNewError: It has a migration this program does not know.
        StoreDamagedError: A check fails afterwards, or a recorded checksum differs.
    """
    # Inside a transaction both are no-ops, and a table rebuild would cascade-delete children.
    connection.all("PRAGMA foreign_keys = OFF")
    connection.all("PRAGMA legacy_alter_table = ON")
    try:
        connection.all("BEGIN EXCLUSIVE")
        try:
            count = _apply_pending(connection, buckets, now_ms)
            before_commit()
            connection.all("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.all("ROLLBACK")
            raise
    finally:
        connection.all("PRAGMA legacy_alter_table = OFF")
        connection.all("PRAGMA foreign_keys = ON")
    return count


def _apply_pending(connection: Connection, buckets: Sequence[Bucket], now_ms: Millis) -> int:
    recorded = applied(connection)
    require_known(recorded, buckets)
    if is_current(recorded, buckets):
        return 0
    pending = [
        (bucket, migration)
        for bucket in buckets
        for migration in bucket.migrations
        if (bucket.name, migration.number) not in recorded
    ]
    for statement in triggers.drop_statements(_objects(connection)):
        connection.all(statement)
    for _, migration in pending:
        for statement in split(migration.sql):
            connection.all(statement)
    for statement in triggers.statements([t for b in buckets for t in b.tracked]):
        connection.all(statement)
    for bucket, migration in pending:
        _record(connection, bucket, migration.number, migration.name, now_ms)
    for bucket in buckets:
        _record(connection, bucket, _TRACKING, "tracking", now_ms)
    check(connection)
    return len(pending)


def _record(connection: Connection, bucket: Bucket, number: int, name: str, now_ms: Millis) -> None:
    connection.all(
        "INSERT INTO sys_migrations (bucket, number, name, checksum, applied_at) "
        "VALUES (:bucket, :number, :name, :checksum, :now) "
        "ON CONFLICT (bucket, number) DO UPDATE SET checksum = :checksum, applied_at = :now "
        "WHERE checksum <> :checksum",
        {
            "bucket": bucket.name,
            "number": number,
            "name": name,
            "checksum": bucket.record[bucket.name, number],
            "now": now_ms,
        },
    )


def check(connection: Connection) -> None:
    """Compare references, and each search index with its text.

    Raises:
        StoreDamagedError: One of them does not hold.
    """
    if connection.all("PRAGMA foreign_key_check") or drifted_indexes(connection):
        raise StoreDamagedError


def drifted_indexes(connection: Connection) -> list[str]:
    """Search indexes that do not hold just the words of their texts.

    Writes nothing, but takes the writer's turn, about 0.05 s for each thousand notes of 2 KB.

    Returns:
        Their names; none when all is well.
    """
    tables = [name for kind, name in _objects(connection) if kind == "table"]
    return [name for name in tables if name.endswith("_fts") and _has_drifted(connection, name)]


def _has_drifted(connection: Connection, name: str) -> bool:
    try:
        # Drift between index and text passes every check but this one.
        connection.all(f"INSERT INTO {name} ({name}, rank) VALUES ('integrity-check', 1)")  # noqa: S608 - a name from the schema
    except StoreDamagedError:
        return True
    return False


def applied(connection: Connection) -> Record:
    """What the store has of migrations; empty for a new one."""
    if not connection.all("SELECT 1 FROM sqlite_schema WHERE name = 'sys_migrations'"):
        return {}
    rows = connection.all("SELECT bucket, number, checksum FROM sys_migrations")
    return {(bucket, number): checksum for bucket, number, checksum in rows}


def require_known(recorded: Record, buckets: Sequence[Bucket]) -> None:
    """Refuse a store from the future, without writing to it.

    Raises:
        StoreTooNewError: It records a migration this program does not have.
        StoreDamagedError: It records one under another checksum, or without those before.
    """
    known = _wanted(buckets)
    for (bucket, number), checksum in recorded.items():
        if (bucket, number) not in known:
            raise StoreTooNewError
        if number == _TRACKING:
            continue
        if known[bucket, number] != checksum:
            raise StoreDamagedError
        if number > 1 and (bucket, number - 1) not in recorded:
            raise StoreDamagedError


def is_current(recorded: Record, buckets: Sequence[Bucket]) -> bool:
    """Whether a store with this record needs nothing."""
    return recorded == _wanted(buckets)


def version_of(recorded: Record, buckets: Sequence[Bucket]) -> str:
    """The version of a store with this record, as `8.4`: one number a bucket, in their order."""
    return ".".join(
        str(max((n for name, n in recorded if name == bucket.name), default=0))
        for bucket in buckets
    )


def _wanted(buckets: Sequence[Bucket]) -> Record:
    return {place: checksum for bucket in buckets for place, checksum in bucket.record.items()}


def schema(connection: Connection) -> dict[str, str]:
    """Every object's kind and name, and the SQL that made it, in order of their making.

    Returns:
        Nothing of what SQLite makes by itself, for that changes with its version: automatic
        indexes, statistics, the tables behind a virtual one.
    """
    rows = connection.all(
        "SELECT s.type || ' ' || s.name, s.sql FROM sqlite_schema AS s "
        "LEFT JOIN pragma_table_list AS t ON t.name = s.name AND t.schema = 'main' "
        "WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite#_%' ESCAPE '#' "
        "AND t.type IS NOT 'shadow' ORDER BY s.rowid"
    )
    return dict(rows)


def outline(connection: Connection) -> dict[str, str]:
    """Everything a file's schema has, by kind and name, whoever made it: for comparison.

    Returns:
        The table each object is of and the SQL that made it. Of the tables behind a virtual
        one the columns, for their SQL is SQLite's own; of SQLite's indexes and counters
        nothing.
    """
    rows = connection.all(
        "SELECT s.type || ' ' || s.name, s.tbl_name || ': ' || CASE WHEN t.type IS 'shadow' THEN "
        "(SELECT group_concat(c.name || ' ' || c.type) FROM pragma_table_info(s.name) AS c) "
        "ELSE s.sql END FROM sqlite_schema AS s "
        "LEFT JOIN pragma_table_list AS t ON t.name = s.name AND t.schema = 'main' "
        "WHERE s.sql IS NOT NULL AND NOT (s.type = 'table' AND (s.name = 'sqlite_sequence' "
        "OR s.name GLOB 'sqlite_stat[0-9]')) ORDER BY s.rowid"
    )
    return dict(rows)


def drift(live: Mapping[str, str], made: Mapping[str, str]) -> list[str]:
    """Names of the objects in which a live outline and that of what the migrations make differ."""
    return sorted(name for name in live.keys() | made.keys() if live.get(name) != made.get(name))


def _objects(connection: Connection) -> list[tuple[str, str]]:
    return [(kind, name) for kind, name in connection.all("SELECT type, name FROM sqlite_schema")]
