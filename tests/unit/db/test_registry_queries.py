"""The registry's statements, and the runtime's, against the schema and with real rows."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from app.bridge.layout import SYSTEM_KIND
from app.db import files, queries
from app.db.context import Actor
from app.db.queries import Statement
from app.db.registry import statements as sql
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.db.runtime import statements as runtime_sql
from app.db.sqlite import Connection, Value
from app.errors.conflicts import ConstraintError
from tests.support.plans import is_prepared_again, parameters, plan
from tests.support.probes import NOW, clock, columns, make_store

_ACTOR: Final = Actor("human", "admin", "test")
_ANA: Final = "01890000-0000-7000-8000-000000000001"
_BEN: Final = "01890000-0000-7000-8000-000000000002"

_BLOBS: Final = dict.fromkeys(
    [
        "database_password",
        "body",
        "body_mac",
        "file_digest",
        "file_salt",
        "kdf_salt",
        "password_hash",
        "throttle_key",
        "verifier",
        "was",
        "wrapped_dek",
    ],
    b"x",
)
_TEXTS: Final = dict.fromkeys(
    [
        "action",
        "after",
        "after_subject",
        "after_supervisor",
        "agent_id",
        "birthdate",
        "capability",
        "dek_id",
        "display_name",
        "entity",
        "except_id",
        "fingerprint",
        "id",
        "invitation_id",
        "invited_by",
        "kind",
        "label",
        "locale",
        "name",
        "notes",
        "outcome",
        "record_id",
        "role_id",
        "schema_check",
        "schema_version",
        "session_id",
        "sex",
        "shape",
        "slot_id",
        "store_state",
        "subject",
        "supervisor",
        "user_agent",
        "user_id",
        "username",
        "username_key",
        "build",
    ],
    "x",
)
_JSONS: Final = {
    "answer": "{}",
    "attrs": "{}",
    "kdf_params": "{}",
    "scopes": "[]",
    "user_ids": '["x"]',
    "value": "{}",
}

_BOUND: Final = [
    pytest.param(statement, id=name)
    for statements in (sql.STATEMENTS, runtime_sql.STATEMENTS)
    for name, statement in statements.bound.items()
]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A system store in which no rule but a column's type stops a statement."""
    path: Path = make_store(tmp_path_factory.mktemp("system") / "system.db", None, SYSTEM_KIND)
    with closing(files.open_maintenance(path, None, SYSTEM_KIND, clock)) as connection:
        connection.actor = _ACTOR
        connection.all("PRAGMA foreign_keys = OFF")
        connection.all("PRAGMA ignore_check_constraints = ON")
        yield connection


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(sql.STATEMENTS, id="registry"),
        pytest.param(runtime_sql.STATEMENTS, id="runtime"),
    ],
)
def test_every_statement_is_bound(statements: queries.StatementSet) -> None:
    """No file defines a statement that nothing uses."""
    assert statements.names == statements.bound.keys()


_NO_TABLE: Final = (
    "SCAN CONSTANT ROW",
    "SCAN (subquery",
    "SCALAR SUBQUERY",
    "CORRELATED SCALAR SUBQUERY",
    "CO-ROUTINE",
    "COMPOUND QUERY",
    "LEFT-MOST SUBQUERY",
    "UNION ALL",
)
"""Steps that put others together, each of which is a step of its own."""


def _values(statement: Statement[Any]) -> dict[str, Value]:
    """A value for each of its parameters, of the column's type."""
    key: Value = b"x" if "sign_in_throttle" in statement.sql else "x"
    values: dict[str, Value] = {**_BLOBS, **_TEXTS, **_JSONS, "key": key, "file_key": bytes(32)}
    if "sys_subscriptions" in statement.sql:
        values["secret"] = b"x"
    return parameters(statement, values)


@pytest.mark.parametrize("statement", _BOUND)
def test_a_statement_is_prepared_once(empty: Connection, statement: Statement[Any]) -> None:
    """A plan of the values it is given would be made anew at each run."""
    assert not is_prepared_again(empty, statement, _values(statement))


@pytest.mark.parametrize("statement", _BOUND)
def test_columns_are_the_fields_of_the_row(empty: Connection, statement: Statement[Any]) -> None:
    """What a statement gives is its row type, name by name and in order."""
    empty.all("BEGIN IMMEDIATE")
    try:
        names = columns(empty, statement.sql, _values(statement))
    finally:
        empty.all("ROLLBACK")
    assert names == statement.row._fields


@pytest.mark.parametrize(
    "statement",
    [each for each in _BOUND if isinstance(each.values[0], Statement) and each.values[0].inline],
)
def test_an_inline_statement_searches(empty: Connection, statement: Statement[Any]) -> None:
    """What runs on the event loop finds its rows by key, without a sort of its own."""
    for step in plan(empty, statement):
        if statement.scan is None or not step.startswith("SCAN"):
            assert step.startswith(("SEARCH", *_NO_TABLE)), step


# -- with rows ---------------------------------------------------------------------------------


class Registry:
    """A system store of two members, seen through the registry's face."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.reader = RegistryReader(connection)
        with self.write() as tx:
            for user_id, name in ((_ANA, "ana"), (_BEN, "ben")):
                add_member(tx, user_id, name)

    @contextmanager
    def write(self) -> Iterator[RegistryTransactor]:
        """One transaction."""
        self.connection.all("BEGIN IMMEDIATE")
        self.connection.actor = _ACTOR
        try:
            yield RegistryTransactor(self.connection)
            self.connection.all("COMMIT")
        finally:
            self.connection.actor = None
            if self.connection.in_transaction:
                self.connection.all("ROLLBACK")

    def events(self) -> list[str]:
        """Types of the events so far."""
        rows = self.connection.all("SELECT type FROM sys_events ORDER BY seq")
        return [kind for (kind,) in rows]


def add_member(tx: RegistryTransactor, user_id: str, name: str) -> None:
    """Make an encrypted member real."""
    [number] = tx.run(sql.ADD_LOCK_NUMBER)
    tx.run(sql.REMOVE_LOCK_NUMBER, number=number.value)
    tx.run(
        sql.ADD_ACCOUNT,
        id=user_id,
        username=name,
        username_key=name,
        display_name=None,
        role_id="member",
        encrypted=1,
        kdf_params="{}",
        kdf_salt=b"salt",
        database_password=b"wrap",
        password_hash=None,
        dek_id=f"dek-{name}",
        file_salt=f"salt-{name}".encode(),
        password_is_temporary=0,
        lock_number=number.value,
        now=tx.now_ms,
    )


def add_slot(
    tx: RegistryTransactor, slot_id: str, *, dek_id: str = "dek-ana", pending: int = 0
) -> None:
    """Give Ana one more way to her key."""
    tx.run(
        sql.ADD_SLOT,
        id=slot_id,
        user_id=_ANA,
        kind="session",
        dek_id=dek_id,
        wrapped_dek=b"wrap",
        label="",
        expires_at=None,
        is_pending=pending,
        now=tx.now_ms,
    )


def add_session(tx: RegistryTransactor, session_id: str, slot_id: str | None) -> None:
    """Sign Ana in."""
    tx.run(
        sql.ADD_SESSION,
        id=session_id,
        user_id=_ANA,
        kind="browser",
        is_cookie=0,
        agent_id=None,
        is_agent=0,
        verifier=b"v",
        slot_id=slot_id,
        needs_store=int(slot_id is not None),
        scopes='["*"]',
        label="",
        user_agent=None,
        now=tx.now_ms,
        ends_at=NOW + 1_000,
        password_checked_at=None,
    )


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """Two members and nothing else."""
    path = make_store(tmp_path / "system.db", None, SYSTEM_KIND)
    with closing(files.open_handle(path, None, SYSTEM_KIND, clock, reader=False)) as connection:
        yield Registry(connection)


def test_a_username_is_taken_once(registry: Registry) -> None:
    """By its folded form, and the refusal names the rule."""
    with pytest.raises(ConstraintError) as caught, registry.write() as tx:
        add_member(tx, "01890000-0000-7000-8000-000000000003", "ana")
    assert caught.value.kind == "SQLITE_CONSTRAINT_UNIQUE"


def test_a_lock_number_is_never_given_twice(registry: Registry) -> None:
    """Though its row is taken away again, and its member too."""
    numbers = [row.lock_number for row in registry.reader.all(sql.LIST_ALL_ACCOUNTS)]
    assert numbers == [1, 2]
    with registry.write() as tx:
        tx.run(sql.BEGIN_STORE_STATE, user_id=_BEN, store_state="erasing")
        tx.run(sql.REMOVE_ACCOUNT, user_id=_BEN)
        [number] = tx.run(sql.ADD_LOCK_NUMBER)
    assert number.value == 3


def test_an_encrypted_member_has_a_wrap_and_no_verifier(registry: Registry) -> None:
    """And a cleartext one no wrap: the table refuses anything between."""
    for change in (
        "encrypted = 0",
        "password_hash = x'00'",
        "database_password = NULL",
    ):
        with pytest.raises(ConstraintError), registry.write():
            registry.connection.all(f"UPDATE users SET {change}")  # noqa: S608 - a table of this test


@pytest.mark.parametrize(
    ("birthdate", "is_real"),
    [
        ("1999-12-31", True),
        ("2024-02-29", True),
        ("2023-02-29", False),
        ("1999-13-01", False),
        ("99-01-01", False),
        ("now", False),
        ("", False),
    ],
)
def test_a_birthdate_is_a_real_day(registry: Registry, birthdate: str, is_real: bool) -> None:  # noqa: FBT001 - a table
    """Or it is not stored."""
    statement = "UPDATE users SET birthdate = :birthdate"
    with registry.write():
        if is_real:
            registry.connection.all(statement, {"birthdate": birthdate})
            return
        with pytest.raises(ConstraintError):
            registry.connection.all(statement, {"birthdate": birthdate})


def test_a_profile_is_replaced_in_the_version_that_was_read(registry: Registry) -> None:
    """An older one changes nothing, and says so by giving no row."""
    fields: dict[str, Value] = {
        "user_id": _ANA,
        "display_name": "Ana",
        "role_id": "member",
        "active": 1,
        "locale": None,
        "birthdate": None,
        "sex": None,
        "notes": None,
        "quota_bytes": None,
        "now": NOW,
        "version": 1,
    }
    with registry.write() as tx:
        assert [row.value for row in tx.run(sql.SET_PROFILE, **fields)] == [2]
        assert tx.run(sql.SET_PROFILE, **fields) == []
    found = registry.reader.one(sql.FIND_ACCOUNT, user_id=_ANA)
    assert found is not None
    assert (found.display_name, found.version) == ("Ana", 2)
    assert found == registry.reader.one(sql.FIND_ACCOUNT_BY_NAME, username_key="ana")


def test_a_credential_comes_with_member_store_and_slot(registry: Registry) -> None:
    """In one row; a slot that is destroyed or not yet adopted is none."""
    with registry.write() as tx:
        add_slot(tx, "k1")
        add_slot(tx, "k2", pending=1)
        add_session(tx, "s1", "k1")
        add_session(tx, "s2", "k2")
        add_session(tx, "s3", None)

    def slot(session_id: str) -> bytes | None:
        row = registry.reader.one(sql.FIND_CREDENTIAL, session_id=session_id)
        assert row is not None
        assert (row.user_id, row.dek_id, row.store_generation) == (_ANA, "dek-ana", 1)
        return row.wrapped_dek

    assert [slot(each) for each in ("s1", "s2", "s3")] == [b"wrap", None, None]
    assert registry.reader.one(sql.FIND_CREDENTIAL, session_id="absent") is None
    with registry.write() as tx:
        tx.run(sql.REMOVE_SLOT, slot_id="k1", user_id=_ANA)
    assert slot("s1") is None


def test_destroying_a_slot_leaves_its_session_to_be_revoked(registry: Registry) -> None:
    """One that was made with a slot and lost it ends; one made without goes on."""
    with registry.write() as tx:
        add_slot(tx, "k1")
        add_session(tx, "with", "k1")
        add_session(tx, "without", None)
        assert [
            row.value for row in tx.run(sql.REMOVE_SLOTS_OF_OLD_KEY, user_id=_ANA, dek_id="new")
        ]
    for name, slot_id in (("with", None), ("without", None)):
        found = registry.reader.one(sql.FIND_SESSION, user_id=_ANA, session_id=name)
        assert found is not None
        assert found.slot_id == slot_id


def test_all_sessions_but_one_are_revoked(registry: Registry) -> None:
    """Each once, with its slot to be destroyed."""
    with registry.write() as tx:
        add_slot(tx, "k1")
        add_session(tx, "a", "k1")
        add_session(tx, "b", None)
        revoke: dict[str, Value] = {
            "user_id": _ANA,
            "kind": "browser",
            "except_id": "b",
            "now": NOW,
        }
        assert [row.value for row in tx.run(sql.REVOKE_SESSIONS, **revoke)] == ["k1"]
        assert tx.run(sql.REVOKE_SESSIONS, **revoke) == []
        assert tx.one(sql.COUNT_LIVE_SLOTS, user_id=_ANA, now=NOW) == (0,)
    assert registry.events()[-1] == "session.revoked"


def test_an_invitation_is_taken_once_and_in_time(registry: Registry) -> None:
    """Afterwards, or too late, there is nothing to take."""
    with registry.write() as tx:
        tx.run(
            sql.ADD_INVITATION,
            id="i",
            verifier=b"v",
            role_id="guest",
            invited_by=_ANA,
            expires_at=NOW + 10,
            now=NOW,
        )
        assert tx.run(sql.USE_INVITATION, invitation_id="i", now=NOW + 10) == []
        assert [row.value for row in tx.run(sql.USE_INVITATION, invitation_id="i", now=NOW)] == [
            "guest"
        ]
        assert tx.run(sql.USE_INVITATION, invitation_id="i", now=NOW) == []
        assert tx.run(sql.REMOVE_INVITATION, invitation_id="i") == []
    assert registry.reader.all(sql.LIST_INVITATIONS, now=NOW) == []
    assert registry.events()[-1] == "invitation.used"


def test_a_store_is_taken_by_one_at_a_time(registry: Registry) -> None:
    """Each taking and each end moves the generation that every process watches."""

    def generations() -> list[tuple[str, str, int]]:
        rows = registry.reader.all(sql.LIST_GENERATIONS, user_ids=f'["{_ANA}", "absent"]')
        return [(row.id, row.store_state, row.store_generation) for row in rows]

    assert generations() == [(_ANA, "open", 1)]
    with registry.write() as tx:
        assert tx.run(sql.BEGIN_STORE_STATE, user_id=_ANA, store_state="rotating")
        assert tx.run(sql.BEGIN_STORE_STATE, user_id=_ANA, store_state="erasing") == []
    assert generations() == [(_ANA, "rotating", 2)]
    assert [row.id for row in registry.reader.all(sql.LIST_MOVING_STORES)] == [_ANA]
    with registry.write() as tx:
        assert tx.run(sql.END_STORE_STATE, user_id=_ANA, store_state="erasing") == []
        assert tx.run(sql.END_STORE_STATE, user_id=_ANA, store_state="rotating")
    assert generations() == [(_ANA, "open", 3)]


def test_a_change_of_key_is_adopted_whole_or_dropped_whole(registry: Registry) -> None:
    """Nothing pending is left by either."""
    pending: dict[str, Value] = {
        "user_id": _ANA,
        "database_password": b"new wrap",
        "kdf_params": '{"t": 3}',
        "kdf_salt": b"new salt",
        "dek_id": "dek-new",
        "file_salt": b"new file",
    }
    with registry.write() as tx:
        assert tx.run(sql.SET_PENDING_KEY, **pending) == []  # not while it is in service
        for end in (sql.DROP_PENDING_KEY, sql.ADOPT_PENDING_KEY):
            tx.run(sql.BEGIN_STORE_STATE, user_id=_ANA, store_state="rotating")
            assert tx.run(sql.SET_PENDING_KEY, **pending)
            found = parameters(end, {"user_id": _ANA, "now": NOW})
            assert tx.run(end, **found)
            assert tx.run(end, **found) == []
            row = tx.one(sql.FIND_ACCOUNT, user_id=_ANA)
            assert row is not None
            key = (row.database_password, row.kdf_params, row.kdf_salt, row.dek_id, row.file_salt)
            is_new = end is sql.ADOPT_PENDING_KEY
            assert (key == tuple(pending.values())[1:]) is is_new
            assert (row.store_state, row.pending_dek_id, row.pending_file_salt) == (
                "open",
                None,
                None,
            )


def test_a_password_is_not_raised_over_a_newer_one(registry: Registry) -> None:
    """Only the wrap that was read is replaced."""
    raised: dict[str, Value] = {
        "user_id": _ANA,
        "database_password": b"dearer",
        "password_hash": None,
        "kdf_params": "{}",
        "kdf_salt": b"s",
        "now": NOW,
        "was": b"wrap",
    }
    with registry.write() as tx:
        assert tx.run(sql.RAISE_PASSWORD_COST, **raised)
        assert tx.run(sql.RAISE_PASSWORD_COST, **raised) == []


def test_an_erased_member_takes_slots_sessions_and_edges_along(registry: Registry) -> None:
    """The row goes last, only when it is being erased, and each going is recorded."""
    with registry.write() as tx:
        add_slot(tx, "k1")
        add_session(tx, "s1", "k1")
        tx.run(sql.ADD_SUPERVISION, subject=_ANA, supervisor=_BEN, now=NOW)
        assert tx.run(sql.REMOVE_ACCOUNT, user_id=_ANA) == []
        tx.run(sql.BEGIN_STORE_STATE, user_id=_ANA, store_state="erasing")
        assert tx.run(sql.REMOVE_ACCOUNT, user_id=_ANA)
    assert registry.reader.one(sql.FIND_CREDENTIAL, session_id="s1") is None
    assert registry.reader.all(sql.LIST_SLOTS, user_id=_ANA) == []
    assert registry.reader.all(sql.LIST_SUBJECTS, supervisor=_BEN) == []
    gone = ["key_slot.deleted", "session.deleted", "supervision.deleted", "user.deleted"]
    assert sorted(registry.events()[-4:]) == gone


def test_the_last_administrator_is_known(registry: Registry) -> None:
    """One that is active and stays, beside the one in question."""
    with registry.write():
        registry.connection.all("UPDATE users SET role_id = 'admin' WHERE id = :id", {"id": _ANA})
    assert registry.reader.one(sql.COUNT_ADMINISTRATORS, user_id=_ANA) == (0,)
    assert registry.reader.one(sql.COUNT_ADMINISTRATORS, user_id=_BEN) == (1,)
    assert registry.reader.one(sql.COUNT_ACCOUNTS) == (2,)


def test_a_swapped_file_is_told_by_its_salt(registry: Registry) -> None:
    """Or it is nobody's."""
    assert registry.reader.one(sql.FIND_OWNER_OF_SALT, file_salt=b"salt-ben") == (_BEN,)
    assert registry.reader.one(sql.FIND_OWNER_OF_SALT, file_salt=b"unknown") is None


def test_the_throttle_stays_within_its_bound(registry: Registry) -> None:
    """The oldest windows go first."""
    with registry.write() as tx:
        for age in (3, 1, 2):
            for failures in (1, 2):
                tx.run(
                    sql.SET_THROTTLE,
                    key=bytes([age]),
                    kind="network",
                    failures=failures,
                    window_started_at=age,
                    next_allowed_at=age,
                )
        assert tx.one(sql.COUNT_THROTTLE) == (3,)
        tx.run(sql.REMOVE_OLDEST_THROTTLE, count=2)
        assert tx.one(sql.COUNT_THROTTLE) == (1,)
        assert tx.one(sql.FIND_THROTTLE, key=bytes([3])) == (2, 3, 3)
        tx.run(sql.REMOVE_THROTTLE, key=bytes([3]))
        assert tx.one(sql.COUNT_THROTTLE) == (0,)
    assert "sign_in_throttle.created" not in registry.events()
