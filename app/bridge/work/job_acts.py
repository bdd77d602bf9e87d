"""What operators do to jobs by hand: seen without what they carry, each act on record beside it."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from pydantic import JsonValue

from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.clock import Millis, rfc3339
from app.db.context import Actor
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.runtime.store import Once
from app.runtime import jobs, operator_actions
from app.runtime.jobs import Job, JobSummary
from app.runtime.versions import Match, require_version

Act = Literal["retry", "cancel", "purge"]
_ACTS_SHOWN: Final = 50
_ACTS: Final[Mapping[Act, Callable[[OwnerTransactor, str], None]]] = {
    "retry": jobs.retry,
    "cancel": jobs.cancel,
    "purge": jobs.remove,
}


async def act(  # noqa: PLR0913, PLR0917 - what, on which, where, by whom
    store: OwnerStore,
    name: Act,
    job_id: str,
    operator: str,
    actor: Actor,
    once: Once | None = None,
    match: Match = None,
) -> Job:
    """Do one thing to a job, and record that, with its state as it was.

    Returns:
        The job after it; before it, when it is gone.

    Raises:
        NotFoundError: There is no such job.
        ConflictError: Its state stands against it.
        VersionConflictError: It stands at another version than was asked for.
    """

    def write(tx: OwnerTransactor) -> Job:
        before = jobs.get(tx, job_id)
        require_version(before.version, match)
        _ACTS[name](tx, job_id)
        state: dict[str, str | int | None] = {
            "status": before.status,
            "attempts": before.attempts,
            "generation": before.generation,
            "run_at": before.run_at,
            "version": before.version,
        }
        operator_actions.record(tx, f"job.{name}", job_id, state, operator)
        return jobs.find(tx, job_id) or before

    return await store.write(write, actor, once=once)


async def act_of(  # noqa: PLR0913, PLR0917 - who, what, on which, if
    room: Strongroom, caller: Caller, call: Call, name: Act, job_id: str, match: Match
) -> Job:
    """The same, on a job of the group's store, by an administrator's call."""
    if name != "purge":
        call = call.judged(lambda reader: jobs.get(reader, job_id))
    group, actor = room.stores.group, caller.actor(call)
    return await act(group, name, job_id, caller.user_id, actor, call.once, match)


async def list_page(
    store: OwnerStore, before: str | None, limit: int, status: str | None, kind: str | None
) -> list[JobSummary]:
    """Every job of a store, newest first: the program's own and those of programs outside."""

    def read(reader: OwnerReader) -> list[JobSummary]:
        return jobs.list_page(reader, before=before, limit=limit, status=status, kind=kind)

    return await store.read(read)


def list_acts(reader: OwnerReader, item: str) -> list[JsonValue]:
    """The last things that operators did to a job, a delivery or a schedule, newest first."""
    rows = operator_actions.list_of(reader, item, _ACTS_SHOWN)
    return [
        {"at": rfc3339(Millis(row.acted_at)), "action": row.action, "operator": row.operator}
        for row in rows
    ]


async def get(store: OwnerStore, job_id: str) -> Job:
    """One of them.

    Returns:
        It.

    Raises:
        NotFoundError: There is none.
    """
    return await store.read(lambda reader: jobs.get(reader, job_id))
