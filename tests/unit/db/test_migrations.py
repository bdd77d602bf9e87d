"""Forward-only migrations: everything or nothing, on real files."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import Millis
from app.db import files, looking, migrations, sqlite, upgrades
from app.db.files import Kind, StoreOutdatedError
from app.db.migrations import Bucket, Migration, load, split
from app.db.owner.store import MEMBER_BUCKETS, OWNER_FUNCTIONS
from app.db.runtime.store import RUNTIME
from app.db.sqlite import Connection
from app.errors.stores import StoreDamagedError, StoreTooNewError
from tests.support.probes import (
    ACTOR,
    KEY,
    KIND,
    NOW,
    PROBE,
    RAW,
    TRACKED,
    changes,
    clock,
    make_store,
    open_store,
)

_ADD = Migration(2, "add_column", "ALTER TABLE probes ADD COLUMN added TEXT;\n")
_LATER = Millis(NOW + 1)


def _with(*more: Migration, bucket: Bucket = PROBE) -> tuple[Bucket, Bucket]:
    tracked = replace(TRACKED, fields=("name",)) if more else TRACKED
    return RUNTIME, Bucket(bucket.name, (*bucket.migrations, *more), (tracked,))


def _content(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.parent.iterdir())}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of the first version with one row and its event."""
    path = make_store(tmp_path / "a.db")
    with closing(open_store(path)) as connection:
        connection.actor = ACTOR
        connection.all("INSERT INTO probes (id, name) VALUES ('k', 'n')")
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[Connection]:
    """A maintenance handle on it."""
    with closing(files.open_maintenance(path, KEY, KIND, clock)) as connection:
        yield connection


def _apply(connection: Connection, *more: Migration) -> int:
    return migrations.apply(connection, _with(*more), _LATER)


def test_a_store_is_brought_to_the_present(connection: Connection) -> None:
    """Rows stay, the new column is there, and the record says what ran when."""
    assert _apply(connection, _ADD) == 1
    assert connection.all("SELECT id, added FROM probes") == [("k", None)]
    rows = connection.all(
        "SELECT bucket, number, name, applied_at FROM sys_migrations ORDER BY bucket, number"
    )
    assert rows == [
        ("probe", 0, "tracking", _LATER),
        ("probe", 1, "create_probes", NOW),
        ("probe", 2, "add_column", _LATER),
        ("runtime", 0, "tracking", NOW),
        *(("runtime", each.number, each.name, NOW) for each in RUNTIME.migrations),
    ]
    assert migrations.is_current(migrations.applied(connection), _with(_ADD))


def test_a_present_store_is_left_alone(connection: Connection) -> None:
    """Nothing runs a second time, and nothing is written."""
    before = changes(connection)
    assert _apply(connection) == 0
    assert changes(connection) == before


def test_a_changed_declaration_remakes_the_triggers(connection: Connection) -> None:
    """Without a migration of tables; the rows of before stay."""
    tracked = replace(TRACKED, entity="renamed", fields=("name",))
    buckets = (RUNTIME, Bucket("probe", PROBE.migrations, (tracked,)))
    assert not migrations.is_current(migrations.applied(connection), buckets)
    assert migrations.apply(connection, buckets, _LATER) == 0
    assert migrations.is_current(migrations.applied(connection), buckets)
    connection.actor = ACTOR
    connection.all("UPDATE probes SET name = 'm'")
    types = connection.all("SELECT type FROM sys_events ORDER BY seq")
    assert types == [("probe.created",), ("renamed.updated",)]


_BROKEN = [
    pytest.param("ALTER TABLE probes ADD COLUMN a;\nSELEC;\n", Exception, id="no SQL"),
    pytest.param("DELETE FROM probes;\nCREATE TABLE probes (a);\n", Exception, id="there already"),
    pytest.param("DROP TABLE probes;\n", Exception, id="a tracked table gone"),
    pytest.param("UPDATE probes SET parent = 'nobody';\n", StoreDamagedError, id="reference"),
]


@pytest.mark.parametrize(("sql", "error"), _BROKEN)
def test_a_migration_that_fails_changes_nothing(
    path: Path, connection: Connection, sql: str, error: type[Exception]
) -> None:
    """Tables, triggers, rows and record are as they were, and the next try can succeed."""
    before = migrations.schema(connection)
    with pytest.raises(error):
        _apply(connection, _ADD, Migration(3, "fails", sql))
    assert not connection.in_transaction
    assert connection.scalar("PRAGMA foreign_keys") == 1
    assert migrations.schema(connection) == before
    assert connection.all("SELECT id, parent FROM probes") == [("k", None)]
    open_store(path).close()
    assert _apply(connection, _ADD) == 1


def test_rebuilding_a_table_keeps_what_refers_to_it(connection: Connection) -> None:
    """References rest meanwhile, or every child would go with the old table."""
    connection.actor = ACTOR
    connection.all("INSERT INTO probes (id, parent) VALUES ('child', 'k')")
    sql = """
    CREATE TABLE new_probes (
      id TEXT NOT NULL PRIMARY KEY, parent TEXT REFERENCES probes (id) ON DELETE CASCADE,
      name TEXT, body TEXT, secret BLOB, done_at INTEGER) STRICT;
    INSERT INTO new_probes SELECT id, parent, name, body, secret, done_at FROM probes;
    DROP TABLE probes;
    ALTER TABLE new_probes RENAME TO probes;
    """
    assert _apply(connection, Migration(2, "rebuild", sql)) == 1
    assert connection.all("SELECT id, parent FROM probes") == [("k", None), ("child", "k")]
    connection.all("DELETE FROM probes WHERE id = 'k'")
    assert connection.all("SELECT id FROM probes") == []


_LATER_BUCKET = Bucket("other", (Migration(1, "later", "CREATE TABLE z (a);"),))


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param(_with(_ADD), id="later migration"),
        pytest.param((*_with(), _LATER_BUCKET), id="unknown bucket"),
    ],
)
def test_a_store_from_the_future_is_refused_unwritten(
    path: Path, newer: tuple[Bucket, ...]
) -> None:
    """By opening and by migrating; not a byte of it changes."""
    with closing(files.open_maintenance(path, KEY, KIND, clock)) as connection:
        migrations.apply(connection, newer, _LATER)
    before = _content(path)
    with pytest.raises(StoreTooNewError):
        open_store(path)
    with (
        closing(files.open_maintenance(path, KEY, KIND, clock)) as connection,
        pytest.raises(StoreTooNewError),
    ):
        _apply(connection)
    assert _content(path) == before


def test_a_store_of_the_past_waits_for_its_migration(path: Path) -> None:
    """It is not served meanwhile, and not called damaged."""
    with pytest.raises(StoreOutdatedError):
        files.open_handle(path, KEY, Kind(KIND.application_id, _with(_ADD)), clock, reader=True)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("UPDATE sys_migrations SET checksum = 'x' WHERE number = 1", id="checksum"),
        pytest.param(
            "UPDATE sys_migrations SET number = 9999, checksum = 'x' WHERE number = 1",
            id="unknown",
        ),
    ],
)
def test_a_record_that_cannot_be_is_refused(connection: Connection, sql: str) -> None:
    """A file whose history is not the program's is not built upon."""
    connection.all(sql)
    with pytest.raises((StoreDamagedError, StoreTooNewError)):
        _apply(connection)


def test_a_hole_in_the_record_is_damage(connection: Connection) -> None:
    """A migration cannot have run without the one before it."""
    _apply(connection, _ADD)
    connection.all("DELETE FROM sys_migrations WHERE bucket = 'probe' AND number = 1")
    with pytest.raises(StoreDamagedError):
        _apply(connection, _ADD)


@pytest.mark.parametrize(
    ("sql", "drifted"),
    [
        pytest.param("CREATE INDEX extra ON probes (name)", ["index extra"], id="index more"),
        pytest.param("DROP TRIGGER sys_track_probes_update", None, id="trigger less"),
        pytest.param("ALTER TABLE counts ADD COLUMN x TEXT", ["table counts"], id="column more"),
        pytest.param("ANALYZE", [], id="statistics are none"),
    ],
)
def test_drift_is_found_by_name(path: Path, sql: str, drifted: list[str] | None) -> None:
    """Whatever differs from what the migrations make."""
    assert upgrades.drift(path, KEY, KIND, clock) == []
    with closing(files.open_maintenance(path, KEY, KIND, clock)) as connection:
        connection.all(sql)
    expected = ["trigger sys_track_probes_update"] if drifted is None else drifted
    assert upgrades.drift(path, KEY, KIND, clock) == expected


def test_the_schema_leaves_out_what_sqlite_makes_by_itself() -> None:
    """The tables behind a search index change with SQLite's version and are no drift."""
    with closing(sqlite.in_memory(clock)) as connection:
        connection.register(OWNER_FUNCTIONS)
        migrations.apply(connection, MEMBER_BUCKETS, NOW)
        found = migrations.schema(connection)
    assert "table memory_docs_fts" in found
    assert not [name for name in found if "fts_" in name and name.startswith("table")]
    assert "table sqlite_sequence" not in found


def test_drift_between_index_and_text_is_found(tmp_path: Path) -> None:
    """It passes every check of SQLite's but the one that is made; a migration it stops."""
    kind = Kind(1, MEMBER_BUCKETS, OWNER_FUNCTIONS)
    path = make_store(tmp_path / "a.db", KEY, kind)
    with closing(files.open_maintenance(path, KEY, kind, clock)) as connection:
        migrations.check(connection)
        connection.all(
            "INSERT INTO memory_docs_fts (rowid, path, content) VALUES (9, 'gone', 'words')"
        )
        assert connection.scalar("PRAGMA integrity_check") == "ok"
        with pytest.raises(StoreDamagedError):
            migrations.check(connection)
    [line] = looking.integrity(path, KEY, kind, clock)
    assert "memory_docs_fts" in line


# -- files of migrations -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["0002_b.sql"], id="no first"),
        pytest.param(["0001_a.sql", "0003_c.sql"], id="gap"),
        pytest.param(["0001_a.sql", "0001_b.sql"], id="double"),
        pytest.param(["0001_a.sql", "notes.txt"], id="something else"),
        pytest.param(["1_a.sql"], id="short number"),
    ],
)
def test_numbers_have_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """From 0001 on, each once, and nothing else in the folder."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("SELECT 1;")
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    with pytest.raises(ValueError, match="should be"):
        load("bucket")


def test_a_buckets_version_is_its_newest_number() -> None:
    """Of the runtime's own, loaded from its files."""
    assert RUNTIME.version == len(load("app.db.runtime"))
    assert RUNTIME.migrations[0].name == "create_system_tables"


def test_a_script_is_split_into_statements() -> None:
    """Comments stay with what follows, a trigger's body is one, the end's comments go."""
    sql = """-- first
CREATE TABLE a (b); -- trailing

CREATE TRIGGER t AFTER INSERT ON a BEGIN
  DELETE FROM a;
END;
INSERT INTO a VALUES (';');
SELECT 1
-- the end
"""
    assert list(split(sql)) == [
        "-- first\nCREATE TABLE a (b); -- trailing",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM a;\nEND;",
        "INSERT INTO a VALUES (';');",
        "SELECT 1\n-- the end",
    ]
    assert list(split("-- nothing\n\n-- at all\n")) == []


@given(st.lists(st.sampled_from(["SELECT 1;", "SELECT\n ';';", "-- c\nSELECT 2;"]), max_size=5))
def test_splitting_loses_nothing(statements: list[str]) -> None:
    """Whatever the statements, they come out as they went in."""
    assert list(split("\n".join(statements))) == statements


@pytest.mark.parametrize("make", [lambda: RAW, lambda: None], ids=["encrypted", "plain"])
def test_two_programs_that_migrate_at_once_do_it_once(
    tmp_path: Path, make: Callable[[], sqlite.RawKey | None]
) -> None:
    """The check is made inside the lock: the second finds nothing to do."""
    path = tmp_path / "b.db"
    sqlite.create(path, make(), application_id=1, clock=clock).close()
    with (
        closing(
            sqlite.open_existing(path, make(), application_id=1, clock=clock, reader=False)
        ) as one,
        closing(
            sqlite.open_existing(path, make(), application_id=1, clock=clock, reader=False)
        ) as other,
    ):
        assert migrations.applied(other) == {}
        assert migrations.apply(one, _with(), NOW) == len(RUNTIME.migrations) + 1
        assert migrations.apply(other, _with(), _LATER) == 0
