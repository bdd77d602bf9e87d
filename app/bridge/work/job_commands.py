"""The operator's commands on jobs, of the group's store or of a member's that is open."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from app.bridge.arguments import Answer, Arguments, Command, Line, command, find_user
from app.bridge.strongroom import Strongroom
from app.bridge.work import job_acts
from app.bridge.work.job_acts import Act
from app.clock import rfc3339
from app.db.context import Actor
from app.db.owner.store import OwnerStore
from app.runtime import operator_actions
from app.runtime.jobs import Job, JobSummary

_LISTED: Final = 50
_LISTED_MAX: Final = 1_000
_ACTS: Final[tuple[Act, ...]] = ("retry", "cancel", "purge")


class _Jobs(Arguments):
    """Which jobs; `user` is a member's name or id, without it the group's are meant."""

    user: Line | None = None
    status: Literal["pending", "running", "done", "dead", "cancelled"] | None = None
    kind: Line | None = None
    limit: Annotated[int, Field(ge=1, le=_LISTED_MAX)] = _LISTED


class _OneJob(Arguments):
    """One job, and where it is."""

    job: Line
    user: Line | None = None


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


async def _store(room: Strongroom, user: str | None) -> OwnerStore:
    account = None if user is None else await find_user(room, user)
    return await job_acts.store_of(room, account)


async def _list(room: Strongroom, which: _Jobs) -> Answer:
    store = await _store(room, which.user)
    rows = await job_acts.list_page(store, None, which.limit, which.status, which.kind)
    return {"jobs": [describe(row, is_members=which.user is not None) for row in rows]}


async def _show(room: Strongroom, one: _OneJob) -> Answer:
    store = await _store(room, one.user)
    row = await job_acts.get(store, one.job)
    acts = await job_acts.list_acts(store, one.job)
    return {"job": describe(row, is_members=one.user is not None), "acts": acts}


def _act(name: Act) -> Command:
    async def run(room: Strongroom, one: _OneJob) -> Answer:
        store = await _store(room, one.user)
        actor = Actor(kind="system", sub="cli", action=f"jobs.{name}")
        row = await job_acts.act(store, name, one.job, operator_actions.BOX, actor)
        return {"job": describe(row, is_members=one.user is not None)}

    return command(_OneJob, run)


COMMANDS: Final[Mapping[str, Command]] = {
    "jobs.list": command(_Jobs, _list),
    "jobs.show": command(_OneJob, _show),
    **{f"jobs.{name}": _act(name) for name in _ACTS},
}
"""By name, for the one table of commands."""
