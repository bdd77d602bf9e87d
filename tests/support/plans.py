"""Statements held against a schema: what parameters they take and how SQLite would run them."""

import re
from collections.abc import Mapping
from typing import Any, Final

from app.db.queries import Statement
from app.db.sqlite import Connection, Value

_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z_]+)")


def parameters(statement: Statement[Any], values: Mapping[str, Value]) -> dict[str, Value]:
    """A value for every parameter of the statement: the one given, else the number 1."""
    return {name: values.get(name, 1) for name in _PARAMETER.findall(statement.sql)}


def is_prepared_again(
    connection: Connection, statement: Statement[Any], params: Mapping[str, Value]
) -> bool:
    """Whether a second run of the statement prepares it anew; on a handle that made no schema."""
    asked: list[int] = []

    def judge(action: int, *_: str | None) -> int:
        asked.append(action)
        return 0

    connection.guard(judge)
    counts = []
    for _ in range(2):
        connection.all("BEGIN IMMEDIATE")
        asked.clear()
        try:
            connection.all(statement.sql, params)
            counts.append(len(asked))
        finally:
            connection.all("ROLLBACK")
    return counts[-1] > 0


def plan(connection: Connection, statement: Statement[Any]) -> list[str]:
    """The steps of EXPLAIN QUERY PLAN; an error when the schema lacks what is named."""
    sql = f"EXPLAIN QUERY PLAN {statement.sql}"
    return [str(row[-1]) for row in connection.all(sql, parameters(statement, {}))]


def scans(steps: list[str]) -> list[str]:
    """Those steps that read a whole table or index."""
    return [step for step in steps if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"]
