"""The fences around the split that stand in the data: references, names, files, statements.

Each is a function that names what is wrong; the program's own tree must give nothing, and
a table of deliberate violations must give something.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from app.bridge import layout
from app.db import files, migrations, sqlite
from app.db.files import Kind
from app.db.migrations import Bucket, Migration
from app.db.owner import statements as owner_sql
from app.db.owner.store import OWNER, OWNER_FUNCTIONS
from app.db.queries import Statement, StatementSet, parse
from app.db.registry import statements as registry_sql
from app.db.registry.store import REGISTRY
from app.db.runtime import statements as runtime_sql
from app.db.runtime.store import RUNTIME
from app.db.sqlite import Connection, Value
from app.errors.stores import StoreSwappedError
from tests.support.plans import plan, scans
from tests.support.probes import ACTOR, NOW, clock, make_store

_BUCKETS: Final = (RUNTIME, REGISTRY, OWNER)


def _made(*buckets: Bucket) -> Connection:
    """An empty database with these buckets' schema, references enforced."""
    connection = sqlite.in_memory(clock)
    connection.register(OWNER_FUNCTIONS)
    migrations.apply(connection, buckets, NOW)
    connection.actor = ACTOR
    return connection


def _tables(connection: Connection, kinds: Iterable[str] = ("table",)) -> list[str]:
    wanted = set(kinds)
    rows = connection.all("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
    return sorted(n for n, kind in rows if kind in wanted and not n.startswith("sqlite_"))


def _owner_with(sql: str) -> Bucket:
    return Bucket("owner", (*OWNER.migrations, Migration(len(OWNER.migrations) + 1, "odd", sql)))


# -- 1. references -----------------------------------------------------------------------------


def references_outside(connection: Connection) -> list[str]:
    """References to a table that this file does not have."""
    tables = set(_tables(connection))
    found = []
    for table in sorted(tables):
        rows = connection.all(f"SELECT \"table\" FROM pragma_foreign_key_list('{table}')")  # noqa: S608 - from the schema
        found += [f"{table} -> {target}" for (target,) in rows if target not in tables]
    return found


_OF_TYPE: Final[Mapping[str, Value]] = {"TEXT": "x", "BLOB": bytes(32), "INTEGER": 1}
_CLOSED: Final = r"\b{name}\b[^,]*?\bIN\s*\('([^']*)'"


def make_row(connection: Connection, table: str) -> dict[str, Value]:
    """Insert a row that the table's rules admit, and what it refers to before it.

    From the schema alone, so that a new table is covered the day it appears: the first
    value of a closed set, `{}` where JSON is asked for, else a value of the column's type.
    """
    schema = str(connection.scalar(f"SELECT sql FROM sqlite_schema WHERE name = '{table}'"))  # noqa: S608 - from the schema
    targets = connection.all(
        f'SELECT "from", "table", "to" FROM pragma_foreign_key_list(\'{table}\')'  # noqa: S608 - from the schema
    )
    row: dict[str, Value] = {}
    for name, kind in connection.all(f"SELECT name, type FROM pragma_table_info('{table}')"):  # noqa: S608 - from the schema
        closed = re.search(_CLOSED.format(name=name), schema)
        if closed:
            row[name] = closed[1]
        elif f"json_valid({name})" in schema:
            row[name] = "{}"
        else:
            row[name] = _OF_TYPE[kind]
    for column, target, other in targets:
        if target in _tables(connection):
            row[column] = None if target == table else make_row(connection, target)[other]
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    connection.all(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({values})", row)  # noqa: S608 - from the schema
    return row


@pytest.mark.parametrize("bucket", [RUNTIME, OWNER], ids=["runtime", "owner"])
def test_references_stay_inside_the_file(bucket: Bucket) -> None:
    """No owner or runtime table refers to a table of the registry."""
    buckets = (RUNTIME,) if bucket is RUNTIME else (RUNTIME, bucket)
    with closing(_made(*buckets)) as connection:
        assert connection.scalar("PRAGMA foreign_keys") == 1
        assert references_outside(connection) == []


def test_a_row_goes_into_every_table_of_a_members_file() -> None:
    """SQLite makes a table with a reference into nowhere, and then refuses every row."""
    with closing(_made(RUNTIME, OWNER)) as connection:
        tables = _tables(connection)
        for table in tables:
            make_row(connection, table)
        empty = [t for t in tables if not connection.scalar(f"SELECT count(*) FROM {t}")]  # noqa: S608 - from the schema
        assert empty == []
        assert connection.all("PRAGMA foreign_key_check") == []


_REFERENCES = [
    pytest.param("CREATE TABLE odd (id TEXT REFERENCES users (id));", id="to a member"),
    pytest.param("CREATE TABLE odd (id TEXT REFERENCES users ON DELETE CASCADE);", id="cascade"),
    pytest.param(
        "CREATE TABLE odd (a TEXT, FOREIGN KEY (a) REFERENCES roles (id));", id="of a table"
    ),
    pytest.param("ALTER TABLE reports ADD COLUMN odd TEXT REFERENCES users;", id="added column"),
]


@pytest.mark.parametrize("sql", _REFERENCES)
def test_a_reference_to_the_registry_is_caught(sql: str) -> None:
    """In the schema, and by a row that cannot be."""
    with closing(_made(RUNTIME, _owner_with(sql))) as connection:
        [found] = references_outside(connection)
        table = found.split(" -> ")[0]
        with pytest.raises(Exception, match="no such table"):
            make_row(connection, table)


# -- 2. names ----------------------------------------------------------------------------------


def shared_names(buckets: Iterable[Bucket]) -> set[str]:
    """Names of tables, views and indexes that two buckets make."""
    with closing(_made(RUNTIME)) as connection:
        runtime = set(migrations.schema(connection))
    seen: set[str] = set()
    shared: set[str] = set()
    for bucket in buckets:
        with closing(_made(RUNTIME, bucket)) as connection:
            own = {name.split()[1] for name in set(migrations.schema(connection)) - runtime}
        shared |= own & seen
        seen |= own
    return shared | (seen & {name.split()[1] for name in runtime})


def test_no_name_is_in_two_buckets() -> None:
    """A wrong-store call is a loud `no such table`, never a silent read of the other."""
    assert shared_names([REGISTRY, OWNER]) == set()
    with closing(_made(RUNTIME)) as connection:
        assert all(name.startswith("sys_") for name in _tables(connection, ("table", "view")))


@pytest.mark.parametrize("name", ["users", "config", "sessions_user"])
def test_a_name_of_the_registry_in_the_owner_bucket_is_caught(name: str) -> None:
    """Whether a table has it or an index."""
    assert shared_names([REGISTRY, _owner_with(f"CREATE TABLE {name} (a);")]) == {name}


# -- 3. the file -------------------------------------------------------------------------------

_REGISTRY_TABLES: Final = sorted(layout.registry_tables())
_OWNER_TABLES: Final = sorted(layout.owner_tables())


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real system.db."""
    return make_store(tmp_path_factory.mktemp("system") / "system.db", None, layout.SYSTEM_KIND)


def _face(path: Path, denied: frozenset[str]) -> Connection:
    connection = files.open_handle(
        path, None, layout.SYSTEM_KIND, clock, reader=False, denied_tables=denied
    )
    connection.actor = ACTOR
    return connection


@pytest.fixture
def registry(system: Path) -> Iterator[Connection]:
    """The registry's handle."""
    with closing(_face(system, layout.owner_tables())) as connection:
        yield connection


@pytest.fixture
def group(system: Path) -> Iterator[Connection]:
    """The group store's handle."""
    with closing(_face(system, layout.registry_tables())) as connection:
        yield connection


def test_the_faces_share_the_system_tables_alone() -> None:
    """Every table of the file belongs to one face, or to both as a runtime table."""
    with closing(_made(*_BUCKETS)) as connection:
        everything = set(_tables(connection, ("table", "view", "virtual", "shadow")))
    assert not layout.registry_tables() & layout.owner_tables()
    rest = everything - layout.registry_tables() - layout.owner_tables()
    assert rest
    assert all(name.startswith("sys_") for name in rest)
    assert {"users", "sessions", "key_slots"} <= layout.registry_tables()
    assert {"memory_docs", "memory_docs_fts", "memory_docs_fts_data"} <= layout.owner_tables()


_DENIED: Final = r"prohibited|not authorized|cannot modify|vtable constructor failed"
_TOUCHES: Final = (
    "SELECT * FROM {table}",
    "SELECT count(*) FROM {table}",
    "SELECT 1 FROM sys_events WHERE EXISTS (SELECT 1 FROM {upper})",
    "SELECT * FROM sys_events JOIN {table}",
    "WITH hidden AS (SELECT * FROM {table}) SELECT * FROM hidden",
    "DELETE FROM {table}",
)


@pytest.mark.parametrize("touch", _TOUCHES)
@pytest.mark.parametrize("table", _OWNER_TABLES)
def test_a_registry_handle_cannot_touch_the_groups_tables(
    registry: Connection, table: str, touch: str
) -> None:
    """Nor read a row of them by any way round."""
    with pytest.raises(Exception, match=_DENIED):
        registry.all(touch.format(table=table, upper=table.upper()))


@pytest.mark.parametrize("touch", _TOUCHES)
@pytest.mark.parametrize("table", _REGISTRY_TABLES)
def test_the_groups_handle_cannot_touch_the_registrys_tables(
    group: Connection, table: str, touch: str
) -> None:
    """Nor read a row of them by any way round."""
    with pytest.raises(Exception, match=_DENIED):
        group.all(touch.format(table=table, upper=table.upper()))


@pytest.mark.parametrize("face", ["registry", "group"])
@pytest.mark.parametrize(
    "sql",
    ["ATTACH ':memory:' AS more", "ATTACH 'file:/tmp/x?mode=rw' AS more", "VACUUM INTO '/tmp/x'"],
)
def test_no_other_file_is_reached(request: pytest.FixtureRequest, face: str, sql: str) -> None:
    """ATTACH is refused, and what attaches behind the scenes."""
    connection: Connection = request.getfixturevalue(face)
    with pytest.raises(Exception, match=r"not authorized|authorization denied"):
        connection.all(sql)


def test_both_faces_write_the_system_tables(registry: Connection, group: Connection) -> None:
    """By themselves, and through the triggers of their own tables."""
    row: dict[str, Value] = {"key": "k", "value": "{}", "now": NOW}
    for connection, sql, entity in (
        (registry, registry_sql.SET_CONFIG.sql, "config"),
        (group, _INSERT_SETTING, "user_config"),
    ):
        connection.all("BEGIN IMMEDIATE")
        connection.all(sql, row)
        [(seen,)] = connection.all("SELECT entity_type FROM sys_events")
        assert seen == entity
        connection.all("DELETE FROM sys_events")
        connection.all("ROLLBACK")


_INSERT_SETTING: Final = (
    "INSERT INTO user_config (key, value, created_at, updated_at) VALUES (:key, :value, :now, :now)"
)


def test_a_file_of_one_kind_does_not_open_as_the_other(system: Path, tmp_path: Path) -> None:
    """Each carries the application id of its kind, checked at every open."""
    member = make_store(tmp_path / "member.db", None, layout.MEMBER_KIND)
    wrong: list[tuple[Path, Kind]] = [
        (system, layout.MEMBER_KIND),
        (member, layout.SYSTEM_KIND),
    ]
    for path, kind in wrong:
        for reader in (True, False):
            with pytest.raises(StoreSwappedError):
                files.open_handle(path, None, kind, clock, reader=reader)
            with pytest.raises(StoreSwappedError):
                files.open_maintenance(path, None, kind, clock, reader=reader)


_UNGUARDED: Mapping[str, Callable[[frozenset[str]], frozenset[str]]] = {
    "no table denied": lambda _: frozenset(),
    "one table forgotten": lambda denied: denied - {"key_slots"},
}


@pytest.mark.parametrize("change", _UNGUARDED.values(), ids=_UNGUARDED)
def test_a_face_with_a_gap_is_caught(
    system: Path, change: Callable[[frozenset[str]], frozenset[str]]
) -> None:
    """The tests above fail for a handle that denies less."""
    with closing(_face(system, change(layout.registry_tables()))) as connection:
        connection.all("SELECT * FROM key_slots")


# -- 6. statements -----------------------------------------------------------------------------


def faults(connection: Connection, statement: Statement[Any]) -> list[str]:
    """What is wrong with a statement on its own bucket's schema."""
    try:
        steps = plan(connection, statement)
    except Exception as error:  # noqa: BLE001 - of the driver, which only one module imports
        return [str(error)]
    scanning = scans(steps)
    found = scanning if statement.scan is None else []
    if statement.scan is not None and not scanning:
        found = ["marked `scan` and does not"]
    if statement.inline is not None and scanning:
        found = [*found, "inline, and scans"]
    return found


_SETS: Final = {
    "runtime": (runtime_sql.STATEMENTS, (RUNTIME,)),
    "registry": (registry_sql.STATEMENTS, (RUNTIME, REGISTRY)),
    "owner": (owner_sql.STATEMENTS, (RUNTIME, OWNER)),
}


@pytest.mark.parametrize(("statements", "buckets"), _SETS.values(), ids=_SETS)
def test_every_statement_runs_on_its_own_bucket_by_key(
    statements: StatementSet, buckets: tuple[Bucket, ...]
) -> None:
    """None names another bucket's table, none scans without saying why."""
    with closing(_made(*buckets)) as connection:
        found = {name: faults(connection, each) for name, each in statements.bound.items()}
    assert {name: each for name, each in found.items() if each} == {}
    assert found


_STATEMENTS = [
    pytest.param("owner", "", "SELECT id FROM users WHERE id = :id", id="registry's table"),
    pytest.param(
        "owner", "", "SELECT r.id FROM reports AS r JOIN users AS u ON u.id = r.id", id="joined"
    ),
    pytest.param("registry", "", "SELECT id FROM reports WHERE id = :id", id="owner's table"),
    pytest.param("runtime", "", "SELECT key FROM secrets WHERE key = :key", id="from runtime"),
    pytest.param("owner", "", "DELETE FROM config WHERE key = :key", id="the other's settings"),
    pytest.param("owner", "", "SELECT id FROM reports WHERE kind = :kind", id="scan"),
    pytest.param("owner", "", "UPDATE reports SET read_by = NULL", id="every row"),
    pytest.param("registry", "", "SELECT count(*) AS value FROM users", id="index scan"),
    pytest.param(
        "owner",
        "-- scan: few rows\n-- inline: really few\n",
        "SELECT key FROM secrets",
        id="inline scan",
    ),
    pytest.param(
        "owner", "-- scan: why\n", "SELECT key FROM secrets WHERE key = :key", id="idle mark"
    ),
    pytest.param("owner", "", "SELECT absent FROM secrets WHERE key = :key", id="no such column"),
    pytest.param("owner", "", "SELEC key FROM secrets", id="no statement"),
]


@pytest.mark.parametrize(("bucket", "marks", "sql"), _STATEMENTS)
def test_a_statement_that_breaks_the_rule_is_caught(bucket: str, marks: str, sql: str) -> None:
    """Whether it names what is not there, or reads more than it says."""
    [block] = parse(f"-- name: odd\n-- It is odd.\n{marks}{sql};\n")
    statement = StatementSet({"odd": block}).bind_command("odd")
    with closing(_made(*_SETS[bucket][1])) as connection:
        assert faults(connection, statement)
