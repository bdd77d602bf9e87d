"""`strongroom audit`: the chain is checked from outside, and its head told."""

import sqlite3  # noqa: TID251 - as whoever can write the file does
from contextlib import closing

import pytest

from app.cli import supervisor
from app.settings import Settings
from tests.support.rooms import PASSWORD
from tests.unit.cli.conftest import Terminal


@pytest.fixture
def recorded(terminal: Terminal) -> Terminal:
    """A root in which something was done."""
    terminal.run("user", "add", "ana", "--password-stdin", typed=PASSWORD)
    return terminal


def _edit(settings: Settings, statement: str) -> None:
    with closing(sqlite3.connect(settings.system_file)) as connection, connection:
        connection.execute(statement)


def test_a_record_that_nobody_edited_exits_with_0(recorded: Terminal) -> None:
    """Beside a running server too; the head is the one that is told by itself."""
    with supervisor.root_taken(recorded.settings):
        found = recorded.answer("audit", "verify")
        head = recorded.answer("audit", "head")["head"]
    assert (found["fault"], found["bad_seq"], found["removed"]) == (None, None, 0)
    assert found["head"] == head
    assert found["rows"] == head["seq"]
    assert recorded.answer("audit", "verify", "--head", head["hash"])["fault"] is None
    ended = recorded.run("audit", "verify")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        f"Rows that hold: {head['seq']}; of these without fields: 0.",
        f"Head: row {head['seq']}, {head['hash']}.",
    ]
    assert recorded.run("audit", "head").stdout == f"Head: row {head['seq']}, {head['hash']}.\n"


EDITS = (
    ("DELETE FROM sys_audit WHERE seq = 2", "gap", "Row 2 is missing, or stands in another"),
    ("UPDATE sys_audit SET action = 'x' WHERE seq = 2", "row", "Row 2 is not as it was"),
    ("UPDATE sys_audit SET fields = '{}' WHERE seq = 2", "fields", "The fields of row 2"),
    ("DELETE FROM sys_audit WHERE seq >= 2", "end", "Row 2 and what came after it"),
)


def test_an_edit_exits_with_1(recorded: Terminal) -> None:
    """With the first row that does not hold, and why."""
    sound = recorded.settings.system_file.read_bytes()
    for statement, fault, words in EDITS:
        recorded.settings.system_file.write_bytes(sound)
        _edit(recorded.settings, statement)
        found = recorded.answer("audit", "verify", code=1)
        assert (found["fault"], found["bad_seq"], found["rows"]) == (fault, 2, 1)
        ended = recorded.run("audit", "verify")
        assert ended.exit_code == 1
        assert ended.stdout.splitlines()[1].startswith(words)


def test_a_head_that_is_not_found_exits_with_1(recorded: Terminal) -> None:
    """Though every row fits the one before it."""
    found = recorded.answer("audit", "verify", "--head", "ab" * 32, code=1)
    assert (found["fault"], found["bad_seq"]) == ("head", None)
    ended = recorded.run("audit", "verify", "--head", "AB" * 32)
    assert ended.stdout.splitlines()[1].startswith("No row has the hash that was kept")


def test_what_is_no_record_is_told_in_words(recorded: Terminal) -> None:
    """Rows from before the chain, rows that were removed, and none at all."""
    columns = "salt = NULL, fields_digest = NULL, row_hash = NULL"
    _edit(recorded.settings, f"UPDATE sys_audit SET {columns}")  # noqa: S608 - of this test
    ended = recorded.run("audit", "verify")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[1].startswith("Rows from before the chain began: ")
    assert ended.stdout.splitlines()[-1] == "Nothing is recorded yet."
    assert recorded.answer("audit", "head") == {"head": None}
    _edit(recorded.settings, "INSERT INTO sys_audit_checkpoints VALUES (1, x'00', 1, 0)")
    _edit(recorded.settings, "DELETE FROM sys_audit WHERE seq = 1")
    ended = recorded.run("audit", "verify")
    assert ended.exit_code == 1
    assert "Rows that were removed as the oldest: 1." in ended.stdout.splitlines()


def test_what_is_no_hash_exits_with_2(recorded: Terminal) -> None:
    """Without looking at anything."""
    for text in ("", "ab", "zz" * 32, "ab" * 33):
        assert recorded.run("audit", "verify", "--head", text).exit_code == 2


def test_a_root_that_cannot_be_read_exits_with_3(recorded: Terminal) -> None:
    """In words, or in JSON."""
    recorded.settings.system_file.unlink()
    assert recorded.run("audit", "verify").exit_code == 3
    assert recorded.answer("audit", "head", code=3)["error"]["code"] == "cannot_start"


def test_the_oldest_rows_are_removed_and_the_rest_still_holds(recorded: Terminal) -> None:
    """A head that was kept before is still found; the last row cannot go."""
    head = recorded.answer("audit", "head")["head"]
    assert recorded.answer("audit", "trim", "1", "--yes") == {"removed": 1, "through": 1}
    found = recorded.answer("audit", "verify", "--head", head["hash"])
    assert (found["fault"], found["removed"]) == (None, 1)
    assert recorded.run("audit", "trim", "2", "--yes").stdout == "Rows removed: 1.\n"
    for beyond in ("1", "99999"):
        assert recorded.run("audit", "trim", beyond, "--yes").exit_code == 2
