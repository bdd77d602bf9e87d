"""The operator's commands on jobs, of the group's store or of a member's that is open."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from app.bridge.arguments import Answer, Command, InHome, Line, command
from app.bridge.looks import StoreLook, store_of
from app.bridge.strongroom import Strongroom
from app.bridge.work import job_acts
from app.bridge.work.job_acts import Act
from app.clock import rfc3339
from app.db.context import Actor
from app.db.owner.store import OwnerReader
from app.runtime import jobs, operator_actions
from app.runtime.jobs import Job, JobSummary

_LISTED: Final = 50
_LISTED_MAX: Final = 1_000
_ACTS: Final[tuple[Act, ...]] = ("retry", "cancel", "purge")


class _Jobs(InHome):
    """Which jobs."""

    status: Literal["pending", "running", "done", "dead", "cancelled"] | None = None
    kind: Line | None = None
    limit: Annotated[int, Field(ge=1, le=_LISTED_MAX)] = _LISTED


class _OneJob(InHome):
    """One job, and where it is."""

    job: Line


def describe(row: JobSummary | Job, *, is_members: bool) -> Answer:
    """A job as the operator sees it: never what it carries, nor a member's own words."""
    is_told = not (is_members and row.is_outside)
    return {
        "id": row.id,
        # What members' programs call their jobs, and say of them, is theirs.
        "kind": row.kind if is_told else None,
        "is_outside": bool(row.is_outside),
        "status": row.status,
        "priority": row.priority,
        "run_at": rfc3339(row.run_at),
        "attempts": row.attempts,
        "max_attempts": row.max_attempts,
        "last_error": row.last_error if is_told else None,
        "created_at": rfc3339(row.created_at),
        "finished_at": None if row.finished_at is None else rfc3339(row.finished_at),
    }


def _list(reader: OwnerReader, which: _Jobs) -> Answer:
    rows = jobs.list_page(
        reader, before=None, limit=which.limit, status=which.status, kind=which.kind
    )
    return {"jobs": [describe(row, is_members=which.user is not None) for row in rows]}


def _show(reader: OwnerReader, one: _OneJob) -> Answer:
    row = jobs.get(reader, one.job)
    acts = job_acts.list_acts(reader, one.job)
    return {"job": describe(row, is_members=one.user is not None), "acts": acts}


def _act(name: Act) -> Command:
    async def run(room: Strongroom, one: _OneJob) -> Answer:
        store = await store_of(room, one.user)
        actor = Actor(kind="system", sub="cli", action=f"jobs.{name}")
        row = await job_acts.act(store, name, one.job, operator_actions.BOX, actor)
        return {"job": describe(row, is_members=one.user is not None)}

    return command(_OneJob, run)


COMMANDS: Final[Mapping[str, Command]] = {
    "jobs.list": StoreLook(_Jobs, _list),
    "jobs.show": StoreLook(_OneJob, _show),
    **{f"jobs.{name}": _act(name) for name in _ACTS},
}
"""By name, for the one table of commands."""
