"""When work in a store next wants something: what is looked at while nothing is."""

import json
from collections.abc import Sequence

from app.db.runtime import statements as sql
from app.db.runtime.rows import NextJobRow
from app.db.runtime.store import RuntimeReader


def next_due(reader: RuntimeReader) -> NextJobRow:
    """When the store's jobs next want something."""
    row = reader.one(sql.FIND_NEXT_JOB)
    return NextJobRow(None, None) if row is None else row


def count_due(reader: RuntimeReader, limit: int) -> int:
    """How many of the program's jobs are due; what is beyond the limit is not counted."""
    row = reader.one(sql.COUNT_DUE_JOBS, now=reader.now_ms, limit=limit)
    return 0 if row is None else row.value


def next_work(reader: RuntimeReader) -> int | None:
    """When anything at all in the store is next due, Unix milliseconds; None for never."""
    row = reader.one(sql.FIND_NEXT_WORK)
    return None if row is None else row.value


def next_outside(reader: RuntimeReader, kinds: Sequence[str]) -> int | None:
    """When the next job of these kinds is due for a program outside; None without one."""
    row = reader.one(sql.FIND_NEXT_OUTSIDE_JOB, kinds=json.dumps(list(kinds)))
    return None if row is None else row.value
