"""What the program does by its own schedules, as jobs in the group's store."""

import json
from typing import Final, cast

from pydantic import BaseModel

from app import telemetry
from app.bridge.strongroom import Strongroom
from app.db.context import system_actor
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.db.runtime import statements as sql
from app.errors.callers import NotFoundError
from app.owner import scheduled_jobs
from app.owner.scheduled_jobs import Task
from app.runtime import audit, schedules
from app.runtime.audit import Verdict
from app.runtime.schedules import Definition
from app.runtime.timing import Timing
from app.worker.handlers import JobContext, Outcome, PermanentJobError, handler

VERIFY: Final = "strongroom.verify_record"
VERIFY_ID: Final = "01900000-0000-7000-8000-000000000001"
"""The same in every root, so that to declare it again is no harm."""
_ACTOR: Final = system_actor("duties")
_DEFINITION: Final = Definition(
    name=VERIFY,
    timing=Timing("17 3 * * *", None),
    kind=VERIFY,
    is_outside=False,
    payload={},
    catch_up="once",
)
_TASK: Final = Task(
    "Verify the record",
    description="Checks the chain of system.db's audit, and that it goes on from where it was.",
)


class Ticked(BaseModel):
    """The payload of a job that a schedule makes."""

    schedule_id: str
    due_at: str


async def declare(room: Strongroom) -> None:
    """Have the program's own schedules there; one that is, stays as the operator left it."""
    if await room.stores.group.watch(_is_declared):
        return

    def write(tx: OwnerTransactor) -> None:
        # Another process may have been first.
        if not _is_declared(tx):
            schedules.add(tx, VERIFY_ID, _DEFINITION)
            scheduled_jobs.add(tx, VERIFY_ID, _TASK)

    await room.stores.group.write(write, _ACTOR)


def _is_declared(reader: OwnerReader) -> bool:
    try:
        schedules.get(reader, VERIFY_ID)
    except NotFoundError:
        return False
    return True


@handler(VERIFY, Ticked)
async def verify_record(ctx: JobContext, payload: Ticked) -> Outcome:
    """Check the chain, and that the head found the last time still stands in it.

    Returns:
        How many rows it has, and its head, which the next check asks for.

    Raises:
        PermanentJobError: The record was changed by another hand; it is told at once.
    """

    def verify(reader: OwnerReader) -> Verdict:
        last = reader.one(sql.FIND_LAST_RESULT, schedule_id=payload.schedule_id)
        return audit.verify(reader, None if last is None else _head_of(last.value))

    verdict = await ctx.store.read(verify)
    if verdict.fault is not None:
        telemetry.record_broken(verdict.fault)
        code = f"record_broken_{verdict.fault}"
        raise PermanentJobError(code)
    head = verdict.head
    return Outcome({"rows": verdict.rows, "head": None if head is None else head.row_hash.hex()})


def _head_of(result: str) -> bytes | None:
    head = cast("dict[str, str | None]", json.loads(result))["head"]
    return None if head is None else bytes.fromhex(head)
