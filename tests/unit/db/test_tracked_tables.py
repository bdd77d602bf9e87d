"""Every tracked table of every bucket: one event a change, none for what changes nothing."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest

from app.db import migrations, sqlite
from app.db.context import Actor, system_actor
from app.db.owner.store import OWNER, OWNER_FUNCTIONS
from app.db.registry.store import REGISTRY, RegistryReader
from app.db.runtime.store import RUNTIME
from app.db.sqlite import Connection, Value
from app.db.triggers import Tracked
from app.ids import UserId
from app.registry import acts
from tests.support.probes import ACTOR, NOW, clock

BUCKETS: Final = (RUNTIME, REGISTRY, OWNER)
TABLES: Final = [item for bucket in BUCKETS for item in bucket.tracked]
_FIRST: Final[dict[str, Value]] = {"TEXT": "[]", "INTEGER": 0, "BLOB": b"a"}
_SECOND: Final[dict[str, Value]] = {"TEXT": "[1]", "INTEGER": 1, "BLOB": b"ab"}
"""Values that a column of each type takes, JSON among them, and others."""


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """All buckets in memory, as somebody, with nothing but the types of columns to obey."""
    with closing(sqlite.in_memory(clock)) as connection:
        connection.register(OWNER_FUNCTIONS)
        migrations.apply(connection, BUCKETS, NOW)
        connection.all("PRAGMA foreign_keys = OFF")
        connection.all("PRAGMA ignore_check_constraints = ON")
        connection.actor = ACTOR
        yield connection


@pytest.fixture
def item(connection: Connection, request: pytest.FixtureRequest) -> Iterator[Tracked]:
    """One tracked table, empty but for one row of the first values; all is undone in the end."""
    item: Tracked = request.param
    types = _types(connection, item)
    connection.all("BEGIN")
    connection.all(f"DELETE FROM {item.table}")  # noqa: S608 - of the declaration
    names, marks = ", ".join(types), ", ".join(f":{name}" for name in types)
    row = {name: _FIRST[kind] for name, kind in types.items()}
    before = _marks(connection)
    connection.all(f"INSERT INTO {item.table} ({names}) VALUES ({marks})", row)  # noqa: S608 - of the schema
    assert _new(connection, item, before) == [item.born or f"{item.entity}.created"]
    yield item
    connection.all("ROLLBACK")


def _types(connection: Connection, item: Tracked) -> dict[str, str]:
    rows = connection.all(f"SELECT name, type FROM pragma_table_info('{item.table}')")  # noqa: S608 - of the declaration
    return dict(rows)


def _marks(connection: Connection) -> tuple[Value, Value]:
    return (
        connection.scalar("SELECT coalesce(max(seq), 0) FROM sys_events"),
        connection.scalar("SELECT coalesce(max(seq), 0) FROM sys_audit"),
    )


def _new(connection: Connection, item: Tracked, before: tuple[Value, Value]) -> list[str]:
    """The types of the entity's events since; as many audit rows came with them."""
    params = {"entity": item.entity, "event": before[0], "audit": before[1]}
    found = connection.all(
        "SELECT type FROM sys_events WHERE entity_type = :entity AND seq > :event ORDER BY seq",
        params,
    )
    [(count,)] = connection.all(
        "SELECT count(*) FROM sys_audit WHERE entity = :entity AND seq > :audit", params
    )
    assert count == len(found)
    return [kind for (kind,) in found]


def _set(connection: Connection, item: Tracked, name: str, value: Value) -> list[str]:
    before = _marks(connection)
    connection.all(f"UPDATE {item.table} SET {name} = :value", {"value": value})  # noqa: S608 - of the schema
    return _new(connection, item, before)


each_table = pytest.mark.parametrize("item", TABLES, ids=lambda item: item.table, indirect=True)


@each_table
def test_a_watched_column_makes_one_event_when_it_changes(
    connection: Connection, item: Tracked
) -> None:
    """One for the change, none for the same again; the row's own end makes one as well."""
    types = _types(connection, item)
    for name in item.watched:
        if name in item.key:
            continue
        assert len(_set(connection, item, name, _SECOND[types[name]])) == 1, name
        assert _set(connection, item, name, _SECOND[types[name]]) == [], name
    before = _marks(connection)
    connection.all(f"DELETE FROM {item.table}")  # noqa: S608 - of the declaration
    assert _new(connection, item, before) == [f"{item.entity}.deleted"]


@each_table
def test_an_unwatched_column_makes_none(connection: Connection, item: Tracked) -> None:
    """It is left out of the declaration because nobody needs to know."""
    for name, kind in _types(connection, item).items():
        if name not in item.watched and name not in item.key:
            assert _set(connection, item, name, _SECOND[kind]) == [], name


def test_whatever_members_and_administrators_set_is_tracked() -> None:
    """Nothing that a person changes for others goes without a trace."""
    tables = {item.table for item in TABLES}
    assert {
        "users",
        "roles",
        "role_capabilities",
        "tool_permission_groups",
        "supervision",
        "invitations",
        "config",
        "flags",
        "memory_docs",
        "reports",
        "user_config",
        "secrets",
    } <= tables


OF_NOBODY: Final = {
    "roles": "a role is of everybody who has it",
    "role_capabilities": "as roles",
    "tool_permission_groups": "as roles",
    "invitations": "whom it will make a member is not known",
    "flags": "of the whole instance",
    "shared_folders": "of the group",
    "disk_files": "of whoever is in the folder",
    "approval_rules": "of the whole instance",
    "config": "of the whole instance",
}
"""Tables of the registry whose changes concern no one member, and why."""
BY_THE_PROGRAM: Final = {"system_agent_coverage": "how far an agent has looked"}
"""Tables of the registry that name a member and that no person changes."""


def test_every_registry_table_says_whose_its_rows_are(connection: Connection) -> None:
    """One that names a member is of that member, or it says here why nobody is told."""
    named = {
        table
        for (table,) in connection.all(
            "SELECT DISTINCT m.name FROM sqlite_master AS m, pragma_foreign_key_list(m.name) AS f "
            "WHERE m.type = 'table' AND f.\"table\" = 'users'"
        )
    }
    tracked = {item.table: item.member for item in REGISTRY.tracked}
    assert named | {"users"} == {t for t, m in tracked.items() if m} | BY_THE_PROGRAM.keys()
    assert tracked.keys() - named - {"users"} == OF_NOBODY.keys()


@pytest.mark.parametrize("item", REGISTRY.tracked, ids=lambda item: item.table, indirect=True)
def test_what_others_do_to_a_member_is_found_by_that_member(
    connection: Connection, item: Tracked
) -> None:
    """Each change once; what they do themselves, and the program, is not among it."""
    types, reader = _types(connection, item), RegistryReader(connection)
    whose = UserId(str(_FIRST["TEXT"]))
    count = 1  # the row itself, which somebody made
    for name in set(item.watched).difference(item.key, [item.member]):
        count += len(_set(connection, item, name, _SECOND[types[name]]))
    for actor in (
        Actor("human", whose, "x"),
        Actor("service", f"{whose}/agent", "x", whose),
        Actor("human", "anonymous", "x"),
        system_actor("x"),
    ):
        connection.actor = actor
        last = item.watched[-1]
        for values in _FIRST, _SECOND:
            _set(connection, item, last, values[types[last]])
    connection.actor = ACTOR
    found = acts.list_after(reader, whose, 0, 1_000)
    assert len(found) == (count if item.member else 0)
    assert {act.entity for act in found} <= {item.entity}
