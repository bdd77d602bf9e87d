"""The chained record of changes: what a check finds, and what it takes for granted."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.clock import Millis
from app.db import functions, sqlite
from app.db.runtime.store import RuntimeTransactor
from app.db.sqlite import Connection, Value
from app.errors.conflicts import ConstraintError
from app.errors.inputs import InvalidInputError
from app.runtime import audit
from app.runtime.audit import ChangeFilter
from tests.support.matrix import chosen
from tests.support.probes import ACTOR, KIND, NOW, clock, make_store, open_store

_ROWS: Final = 8
_COLUMNS: Final = (
    "entity",
    "record_id",
    "ordinal",
    "occurred_at",
    "kind",
    "actor_kind",
    "actor_sub",
    "acting_for",
    "action",
    "request_id",
    "trace_id",
    "encoding",
    "fields",
    "salt",
    "fields_digest",
    "row_hash",
)
_CHECKPOINT: Final = (
    "INSERT INTO sys_audit_checkpoints SELECT 3, row_hash, 3, 0 FROM sys_audit WHERE seq = 3"
)
_SKELETON: Final = (*_COLUMNS[:12], "fields_digest")


def fill(path: Path) -> Path:
    """A plain store with some changes on record."""
    make_store(path, None)
    with closing(open_store(path, None)) as connection:
        connection.actor = ACTOR
        for turn in range(_ROWS // 2):
            connection.all(f"INSERT INTO probes (id, name) VALUES ('{turn}', 'a')")  # noqa: S608 - of this test
            connection.all(f"UPDATE probes SET name = 'b{turn}' WHERE id = '{turn}'")  # noqa: S608 - of this test
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a store, not to be changed."""
    return fill(tmp_path_factory.mktemp("audit") / "a.db")


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[RuntimeTransactor]:
    """Such a store, to be changed as the program changes it."""
    with closing(open_store(fill(tmp_path / "a.db"), None)) as connection:
        connection.actor = ACTOR
        yield RuntimeTransactor(connection)


def raw(path: Path) -> Connection:
    """A handle of whoever can write the file: without authorizer, triggers' functions, checks."""
    connection = sqlite.open_existing(
        path, None, application_id=KIND.application_id, clock=clock, reader=False
    )
    connection.all("PRAGMA ignore_check_constraints = ON")
    return connection


def test_a_chain_that_nobody_touched_holds(tx: RuntimeTransactor) -> None:
    """Every row is counted, and the head is the last one's hash."""
    found = audit.verify(tx)
    assert (found.rows, found.erased, found.unchained, found.removed) == (_ROWS, 0, 0, 0)
    assert (found.bad_seq, found.fault) == (None, None)
    assert found.head is not None
    assert found.head == audit.head(tx)
    assert audit.verify(tx, found.head.row_hash) == found


def test_an_empty_record_holds(tmp_path: Path) -> None:
    """And has no head; one that was kept is not found."""
    with closing(open_store(make_store(tmp_path / "a.db"))) as connection:
        reader = RuntimeTransactor(connection)
        assert audit.head(reader) is None
        assert audit.verify(reader).fault is None
        assert audit.verify(reader, b"x" * 32).fault == "head"


def test_a_head_is_found_for_ever(tx: RuntimeTransactor) -> None:
    """Whatever is added after it."""
    kept = audit.head(tx)
    assert kept is not None
    tx._connection.all("DELETE FROM probes")
    assert audit.verify(tx, kept.row_hash).fault is None
    assert audit.head(tx) != kept


_TEXTS: Final = st.sampled_from(["x", "{}", '{"name":["a","b"]}', "probe"])
_EDITS: Final = st.one_of(
    st.tuples(
        st.just("set"),
        st.integers(1, _ROWS),
        st.sampled_from(_COLUMNS),
        st.one_of(_TEXTS, st.integers(0, 9), st.binary(min_size=16, max_size=32), st.none()),
    ),
    st.tuples(st.just("delete"), st.integers(1, _ROWS), st.none(), st.none()),
    st.tuples(st.just("insert"), st.integers(1, _ROWS), st.none(), st.none()),
    st.tuples(st.just("swap"), st.integers(1, _ROWS), st.none(), st.integers(1, _ROWS)),
)


def _tamper(connection: Connection, edit: tuple[str, int, str | None, Any]) -> None:
    kind, seq, column, value = edit
    params: dict[str, Value] = {"seq": seq, "value": value}
    if kind == "set":
        connection.all(f"UPDATE sys_audit SET {column} = :value WHERE seq = :seq", params)  # noqa: S608 - of this test
    elif kind == "delete":
        connection.all("DELETE FROM sys_audit WHERE seq = :seq", {"seq": seq})
    elif kind == "insert":
        names = ", ".join(name for name in _COLUMNS if name != "ordinal")
        connection.all(
            f"INSERT INTO sys_audit (ordinal, {names}) "  # noqa: S608 - of this test
            f"SELECT ordinal + 100, {names} FROM sys_audit WHERE seq = :seq",
            {"seq": seq},
        )
    else:
        for old, new in ((seq, -1), (value, seq), (-1, value)):
            connection.all(
                "UPDATE sys_audit SET seq = :new WHERE seq = :old", {"old": old, "new": new}
            )


def _chain_anew(connection: Connection) -> None:
    """What whoever knows how the chain is made does after an edit."""
    previous: bytes | None = None
    connection.all("UPDATE sys_audit SET seq = -seq")
    rows = connection.all(
        f"SELECT -seq, {', '.join(_SKELETON[:-1])}, salt, fields, fields_digest "  # noqa: S608 - of this test
        "FROM sys_audit ORDER BY seq DESC"
    )
    for place, (seq, *skeleton, salt, fields, digest) in enumerate(rows, start=1):
        if fields is not None:
            digest = functions.fields_digest(salt, fields)  # noqa: PLW2901 - as it will be
        previous = functions.row_hash(previous, *skeleton, digest)
        connection.all(
            "UPDATE sys_audit SET seq = :place, fields_digest = :digest, row_hash = :hash "
            "WHERE seq = -:seq",
            {"place": place, "digest": digest, "hash": previous, "seq": seq},
        )
    connection.all(f"UPDATE sqlite_sequence SET seq = {len(rows)} WHERE name = 'sys_audit'")  # noqa: S608 - of this test


@settings(max_examples=chosen([60], [600])[0])
@given(edit=_EDITS, is_expert=st.booleans())
def test_any_edit_before_a_kept_head_is_found(
    recorded: Path, edit: tuple[str, int, str | None, Any], *, is_expert: bool
) -> None:
    """Edited, deleted, inserted or moved; by hand, or with the rest of the chain made anew."""
    with closing(raw(recorded)) as connection:
        reader = RuntimeTransactor(connection)
        kept = audit.head(reader)
        assert kept is not None
        before = connection.all("SELECT * FROM sys_audit ORDER BY seq")
        connection.all("BEGIN")
        try:
            _tamper(connection, edit)
            assume(connection.all("SELECT * FROM sys_audit ORDER BY seq") != before)
            if is_expert:
                _chain_anew(connection)
                # What was put behind the head is no edit of what stood before it.
                after = connection.all("SELECT * FROM sys_audit ORDER BY seq")
                assume(after[: len(before)] != before)
            found = audit.verify(reader, kept.row_hash)
            assert found.fault is not None
        except ConstraintError:
            assume(False)  # noqa: FBT003 - the schema refused it already
        finally:
            connection.all("ROLLBACK")
        assert audit.verify(reader, kept.row_hash).fault is None


@pytest.mark.parametrize(
    ("statement", "fault", "seq"),
    [
        ("DELETE FROM sys_audit WHERE seq = 3", "gap", 3),
        ("DELETE FROM sys_audit WHERE seq > 6", "end", 7),
        ("UPDATE sys_audit SET action = 'x' WHERE seq = 2", "row", 2),
        ("UPDATE sys_audit SET encoding = 1 WHERE seq = 2", "row", 2),
        ("UPDATE sys_audit SET row_hash = NULL WHERE seq = 4", "row", 4),
        ("UPDATE sys_audit SET fields = '{}' WHERE seq = 5", "fields", 5),
        ("UPDATE sys_audit SET fields = NULL WHERE seq = 5", "fields", 5),
        ("UPDATE sys_audit SET salt = NULL WHERE seq = 5", "fields", 5),
        (_CHECKPOINT, "gap", 1),
    ],
)
def test_a_check_says_what_and_where(tmp_path: Path, statement: str, fault: str, seq: int) -> None:
    """The first row that does not hold; those before it were counted."""
    with closing(raw(fill(tmp_path / "a.db"))) as connection:
        connection.all(statement)
        found = audit.verify(RuntimeTransactor(connection))
        assert (found.fault, found.bad_seq) == (fault, seq)
        assert found.rows == seq - 1


def test_fields_that_expire_break_nothing(tx: RuntimeTransactor) -> None:
    """They go with their salt, the oldest first and no more at once than was asked for."""
    kept = audit.head(tx)
    assert kept is not None
    assert audit.expire_fields(tx, NOW, 100) == 0
    assert audit.expire_fields(tx, Millis(NOW + 1), 3) == 3
    assert audit.expire_fields(tx, Millis(NOW + 1), 100) == _ROWS - 3
    assert audit.expire_fields(tx, Millis(NOW + 1), 100) == 0
    found = audit.verify(tx, kept.row_hash)
    assert (found.fault, found.erased) == (None, _ROWS)
    left = tx._connection.all("SELECT DISTINCT fields, salt FROM sys_audit")
    assert left == [(None, None)]


def test_the_oldest_rows_go_for_a_checkpoint(tx: RuntimeTransactor) -> None:
    """On it the chain goes on, again and again, and to the very last."""
    kept = audit.head(tx)
    assert kept is not None
    assert audit.remove_through(tx, 3) == 3
    assert audit.remove_through(tx, 5) == 2
    tx._connection.all("DELETE FROM probes WHERE id = '1'")
    found = audit.verify(tx, kept.row_hash)
    assert (found.fault, found.removed, found.rows) == (None, 5, _ROWS - 5 + 1)
    assert audit.remove_through(tx, _ROWS) == _ROWS - 5
    # What a removed row's hash was nobody can tell, but for the last one's.
    assert audit.verify(tx, kept.row_hash).fault is None
    tx._connection.all("DELETE FROM probes WHERE id = '2'")
    assert audit.remove_through(tx, _ROWS + 1) == 1
    assert audit.verify(tx).fault is None
    assert audit.verify(tx, kept.row_hash).fault == "head"


@pytest.mark.parametrize("seq", [0, _ROWS, _ROWS + 1, -1])
def test_only_a_row_with_one_behind_it_can_be_the_last_to_go(
    tx: RuntimeTransactor, seq: int
) -> None:
    """Else nothing goes."""
    with pytest.raises(InvalidInputError):
        audit.remove_through(tx, seq)
    assert audit.verify(tx).rows == _ROWS


def test_rows_from_before_the_chain_are_counted_apart(tx: RuntimeTransactor) -> None:
    """They can only stand at the beginning."""
    connection = tx._connection
    columns = "salt = NULL, fields_digest = NULL, row_hash = NULL"
    connection.all(f"UPDATE sys_audit SET {columns}")  # noqa: S608 - of this test
    assert audit.head(tx) is None
    connection.all("DELETE FROM probes WHERE id = '1'")
    found = audit.verify(tx)
    assert (found.fault, found.unchained, found.rows) == (None, _ROWS, _ROWS + 1)
    connection.all("DELETE FROM probes WHERE id = '2'")
    connection.all(f"UPDATE sys_audit SET {columns} WHERE seq = {_ROWS + 1}")  # noqa: S608 - of this test
    assert audit.verify(tx).bad_seq == _ROWS + 2


def test_changes_are_listed_newest_first(tx: RuntimeTransactor) -> None:
    """By entity, record, actor and time, page by page."""

    def seqs(which: ChangeFilter, before: int | None = None, limit: int = 100) -> list[int]:
        return [row.seq for row in audit.list_changes(tx, which, before, limit)]

    everything = list(range(_ROWS, 0, -1))
    assert seqs(ChangeFilter()) == everything
    assert seqs(ChangeFilter(), limit=3) == everything[:3]
    assert seqs(ChangeFilter(), before=3) == [2, 1]
    assert seqs(ChangeFilter(entity="probe", record_id="1")) == [4, 3]
    assert seqs(ChangeFilter(entity="other")) == []
    assert seqs(ChangeFilter(actor="someone")) == everything
    assert seqs(ChangeFilter(actor="another")) == []
    assert seqs(ChangeFilter(since=NOW)) == everything
    assert seqs(ChangeFilter(since=Millis(NOW + 1))) == []
