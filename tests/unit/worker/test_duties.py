"""What the program does by its own schedules."""

from contextlib import closing

import pytest

from app import telemetry
from app.bridge import layout
from app.bridge.strongroom import Strongroom
from app.db import files
from app.db.owner.store import OwnerTransactor
from app.db.runtime import statements as sql
from app.owner import notes
from app.runtime import jobs, schedules
from app.worker import duties
from app.worker.handlers import JobContext, PermanentJobError
from tests.support.rig import Rig
from tests.support.workshop import ACTOR


def _context(room: Strongroom) -> JobContext:
    return JobContext(room, room.stores.group, None, "job", 1, ACTOR)


_TICKED = duties.Ticked(schedule_id=duties.VERIFY_ID, due_at="2026-01-01T00:00:00.000Z")


def test_a_duty_is_declared_once_and_stays_as_it_was_left(rig: Rig) -> None:
    """A second start changes nothing, though the operator has turned it off."""

    async def work(room: Strongroom) -> None:
        group = room.stores.group
        await duties.declare(room)
        made = await group.read(lambda r: schedules.get(r, duties.VERIFY_ID))
        assert made.enabled
        await duties.declare(room)
        assert await group.read(lambda r: schedules.get(r, duties.VERIFY_ID)) == made

    rig.run(work)


def test_a_record_that_goes_on_is_verified(rig: Rig) -> None:
    """Each check asks for the head of the one before."""

    async def work(room: Strongroom) -> None:
        group = room.stores.group
        await duties.declare(room)
        first = await duties.verify_record(_context(room), _TICKED)

        def keep(tx: OwnerTransactor) -> None:
            job_id, _ = jobs.enqueue(tx, duties.VERIFY, {}, schedule_id=duties.VERIFY_ID)
            [claim] = jobs.claim(tx, "w", jobs.Terms(1_000, 1, 1), 1)
            assert claim.id == job_id
            jobs.finish(tx, claim.id, claim.generation, first.result)

        await group.write(keep, ACTOR)
        last = await group.read(lambda r: r.one(sql.FIND_LAST_RESULT, schedule_id=duties.VERIFY_ID))
        assert last is not None
        again = await duties.verify_record(_context(room), _TICKED)
        assert again.result == first.result

    rig.run(work)


def test_a_record_changed_by_another_hand_is_told(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is dead at once, and the operator is told why."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "record_broken", told.append)

    async def work(room: Strongroom) -> None:
        await duties.declare(room)
        await room.stores.group.write(
            lambda tx: notes.put_note(tx, "a.md", "x", "ana", notes.Condition()), ACTOR
        )
        path = room.settings.system_file
        with closing(files.open_maintenance(path, None, layout.SYSTEM_KIND, room.clock)) as other:
            other.all("UPDATE sys_audit SET actor_sub = 'nobody' WHERE seq = 1")
        with pytest.raises(PermanentJobError) as raised:
            await duties.verify_record(_context(room), _TICKED)
        assert raised.value.code == "record_broken_row"

    rig.run(work)
    assert told == ["row"]
