"""Operations that span files, step by step: recorded before they act, answered after.

Outcomes only: ids, counts, digests. Never a secret, for these rows outlive the operation.

Whoever runs an operation has its generation. Whoever takes it over after a crash has the
next, and from then on the one before can write nothing. What was begun with other steps
than this program knows, or asked something else, is marked and left to a person.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final, Literal, NamedTuple

from app.db.runtime import statements as sql
from app.db.runtime.rows import RecordRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import RunnerLostError

_RELEASED: Final = "released"
"""In the place of a fingerprint: a person has decided that the step may ask something else."""
BUILD: Final = version("strongroom")

Outcome = Literal["done", "undone"]
Record = RecordRow
"""One operation that is not over."""


class Run(NamedTuple):
    """One runner of one operation."""

    key: str
    """Of the operation; a new one each time it is begun."""
    generation: int = 1
    """Which runner this is; the first is who began it."""


def begin(tx: RuntimeTransactor, run: Run, action: str, subject: str, shape: Sequence[str]) -> None:
    """Record that an operation begins.

    Args:
        tx: Where it is recorded.
        run: Its first.
        action: Its name.
        subject: The id of what it is about.
        shape: The names of its steps, in order.
    """
    tx.run(
        sql.BEGIN_RECORD,
        key=run.key,
        action=action,
        subject=subject,
        build=BUILD,
        shape=",".join(shape),
        now=tx.now_ms,
    )


def sent(tx: RuntimeTransactor, run: Run, name: str, asked: str) -> None:
    """Record that a step is about to act; of what it was asked only a digest is kept.

    Raises:
        RunnerLostError: The operation is over or somebody else's by now, or the step was
            sent before and asked something else.
    """
    recorded = tx.run(
        sql.BEGIN_STEP,
        key=run.key,
        generation=run.generation,
        name=name,
        fingerprint=_fingerprint(asked),
        released=_RELEASED,
        now=tx.now_ms,
    )
    if not recorded:
        raise RunnerLostError


def answered(tx: RuntimeTransactor, run: Run, name: str, answer: Mapping[str, str | int]) -> None:
    """Record a step's outcome.

    Raises:
        RunnerLostError: The operation is over or somebody else's by now, or the step was
            never sent.
    """
    recorded = tx.run(
        sql.ANSWER_STEP,
        key=run.key,
        generation=run.generation,
        name=name,
        answer=json.dumps(answer),
        now=tx.now_ms,
    )
    if not recorded:
        raise RunnerLostError


def finish(tx: RuntimeTransactor, run: Run, outcome: Outcome) -> bool:
    """Record that the operation is over.

    Returns:
        False when it was over already; then it stays as it is.

    Raises:
        RunnerLostError: It is somebody else's by now.
    """
    if tx.run(
        sql.FINISH_RECORD,
        key=run.key,
        generation=run.generation,
        outcome=outcome,
        now=tx.now_ms,
    ):
        return True
    if tx.one(sql.FIND_OPEN_RECORD, key=run.key) is not None:
        raise RunnerLostError
    return False


def take_over(
    tx: RuntimeTransactor, key: str, shape: Sequence[str], asked: Mapping[str, str]
) -> Run | None:
    """Become the runner of an operation that a crash left.

    Args:
        tx: Where it is recorded.
        key: Which.
        shape: The steps it has in this program.
        asked: What its steps would be asked now, as far as that is known.

    Returns:
        The run; None when there is nothing to run: it is over, or it was begun otherwise
        than this program would go on, and then it is marked.
    """
    record = tx.one(sql.FIND_OPEN_RECORD, key=key)
    if record is None or record.diverged:
        return None
    prints = {name: _fingerprint(text) for name, text in asked.items()}
    steps = tx.all(sql.LIST_STEPS, key=key)
    is_same = record.shape == ",".join(shape) and all(
        step.fingerprint in {prints.get(step.name, step.fingerprint), _RELEASED} for step in steps
    )
    if not is_same:
        tx.run(sql.MARK_DIVERGED, key=key)
        return None
    [taken] = tx.run(sql.TAKE_RECORD_OVER, key=key)
    return Run(key, taken.value)


def times_cut(reader: RuntimeReader, action: str, subject: str) -> int:
    """How often this build was cut amid an operation and had it undone, since it succeeded."""
    found = reader.one(sql.COUNT_CUT_RECORDS, action=action, subject=subject, build=BUILD)
    return 0 if found is None else found.value


def mark_late(tx: RuntimeTransactor, started_before: int) -> list[RecordRow]:
    """Mark what is not over although it began so long ago, for being told once.

    Args:
        tx: Where they are recorded.
        started_before: Unix milliseconds.

    Returns:
        Those that were not marked before.
    """
    return tx.run(sql.MARK_LATE_RECORDS, started_before=started_before, now=tx.now_ms)


def release(tx: RuntimeTransactor, key: str, shape: Sequence[str]) -> RecordRow:
    """Let a marked operation go on in this program: a person has decided so.

    Args:
        tx: Where it is recorded.
        key: Which.
        shape: The steps it has in this program, which take the place of those on record.

    Returns:
        It, as it was.

    Raises:
        NotFoundError: Nothing of this key is marked.
    """
    record = tx.one(sql.FIND_OPEN_RECORD, key=key)
    if record is None or not record.diverged:
        raise NotFoundError
    tx.run(sql.RELEASE_RECORD, key=key, shape=",".join(shape))
    tx.run(sql.RELEASE_STEPS, key=key, fingerprint=_RELEASED)
    return record


def list_open(reader: RuntimeReader) -> list[RecordRow]:
    """Operations that are half-done: under way, left by a crash, or left to a person."""
    return reader.all(sql.LIST_OPEN_RECORDS)


def find_open(reader: RuntimeReader, key: str) -> RecordRow | None:
    """One that is not over; None when it is, or never was."""
    return reader.one(sql.FIND_OPEN_RECORD, key=key)


def answers(reader: RuntimeReader, key: str) -> dict[str, dict[str, str | int]]:
    """The outcomes an operation has recorded so far, by step."""
    rows = reader.all(sql.LIST_STEPS, key=key)
    return {row.name: json.loads(row.answer) for row in rows if row.answer is not None}


def _fingerprint(asked: str) -> str:
    return hashlib.sha256(asked.encode()).hexdigest()
