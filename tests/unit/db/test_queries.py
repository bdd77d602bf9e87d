"""How `.sql` files become statements, and what they may not hold."""

from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.queries import Block, NoRow, StatementSet, load, parse


class _Row(NamedTuple):
    a: int
    b: str


_FILE = """\
-- name: find_it
-- The one, or nothing.
-- inline: one row by primary key
-- scan: it is small
SELECT a, b FROM t
WHERE a = :a;

-- name: set_it
-- Sets it,
-- in two lines.
UPDATE t SET b = :b
"""


def test_a_file_is_taken_apart() -> None:
    """A block is a name, its sentences, its marks with their reasons, one statement."""
    assert parse(_FILE) == [
        Block(
            "find_it",
            "SELECT a, b FROM t\nWHERE a = :a",
            {"inline": "one row by primary key", "scan": "it is small"},
        ),
        Block("set_it", "UPDATE t SET b = :b", {}),
    ]


_HEAD = "-- name: x\n-- Does it.\n"


def _block(sql: str) -> str:
    return _HEAD + sql


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("SELECT 1;\n", id="no name"),
        pytest.param(f"-- A comment.\n{_HEAD}SELECT 1;\n", id="something before"),
        pytest.param("-- name: Find\n-- Does it.\nSELECT 1;\n", id="capital"),
        pytest.param("-- name: find it\n-- Does it.\nSELECT 1;\n", id="two words"),
        pytest.param("-- name: x\nSELECT 1;\n", id="no sentence"),
        pytest.param("-- name: x\n-- scan: only a mark\nSELECT 1;\n", id="only a mark"),
        pytest.param(_HEAD, id="nothing"),
        pytest.param(_block(";\n"), id="only an end"),
        pytest.param(_block("SELECT 1; SELECT 2;\n"), id="two statements"),
        pytest.param(_block("INSERT OR REPLACE INTO t VALUES (:a);\n"), id="or replace"),
        pytest.param(_block("insert or\n replace into t values (:a);\n"), id="over two lines"),
        pytest.param(_block("UPDATE OR REPLACE t SET a = :a;\n"), id="update or replace"),
        pytest.param(_block("REPLACE INTO t VALUES (:a);\n"), id="replace into"),
        pytest.param(_block("SELECT * FROM t WHERE a = ?;\n"), id="nameless parameter"),
        pytest.param(_block("SELECT a FROM t LIMIT :limit;\n"), id="prepared at each run"),
        pytest.param(_block("SELECT a FROM t\nLIMIT 1 offset\n :at;\n"), id="the same, over lines"),
        pytest.param(_block("SELECT 1 -- why\n;\n"), id="comment inside"),
    ],
)
def test_a_block_that_is_not_well_made_is_refused(text: str) -> None:
    """At load, which is at the start of the program."""
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_a_function_named_replace_is_allowed() -> None:
    """It is only the conflict clause that skips delete triggers."""
    assert parse(_block("SELECT replace(b, 'a', 'b') FROM t;\n"))


_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)


@given(st.lists(_NAMES, unique=True, max_size=6))
def test_every_block_of_a_file_is_found(names: list[str]) -> None:
    """In order, however many."""
    text = "\n".join(f"-- name: {name}\n-- Is it.\nSELECT '{name}';\n" for name in names)
    assert [(b.name, b.sql) for b in parse(text)] == [(n, f"SELECT '{n}'") for n in names]


def test_a_statement_is_bound_to_the_type_of_its_rows() -> None:
    """It makes rows of that type, knows its marks, and shows no SQL."""
    statements = StatementSet({block.name: block for block in parse(_FILE)})
    found = statements.bind("find_it", _Row)
    assert found.make((1, "x")) == _Row(1, "x")
    assert (found.inline, found.scan) == ("one row by primary key", "it is small")
    assert repr(found) == "<Statement find_it>"
    command = statements.bind_command("set_it")
    assert command.row is NoRow
    assert (command.inline, command.scan) == (None, None)
    assert statements.names == statements.bound.keys() == {"find_it", "set_it"}


def test_only_what_a_file_defines_is_bound() -> None:
    """A misspelt name is an error at import."""
    with pytest.raises(KeyError):
        StatementSet({}).bind("find_it", _Row)


def test_a_bucket_has_each_name_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all its files."""
    folder = tmp_path / "queries"
    folder.mkdir()
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    (folder / "a.sql").write_text(_FILE)
    assert load("bucket").names == {"find_it", "set_it"}
    (folder / "b.sql").write_text(_FILE)
    with pytest.raises(ValueError, match="two statements are named find_it"):
        load("bucket")
