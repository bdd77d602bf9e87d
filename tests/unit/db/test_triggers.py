"""Tracked changes: what each leaves in events and audit, on real files."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db import sqlite, triggers
from app.db.context import Actor, system_actor
from app.db.functions import changed_fields, row_hash
from app.db.sqlite import Connection, Value
from app.errors.conflicts import ConstraintError
from app.errors.root import StrongroomError
from tests.support.probes import ACTOR, KIND, NOW, RAW, TRACKED, clock, make_store, open_store

_FIELDS: Final = ("parent", "name", "body", "secret", "done_at", "untracked")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A guarded writing handle, used by somebody."""
    with closing(open_store(make_store(tmp_path / "a.db"))) as connection:
        connection.actor = ACTOR
        yield connection


def _add(connection: Connection, key: str = "k", /, **fields: Value) -> None:
    values = dict.fromkeys(_FIELDS) | fields | {"id": key}
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.all(f"INSERT INTO probes ({names}) VALUES ({marks})", values)  # noqa: S608 - names of this test


def _set(connection: Connection, key: str = "k", /, **fields: Value) -> None:
    sets = ", ".join(f"{name} = :{name}" for name in fields)
    connection.all(f"UPDATE probes SET {sets} WHERE id = :id", fields | {"id": key})  # noqa: S608 - names of this test


def _events(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.all("SELECT type, entity_id, audience, payload FROM sys_events ORDER BY seq")


def _audit(connection: Connection) -> list[tuple[str, str, int, dict[str, Any]]]:
    rows = connection.all("SELECT kind, record_id, ordinal, fields FROM sys_audit ORDER BY seq")
    return [(kind, record, ordinal, json.loads(fields)) for kind, record, ordinal, fields in rows]


def test_a_change_leaves_one_event_and_one_audit_row(connection: Connection) -> None:
    """Made, changed, gone: each once, in order, with what the declaration says."""
    _add(connection, name="first", body="text", secret=b"s3cret")
    _set(connection, name="second")
    connection.all("DELETE FROM probes")
    assert _events(connection) == [
        ("probe.created", "k", "admins", '{"name":"first"}'),
        ("probe.updated", "k", "admins", '{"name":"second"}'),
        ("probe.deleted", "k", "admins", '{"name":"second"}'),
    ]
    assert _audit(connection) == [
        (
            "insert",
            "k",
            1,
            {"name": [None, "first"], "body": [None, 4], "secret": [None, "[redacted]"]},
        ),
        ("update", "k", 2, {"name": ["first", "second"]}),
        (
            "delete",
            "k",
            3,
            {"name": ["second", None], "body": [4, None], "secret": ["[redacted]", None]},
        ),
    ]


def test_both_rows_say_who_when_and_through_what(connection: Connection) -> None:
    """As the connection's actor has it at that write."""
    connection.actor = Actor("service", "someone/agent", "POST /x", "someone", "r", "t")
    _add(connection)
    who = ("service", "someone/agent", "someone", "r", "t", NOW)
    columns = "actor_kind, actor_sub, acting_for, request_id, trace_id, occurred_at"
    assert connection.all(f"SELECT {columns} FROM sys_events") == [who]  # noqa: S608 - columns of this test
    assert connection.all(f"SELECT {columns}, action FROM sys_audit") == [(*who, "POST /x")]  # noqa: S608 - columns of this test
    connection.actor = system_actor("janitor")
    _set(connection, name="by itself")
    row = connection.all("SELECT actor_kind, actor_sub, action, request_id FROM sys_audit")[1]
    assert row == ("system", "strongroom", "janitor", None)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"name": "n", "body": "b", "secret": b"s"}, id="the same"),
        pytest.param({"untracked": "changed"}, id="untracked column"),
        pytest.param({"done_at": None}, id="NULL to NULL"),
    ],
)
def test_a_change_that_changes_nothing_leaves_nothing(
    connection: Connection, fields: dict[str, Value]
) -> None:
    """No event and no audit row."""
    _add(connection, name="n", body="b", secret=b"s")
    _set(connection, **fields)
    assert len(_events(connection)) == len(_audit(connection)) == 1


def test_a_table_without_a_declaration_leaves_nothing(connection: Connection) -> None:
    """Only tracked tables do."""
    connection.actor = None
    connection.all("INSERT INTO counts VALUES (1, 'w', 1)")
    assert _events(connection) == _audit(connection) == []


def test_content_is_recorded_as_its_size_in_bytes(connection: Connection) -> None:
    """Never as text, and a text of the same size is a change like any other."""
    _add(connection, body="canary")
    _set(connection, body="cänar")
    _set(connection, body=None)
    _set(connection, body="")
    assert [fields for *_, fields in _audit(connection)] == [
        {"body": [None, 6]},
        {"body": [6, 6]},
        {"body": [6, None]},
        {"body": [None, 0]},
    ]


def test_a_secret_is_recorded_as_redacted(connection: Connection) -> None:
    """Neither its bytes nor its size; only that it came, changed or went."""
    _add(connection, secret=b"canary")
    _set(connection, secret=b"canbry")
    _set(connection, secret=None)
    _set(connection, name="else")
    assert [fields for *_, fields in _audit(connection)] == [
        {"secret": [None, "[redacted]"]},
        {"secret": ["[redacted]", "[redacted]"]},
        {"secret": ["[redacted]", None]},
        {"name": [None, "else"]},
    ]


def test_no_text_of_content_or_secret_is_in_the_record(tmp_path: Path) -> None:
    """Looked for in every byte of a plain file, once the rows themselves are gone."""
    path = make_store(tmp_path / "plain.db", None)
    with closing(open_store(path, None)) as connection:
        connection.actor = ACTOR
        _add(connection, body="canary-of-content", secret=b"canary-of-secret", name="known")
        _set(connection, body="canary-two", secret=b"canary-three")
        connection.all("DELETE FROM probes")
        connection.checkpoint()
    content = path.read_bytes()
    assert b"known" in content
    assert b"canary" not in content


def test_a_transition_has_a_name_of_its_own(connection: Connection) -> None:
    """From NULL to a value, and only then."""
    _add(connection)
    _set(connection, done_at=5)
    _set(connection, done_at=6)
    _set(connection, done_at=None)
    kinds = ["probe.created", "probe.done", "probe.updated", "probe.updated"]
    assert [row[0] for row in _events(connection)] == kinds


def test_the_audience_is_the_rows_own(connection: Connection) -> None:
    """As it is after the change, and before it when the row goes."""
    _add(connection, name="open")
    _set(connection, name="shut")
    connection.all("DELETE FROM probes")
    assert [row[2] for row in _events(connection)] == ["members", "admins", "admins"]


def test_cascades_leave_their_own_marks(connection: Connection) -> None:
    """A row that goes with its parent is recorded as well."""
    _add(connection, "parent")
    _add(connection, "child", parent="parent")
    connection.all("DELETE FROM probes WHERE id = 'parent'")
    gone = [row[1] for row in _events(connection) if row[0] == "probe.deleted"]
    assert sorted(gone) == ["child", "parent"]


def test_an_upsert_is_an_insert_or_an_update(connection: Connection) -> None:
    """Never both, never none."""
    for name in ("a", "b"):
        connection.all(
            "INSERT INTO probes (id, name) VALUES ('k', :name) "
            "ON CONFLICT (id) DO UPDATE SET name = :name",
            {"name": name},
        )
    assert [row[0] for row in _events(connection)] == ["probe.created", "probe.updated"]


def test_replacing_a_row_counts_as_delete_and_insert(connection: Connection) -> None:
    """Statements cannot say OR REPLACE, and should one ever, no change is lost."""
    _add(connection)
    connection.all("INSERT OR REPLACE INTO probes (id) VALUES ('k')")
    kinds = ["probe.created", "probe.deleted", "probe.created"]
    assert [row[0] for row in _events(connection)] == kinds


def test_a_composite_key_is_one_text(tmp_path: Path) -> None:
    """Its parts joined by a colon."""
    tracked = triggers.Tracked("pairs", "pair", ("a", "b"), ("a", "b"))
    with closing(open_store(make_store(tmp_path / "a.db"))) as connection:
        connection.guard(lambda *_: 0)
        connection.all("CREATE TABLE pairs (a TEXT, b INTEGER)")
        for statement in triggers.statements([tracked])[len(triggers.statements([])) :]:
            connection.all(statement)
        connection.actor = ACTOR
        connection.all("INSERT INTO pairs VALUES ('x', 7)")
        assert [row[:3] for row in _events(connection)] == [("pair.created", "x:7", "admins")]


def test_a_write_without_an_actor_fails_and_changes_nothing(connection: Connection) -> None:
    """A tracked row cannot be written by nobody."""
    connection.actor = None
    with pytest.raises(RuntimeError, match="actor"):
        _add(connection)
    assert connection.all("SELECT * FROM probes") == _events(connection) == []


def test_a_mark_cannot_be_refused_and_the_change_kept(connection: Connection) -> None:
    """What makes the event fail makes the write fail."""
    connection.actor = Actor("nobody", "x", "y")  # type: ignore[arg-type] # the schema refuses it too
    with pytest.raises(ConstraintError):
        _add(connection)
    assert connection.all("SELECT * FROM probes") == []


def test_a_handle_without_the_functions_reads_and_cannot_write(tmp_path: Path) -> None:
    """Another tool with the key cannot change a tracked row unseen."""
    path = make_store(tmp_path / "a.db")
    with closing(
        sqlite.open_existing(
            path, RAW, application_id=KIND.application_id, clock=clock, reader=False
        )
    ) as bare:
        assert bare.all("SELECT * FROM probes") == []
        with pytest.raises(Exception, match="no such function"):
            bare.all("INSERT INTO probes (id) VALUES ('k')")
        bare.all("INSERT INTO counts VALUES (1, 'w', 1)")


def test_what_is_undone_leaves_no_mark(connection: Connection) -> None:
    """The record commits with the change, or goes with it."""
    connection.all("BEGIN")
    _add(connection)
    connection.all("SAVEPOINT s")
    _set(connection, name="never")
    connection.all("ROLLBACK TO s")
    connection.all("COMMIT")
    assert [row[0] for row in _events(connection)] == ["probe.created"]


_CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "name", "body", "done_at", "untracked", "remove"]),
        st.sampled_from(["a", "b"]),
        st.one_of(st.none(), st.integers(0, 2)),
    ),
    max_size=25,
)


def _play(
    connection: Connection, changes: list[tuple[str, str, int | None]]
) -> list[tuple[str, str]]:
    """Make the changes, and say which of them a model of the table calls changes."""
    model: dict[str, dict[str, Value]] = {}
    made: list[tuple[str, str]] = []
    for act, key, number in changes:
        if act == "add":
            if key not in model:
                _add(connection, key)
                model[key] = {}
                made.append(("insert", key))
        elif act == "remove":
            connection.all("DELETE FROM probes WHERE id = :id", {"id": key})
            if model.pop(key, None) is not None:
                made.append(("delete", key))
        else:
            value: Value = number if act == "done_at" or number is None else str(number)
            _set(connection, key, **{act: value})
            if key in model and model[key].get(act) != value:
                model[key][act] = value
                made += [("update", key)] if act != "untracked" else []
    return made


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=_CHANGES)
def test_any_history_is_recorded_without_holes(
    connection: Connection, changes: list[tuple[str, str, int | None]]
) -> None:
    """One event and one audit row for each real change; a record's places are 1, 2, 3."""
    connection.all("BEGIN")
    expected = _play(connection, changes)
    audit = _audit(connection)
    events = connection.all("SELECT entity_id FROM sys_events ORDER BY seq")
    connection.all("ROLLBACK")
    assert [(kind, key) for kind, key, *_ in audit] == expected
    assert [key for (key,) in events] == [key for _, key in expected]
    for key in ("a", "b"):
        places = [ordinal for _, record, ordinal, _ in audit if record == key]
        assert places == list(range(1, len(places) + 1))


def test_the_digest_covers_everything_that_is_made() -> None:
    """Another field, another entity, another audience: another version of the schema."""
    digests = {
        triggers.digest([item])
        for item in (
            TRACKED,
            replace(TRACKED, entity="other"),
            replace(TRACKED, fields=("name",)),
            replace(TRACKED, secret=()),
            replace(TRACKED, payload=()),
            replace(TRACKED, facts=(("one", "1"),)),
            replace(TRACKED, transitions=()),
            replace(TRACKED, audience="'members'"),
            replace(TRACKED, member="parent"),
        )
    }
    assert len(digests) == 9
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    assert triggers.digest([TRACKED]) == triggers.digest([replace(TRACKED)])


def test_dropping_names_what_was_made_and_nothing_else() -> None:
    """Triggers and the view by their names; others of the same kind stay."""
    objects = [
        ("trigger", "sys_track_x_insert"),
        ("trigger", "mine"),
        ("view", "sys_changes"),
        ("view", "other"),
        ("table", "sys_track_table"),
    ]
    assert triggers.drop_statements(objects) == [
        "DROP TRIGGER sys_track_x_insert",
        "DROP VIEW sys_changes",
    ]


@given(
    before=st.lists(st.one_of(st.none(), st.integers(), st.text()), min_size=2, max_size=2),
    after=st.lists(st.one_of(st.none(), st.integers(), st.text()), min_size=2, max_size=2),
)
def test_changed_fields_are_those_that_differ(before: list[Value], after: list[Value]) -> None:
    """Both sides of each, as JSON; a masked one whenever the trigger gives a value."""
    text = changed_fields("a,b", "", before[0], after[0], before[1], after[1])
    pairs = zip("ab", before, after, strict=True)
    assert json.loads(text) == {name: [old, new] for name, old, new in pairs if old != new}
    masked = json.loads(changed_fields("", "a", before[0], after[0]))
    assert masked == ({} if before[0] is after[0] is None else {"a": [before[0], after[0]]})


@given(
    st.lists(
        st.one_of(
            st.none(), st.integers(), st.floats(allow_nan=False), st.text(), st.just("\udc80")
        )
    ),
    st.binary(),
)
def test_a_rows_hash_is_of_its_compact_json(skeleton: list[Value], digest: bytes) -> None:
    """For ever: the chains that are kept are of this form."""
    whole = json.dumps([*skeleton, digest.hex()], ensure_ascii=False, separators=(",", ":"))
    text = whole.encode("utf-8", "surrogatepass")
    assert row_hash(None, *skeleton, digest) == hashlib.sha256(text).digest()
    assert row_hash(b"before", *skeleton, digest) == hashlib.sha256(b"before" + text).digest()


def test_fields_and_values_must_match() -> None:
    """A declaration out of step with its trigger is an error, not a wrong record."""
    with pytest.raises(ValueError, match="zip"):
        changed_fields("a,b", "", 1, 2)


def test_an_error_of_the_record_is_no_error_of_the_store(connection: Connection) -> None:
    """It is a fault of the program, never shown as damage."""
    connection.actor = None
    with pytest.raises(RuntimeError) as caught:
        _add(connection)
    assert not isinstance(caught.value, StrongroomError)
    assert not connection.is_damaged
