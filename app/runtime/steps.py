"""Operations that span files, step by step: recorded before they act, answered after.

Outcomes only: ids, counts, digests. Never a secret, for these rows outlive the operation.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final, Literal

from app.db.runtime import statements as sql
from app.db.runtime.rows import RecordRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.runtime import idempotency

BUILD: Final = version("strongroom")

Outcome = Literal["done", "undone"]


def begin(tx: RuntimeTransactor, key: str, action: str, subject: str, shape: Sequence[str]) -> None:
    """Record that an operation begins.

    Args:
        tx: Where it is recorded.
        key: Of this run; a new one each time.
        action: Its name.
        subject: The id of what it is about.
        shape: The names of its steps, in order.
    """
    tx.run(
        sql.BEGIN_RECORD,
        key=key,
        action=action,
        subject=subject,
        build=BUILD,
        shape=",".join(shape),
        now=tx.now_ms,
    )


def sent(tx: RuntimeTransactor, key: str, name: str, asked: str) -> None:
    """Record that a step is about to act; of what it was asked only a digest is kept."""
    fingerprint = hashlib.sha256(asked.encode()).hexdigest()
    tx.run(sql.BEGIN_STEP, key=key, name=name, fingerprint=fingerprint, now=tx.now_ms)


def answered(tx: RuntimeTransactor, key: str, name: str, answer: Mapping[str, str | int]) -> None:
    """Record a step's outcome."""
    tx.run(sql.ANSWER_STEP, key=key, name=name, answer=json.dumps(answer), now=tx.now_ms)


def finish(tx: RuntimeTransactor, key: str, outcome: Outcome) -> bool:
    """Record that the operation is over; once over, it stays as it is: then False."""
    idempotency.settle(tx, key, outcome)
    return bool(tx.run(sql.FINISH_RECORD, key=key, outcome=outcome, now=tx.now_ms))


def list_open(reader: RuntimeReader) -> list[RecordRow]:
    """Operations that are half-done: under way, or left by a crash."""
    return reader.all(sql.LIST_OPEN_RECORDS)


def answers(reader: RuntimeReader, key: str) -> dict[str, dict[str, str | int]]:
    """The outcomes an operation has recorded so far, by step."""
    rows = reader.all(sql.LIST_STEPS, key=key)
    return {row.name: json.loads(row.answer) for row in rows if row.answer is not None}
