"""The owner bucket's statements, each held against the schema that the migrations make."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from app.db import sqlite
from app.db.owner.statements import STATEMENTS
from app.db.owner.store import OWNER_FILE, OWNER_FUNCTIONS
from app.db.queries import Statement
from app.db.sqlite import Connection, Value
from tests.support.plans import is_prepared_again
from tests.support.probes import columns
from tests.support.stores import ACTOR, KEY, OwnerFile, owner_file

_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z_]+)")

_VALUES: Final[Mapping[str, Value]] = {
    "audience": "owner",
    "epoch": "e1",
    "key": "k",
    "match": '"word"',
    "metadata": "{}",
    "path": "n",
    "path_digest": b"digest",
    "path_key": b"key",
    "report_id": None,
    "sealed": b"sealed",
    "severity": "info",
    "value": "{}",
    "via": "put",
    "way": "sign_in",
}
"""Values that the schema's rules admit; every other parameter may be 1."""

_TEXTS: Final = frozenset(
    {
        "added",
        "agent_id",
        "author",
        "before_id",
        "body",
        "content",
        "dek_id",
        "doc_id",
        "file_id",
        "high",
        "id",
        "kind",
        "low",
        "network",
        "owner_id",
        "produced_by",
        "producer_user_id",
        "reader",
        "run_id",
        "session_id",
        "subject",
        "subject_user_id",
        "summary",
        "title",
    }
)

_BOUND: Final = [pytest.param(item, id=name) for name, item in STATEMENTS.bound.items()]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerFile]:
    """A store that every statement meets empty, but for a file that a blob can hold."""
    folder: Path = tmp_path_factory.mktemp("owner")
    with owner_file(folder) as made:
        with made.write():
            made.rows(
                "INSERT INTO sys_files (id, name, key, digest, size_bytes, created_at)"
                " VALUES ('x', 'x', zeroblob(32), x'', 0, 0)"
            )
        yield made


def _parameters(statement: Statement[Any]) -> dict[str, Value]:
    names = _PARAMETER.findall(statement.sql)
    return {name: _VALUES.get(name, "x" if name in _TEXTS else 1) for name in names}


def test_every_statement_is_bound() -> None:
    """No file defines a statement that nothing uses."""
    assert STATEMENTS.names == STATEMENTS.bound.keys()


@pytest.fixture(scope="module")
def handle(store: OwnerFile) -> Iterator[Connection]:
    """Another handle on the store: one that made no schema."""
    made = sqlite.open_existing(
        store.path, KEY, application_id=OWNER_FILE, clock=store.clock, reader=False
    )
    with closing(made):
        made.register(OWNER_FUNCTIONS)
        made.actor = ACTOR
        yield made


_ASK_THEMSELVES: Final = {"add_note", "optimize_search_index", "search_notes", "sum_pages"}
"""Their virtual table, a search index or a pragma, prepares a statement of its own."""


@pytest.mark.parametrize("statement", _BOUND)
def test_a_statement_is_prepared_once(handle: Connection, statement: Statement[Any]) -> None:
    """A plan of the values it is given would be made anew at each run."""
    again = is_prepared_again(handle, statement, _parameters(statement))
    assert again == (statement.name in _ASK_THEMSELVES)


@pytest.mark.parametrize("statement", _BOUND)
def test_columns_are_the_fields_of_the_row(store: OwnerFile, statement: Statement[Any]) -> None:
    """What a statement gives is its row type, name by name and in order."""
    connection = store.connection
    connection.actor = ACTOR
    connection.all("BEGIN IMMEDIATE")
    try:
        names = columns(connection, statement.sql, _parameters(statement))
    finally:
        connection.all("ROLLBACK")
        connection.actor = None
    assert names == statement.row._fields


@pytest.mark.parametrize("statement", _BOUND)
def test_a_table_is_searched_and_not_scanned(store: OwnerFile, statement: Statement[Any]) -> None:
    """A statement finds its rows by a key or index, or says why not."""
    plan = _plan(store, statement)
    scans = [step for step in plan if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"]
    assert bool(scans) == (statement.scan is not None), plan


@pytest.mark.parametrize(
    "statement", [param for param in _BOUND if STATEMENTS.bound[str(param.id)].inline]
)
def test_an_inline_statement_reads_one_row(store: OwnerFile, statement: Statement[Any]) -> None:
    """What runs on the event loop is a single search by a unique key, without a sort."""
    [step] = _plan(store, statement)
    assert step.startswith("SEARCH")
    assert "LIMIT 1" in statement.sql or re.search(r"\((\w+)=\?\)", step)


def _plan(store: OwnerFile, statement: Statement[Any]) -> list[str]:
    rows = store.connection.all(f"EXPLAIN QUERY PLAN {statement.sql}", _parameters(statement))
    return [str(row[-1]) for row in rows]
