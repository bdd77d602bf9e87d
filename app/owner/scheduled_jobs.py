"""What schedules are for, and how their runs ended; when they are due is the runtime's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from app.clock import Millis
from app.db.owner import statements as sql
from app.db.owner.rows import JobRunRow, ScheduledJobRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError
from app.owner.text import measure

ScheduledJob = ScheduledJobRow
"""What a schedule is for, and whether it runs."""
JobRun = JobRunRow
"""How one of its runs ended."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done each time."""

    title: str
    description: str | None = None
    prompt: str | None = None
    """What the program that runs it is told."""
    agent_id: str | None = None
    session_id: str | None = None
    """The conversation it goes on with; None for a new one."""
    run_context: Mapping[str, JsonValue] | None = None


def add(tx: OwnerTransactor, job_id: str, task: Task) -> ScheduledJob:
    """Say what a schedule is for.

    Args:
        tx: In the schedule's store.
        job_id: The schedule's id.
        task: What is to be done.

    Returns:
        The row.

    Raises:
        InvalidInputError: A text that cannot be stored.
    """
    tx.run(sql.ADD_SCHEDULED_JOB, id=job_id, now=tx.now_ms, **_columns(task))
    return get(tx, job_id)


def get(reader: OwnerReader, job_id: str) -> ScheduledJob:
    """What a schedule is for.

    Returns:
        The row.

    Raises:
        NotFoundError: There is none of this id.
    """
    row = reader.one(sql.FIND_SCHEDULED_JOB, id=job_id)
    if row is None:
        raise NotFoundError
    return row


def change(tx: OwnerTransactor, job_id: str, task: Task) -> ScheduledJob:
    """Say it anew.

    Returns:
        The row.

    Raises:
        NotFoundError: There is none of this id.
        InvalidInputError: A text that cannot be stored.
    """
    if not tx.run(sql.SET_SCHEDULED_JOB, id=job_id, now=tx.now_ms, **_columns(task)):
        raise NotFoundError
    return get(tx, job_id)


def remove(tx: OwnerTransactor, job_id: str) -> None:
    """Take it away; how its runs ended stays.

    Raises:
        NotFoundError: There is none of this id.
    """
    if not tx.run(sql.REMOVE_SCHEDULED_JOB, id=job_id):
        raise NotFoundError


def find_run(reader: OwnerReader, job_id: str) -> JobRun | None:
    """How a run ended, by its job; None for one that has not begun, or is forgotten."""
    return reader.one(sql.FIND_JOB_RUN, id=job_id)


def task_of(row: ScheduledJob) -> Task:
    """What is to be done, of its row."""
    return Task(
        title=row.title,
        description=row.description,
        prompt=row.prompt,
        agent_id=row.agent_id,
        session_id=row.session_id,
        run_context=None if row.run_context is None else json.loads(row.run_context),
    )


def prune_runs(tx: OwnerTransactor, before: Millis, limit: int) -> int:
    """Forget runs that ended before a time, oldest first; how many."""
    return len(tx.run(sql.REMOVE_JOB_RUNS, before=before, limit=limit))


def _columns(task: Task) -> dict[str, str | None]:
    context = None if task.run_context is None else json.dumps(dict(task.run_context))
    columns = {
        "title": task.title,
        "description": task.description,
        "prompt": task.prompt,
        "agent_id": task.agent_id,
        "session_id": task.session_id,
        "run_context": context,
    }
    for text in columns.values():
        measure(text or "")
    return columns
