"""Whatever somebody changes by hand in a store's schema is found, by its name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from app.bridge import layout
from app.clock import system_clock
from app.db import files, looking, migrations, upgrades
from app.db.sqlite import Connection
from tests.support.matrix import chosen

_KIND: Final = layout.SYSTEM_KIND
"""Every bucket is in it."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A store with the tables of every bucket; each test takes back what it changes."""
    path = tmp_path_factory.mktemp("drift") / "system.db"
    files.create(path, None, _KIND, system_clock, lambda _: None)
    with closing(files.open_maintenance(path, None, _KIND, system_clock)) as connection:
        connection.all("PRAGMA foreign_keys = OFF")
        connection.all("PRAGMA legacy_alter_table = ON")
        yield connection


@contextmanager
def _changed(store: Connection, *statements: str) -> Iterator[list[str]]:
    """What is found once these statements ran."""
    store.all("BEGIN IMMEDIATE")
    try:
        for statement in statements:
            store.all(statement)
        yield upgrades.drift_of(migrations.outline(store), _KIND)
    finally:
        store.all("ROLLBACK")


def _objects(store: Connection) -> list[tuple[str, str, str]]:
    """Kind, name and SQL of everything that the migrations make."""
    return [(*name.split(" ", 1), text) for name, text in migrations.schema(store).items()]  # type: ignore[misc]


def _some(store: Connection) -> list[tuple[str, str, str]]:
    """Of all of them those that a run has time for."""
    [step] = chosen([3], [1])
    return _objects(store)[::step]


def _altered(kind: str, name: str, text: str) -> list[str]:
    """Statements that make an object another one, under its name."""
    if kind == "table" and not text.startswith("CREATE VIRTUAL"):
        return [f"ALTER TABLE {name} ADD COLUMN odd_one TEXT"]
    if kind == "index":
        other = f"{text} AND TRUE" if " WHERE " in text else f"{text} WHERE TRUE"
        return [f"DROP INDEX {name}", other]
    if kind == "trigger":
        return [f"DROP TRIGGER {name}", text.replace("BEGIN", "BEGIN SELECT 1;", 1)]
    if kind == "view":
        return [f"DROP VIEW {name}", f"CREATE VIEW {name} AS SELECT 1"]
    return [f"DROP TABLE {name}", text.replace("fts5 (", "fts5 (odd_one, ")]


def test_a_present_store_has_not_drifted(store: Connection) -> None:
    """Every kind of object is among what is compared."""
    with _changed(store) as found:
        assert found == []
    assert {kind for kind, _, _ in _objects(store)} == {"table", "index", "trigger", "view"}
    assert len(_objects(store)) > 100


def test_whatever_is_dropped_is_found(store: Connection) -> None:
    """Each table, index, trigger and view, of each bucket and generated ones too."""
    for kind, name, _ in _some(store):
        with _changed(store, f"DROP {kind.upper()} {name}") as found:
            assert f"{kind} {name}" in found


def test_whatever_is_altered_is_found(store: Connection) -> None:
    """By a column more, another condition, another body."""
    for kind, name, text in _some(store):
        with _changed(store, *_altered(kind, name, text)) as found:
            assert f"{kind} {name}" in found, text


def test_whatever_is_added_is_found(store: Connection) -> None:
    """On each table an index and a trigger; beside them a table, a view, a virtual table."""
    for kind, name, text in _some(store):
        if kind != "table" or text.startswith("CREATE VIRTUAL"):
            continue
        [(column, *_), *_] = store.all(f"SELECT name FROM pragma_table_info('{name}')")  # noqa: S608 - from the schema
        with _changed(
            store,
            f"CREATE INDEX odd_one ON {name} ({column})",
            f"CREATE TRIGGER odd_two AFTER DELETE ON {name} BEGIN SELECT 1; END",
        ) as found:
            assert found == ["index odd_one", "trigger odd_two"]
    for more in ("TABLE odd_one (a)", "VIEW odd_one AS SELECT 1"):
        with _changed(store, f"CREATE {more}") as found:
            assert found == [f"{more.split()[0].lower()} odd_one"]
    with _changed(store, "CREATE VIRTUAL TABLE odd_one USING fts5(a)") as found:
        assert found[0] == "table odd_one"


def test_what_is_written_into_the_schema_itself_is_found(store: Connection) -> None:
    """A rule that is taken out of a table without a trace in its columns."""
    store.all("PRAGMA writable_schema = ON")
    edit = "UPDATE sqlite_schema SET sql = replace(sql, ' UNIQUE', '') WHERE name = 'users'"
    with _changed(store, edit) as found:
        assert found == ["table users"]
    store.all("PRAGMA writable_schema = RESET")


def test_a_search_index_that_lost_a_part_is_damaged(tmp_path: Path) -> None:
    """What is behind a virtual table is no schema of ours, and is found by its own check."""
    path = tmp_path / "a.db"
    files.create(path, None, _KIND, system_clock, lambda _: None)
    with closing(files.open_maintenance(path, None, _KIND, system_clock)) as connection:
        connection.all("PRAGMA writable_schema = ON")
        connection.all("DELETE FROM sqlite_schema WHERE name = 'memory_docs_fts_docsize'")
    assert looking.integrity(path, None, _KIND, system_clock)


_HIDDEN = (
    "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('trigger', "
    "'sqlite_odd', 'memory_docs', 0, 'CREATE TRIGGER sqlite_odd AFTER INSERT ON memory_docs "
    "BEGIN DELETE FROM memory_doc_versions; END')"
)
_BEHIND = [
    pytest.param(["DROP TABLE memory_docs_fts_docsize"], id="a table behind the index dropped"),
    pytest.param(["ALTER TABLE memory_docs_fts_data ADD COLUMN odd TEXT"], id="altered"),
    pytest.param(["CREATE TABLE memory_docs_fts_content (odd TEXT)"], id="made"),
    pytest.param(
        [
            "PRAGMA writable_schema = ON",
            _HIDDEN,
        ],
        id="a trigger under a name of SQLite's own",
    ),
    pytest.param(
        [
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_schema SET tbl_name = 'SYS_AUDIT' WHERE name = 'sys_audit_when'",
        ],
        id="an index said to be of another table",
    ),
]


@pytest.mark.parametrize("statements", _BEHIND)
def test_what_sqlite_makes_by_itself_is_compared_too(
    store: Connection, statements: list[str]
) -> None:
    """The tables behind the search index, and whatever only pretends to be SQLite's."""
    with _changed(store, *statements) as found:
        assert found != []
    store.all("PRAGMA writable_schema = OFF")
