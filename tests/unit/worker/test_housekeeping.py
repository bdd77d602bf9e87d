"""Housekeeping: an hour's round by one process, in batches, begun anew when it was cut."""

from collections.abc import Callable

import pytest

from app import telemetry
from app.bridge.strongroom import Strongroom
from app.bridge.work import housekeeping as bridge
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.db.pool import StoreClosedError
from app.db.registry.store import RegistryReader
from app.db.runtime.rows import HousekeepingRow
from app.errors.conflicts import LeaseLostError
from app.owner import access
from app.runtime import housekeeping, jobs
from app.runtime.housekeeping import Terms
from app.worker.housekeeping import Housekeeper
from tests.support import rig as rigs
from tests.support.rig import Rig, StopHereError, stop_at
from tests.support.workshop import ACTOR

HOUR = 3_600_000
DAY = 24 * HOUR
TERMS = Terms(HOUR, 600_000)


async def enqueue(store: OwnerStore, count: int) -> None:
    """Enqueue so many jobs, and have them done."""
    terms = jobs.Terms(lease_ms=1_000, attempts_max=1, backoff_max_ms=1)

    def work(tx: OwnerTransactor) -> None:
        for _ in range(count):
            jobs.enqueue(tx, "work", {}, is_outside=True)
        while claim := jobs.claim_outside(tx, ["work"], "w", terms):
            jobs.finish(tx, claim.id, claim.generation)

    await store.write(work, ACTOR)


async def count(store: OwnerStore) -> int:
    """How many jobs there are."""
    found = await store.read(
        lambda reader: jobs.list_page(reader, before=None, limit=10_000, is_outside=True)
    )
    return len(found)


async def state(store: OwnerStore) -> HousekeepingRow:
    """How rounds go."""
    row = await store.read(housekeeping.find)
    assert row is not None
    return row


def test_a_round_takes_what_its_time_is_over_for_and_is_due_in_an_hour(rig: Rig) -> None:
    """Hours that were missed make one round."""

    async def main(room: Strongroom) -> None:
        group, keeper = room.stores.group, Housekeeper(room)
        await enqueue(group, 3)
        await keeper.round()
        first = await state(group)
        assert (first.last_completed_at, first.removed, first.lease_owner) == (
            rig.clock.now_ms,
            0,
            None,
        )
        assert await count(group) == 3
        rig.clock.advance(8 * DAY)
        await keeper.round()
        await keeper.round()
        second = await state(group)
        assert (second.generation, second.removed) == (first.generation + 1, 3)
        assert await count(group) == 0
        rig.clock.advance(HOUR - 1)
        await keeper.round()
        assert await state(group) == second
        rig.clock.advance(1)
        await keeper.round()
        assert (await state(group)).generation == second.generation + 1

    rig.run(main)


def test_a_round_goes_by_batches_and_others_write_between(make_rig: Callable[..., Rig]) -> None:
    """Five rows each here; all of them go."""
    rig = make_rig(housekeeping_batch=5)
    reached: list[str] = []

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        await enqueue(group, 23)
        rig.clock.advance(8 * DAY)
        assert await bridge.run(room, None, group, "me") == 23
        assert reached.count("housekeeping.batch") >= 5
        assert await count(group) == 0

    rig.run(main, reached.append)


@pytest.mark.parametrize("point", ["housekeeping.taken", "housekeeping.batch"])
def test_a_round_that_was_cut_is_begun_anew(make_rig: Callable[..., Rig], point: str) -> None:
    """By the same process at once, by another when the lease is over; never called whole."""
    rig = make_rig(housekeeping_batch=5)

    async def cut(room: Strongroom) -> None:
        await enqueue(room.stores.group, 12)
        rig.clock.advance(8 * DAY)
        with pytest.raises(StopHereError):
            await bridge.run(room, None, room.stores.group, "first")
        assert (await state(room.stores.group)).last_completed_at is None

    rig.run(cut, stop_at(point))

    async def go_on(room: Strongroom) -> None:
        group = room.stores.group
        assert await bridge.run(room, None, group, "second") is None
        rig.clock.advance(600_000)
        left = await count(group)
        assert await bridge.run(room, None, group, "second") == left
        row = await state(group)
        assert (row.last_completed_at, row.removed) == (rig.clock.now_ms, left)

    rig.run(go_on)


def test_two_owners_never_keep_house_at_once(make_rig: Callable[..., Rig]) -> None:
    """Whoever lost the round writes nothing any more."""
    rig = make_rig(housekeeping_batch=5)

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        await enqueue(group, 12)
        rig.clock.advance(8 * DAY)
        lost = await group.write(lambda tx: housekeeping.take(tx, "first", TERMS), ACTOR)
        assert lost is not None
        async with rig.open() as other:
            assert await bridge.run(other, None, other.stores.group, "second") is None
            rig.clock.advance(600_000)
            assert await bridge.run(other, None, other.stores.group, "second") == 12
        for work in (
            lambda tx: housekeeping.hold(tx, lost, TERMS),
            lambda tx: housekeeping.complete(tx, lost, 1),
        ):
            with pytest.raises(LeaseLostError):
                await group.write(work, ACTOR)
        await group.write(lambda tx: housekeeping.release(tx, lost), ACTOR)
        assert (await state(group)).removed == 12

    rig.run(main)


def test_a_clock_that_was_set_back_stops_no_round(rig: Rig) -> None:
    """Neither a round completed in the future nor a lease from there."""

    async def main(room: Strongroom) -> None:
        group, keeper = room.stores.group, Housekeeper(room)
        rig.clock.advance(30 * DAY)
        await keeper.round()
        await group.write(lambda tx: housekeeping.take(tx, "gone", Terms(0, 600_000)), ACTOR)
        rig.clock.advance(-29 * DAY)
        await keeper.round()
        row = await state(group)
        assert (row.last_completed_at, row.lease_owner) == (rig.clock.now_ms, None)

    rig.run(main)


def test_another_at_it_is_waited_for(rig: Rig) -> None:
    """Until its lease is over."""

    async def main(room: Strongroom) -> None:
        group, keeper = room.stores.group, Housekeeper(room)
        await group.write(lambda tx: housekeeping.take(tx, "other", TERMS), ACTOR)
        await keeper.round()
        assert (await state(group)).lease_owner == "other"
        rig.clock.advance(600_000)
        await keeper.round()
        assert (await state(group)).last_completed_at == rig.clock.now_ms

    rig.run(main)


def test_a_members_store_is_kept_as_well_and_not_kept_open(rig: Rig) -> None:
    """Its access log of more than a year goes; to keep house is no use of it."""

    async def main(room: Strongroom) -> None:
        made = await rigs.add(room)
        caller = await rigs.enter(room)
        await rigs.write_note(room, caller)
        store = room.stores.unlocked()[made.account.id].store
        rig.clock.advance(366 * DAY)
        wanted = store.handles.last_wanted
        await Housekeeper(room).round()
        assert store.handles.last_wanted == wanted
        assert await store.read(lambda reader: access.list_access(reader, None, 10)) == []
        assert (await state(store)).removed > 0

    rig.run(main)


def test_the_registry_lets_go_of_what_has_ended(rig: Rig) -> None:
    """Sessions of a month ago, and what the throttle counts no more."""

    def sessions(reader: RegistryReader) -> int:
        return len(reader._connection.all("SELECT id FROM sessions"))

    async def main(room: Strongroom) -> None:
        await rigs.add(room)
        await rigs.enter(room)
        registry = room.stores.registry
        rig.clock.advance(59 * DAY)
        await Housekeeper(room).round()
        assert await registry.read(sessions) == 1
        rig.clock.advance(2 * DAY)
        await Housekeeper(room).round()
        assert await registry.read(sessions) == 0
        counters = await registry.read(
            lambda reader: reader._connection.all("SELECT key FROM sign_in_throttle")
        )
        assert counters == []

    rig.run(main)


def test_trouble_in_one_store_is_none_of_anothers(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and tried again a minute later; a store closed amid it is no trouble."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: told.append(where))
    real, trouble = bridge.run, [StoreClosedError(), ZeroDivisionError()]

    async def run(room: Strongroom, user_id: object, store: OwnerStore, owner: str) -> int | None:
        if store is room.stores.group and trouble:
            raise trouble.pop()
        return await real(room, user_id, store, owner)  # type: ignore[arg-type]

    monkeypatch.setattr(bridge, "run", run)

    async def main(room: Strongroom) -> None:
        _, own = await rigs.open_member(room)
        keeper = Housekeeper(room)
        await keeper.round()
        assert told == ["housekeeping"]
        assert (await state(own)).last_completed_at == rig.clock.now_ms
        for _ in range(2):
            await keeper.round()
            rig.clock.advance(60_001)
        await keeper.round()
        assert trouble == []
        assert told == ["housekeeping"]
        assert (await state(room.stores.group)).last_completed_at == rig.clock.now_ms

    rig.run(main)


def test_a_process_about_to_end_lets_its_round_go(make_rig: Callable[..., Rig]) -> None:
    """Between two batches; another may begin at once."""
    rig = make_rig(housekeeping_batch=5)

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        await enqueue(group, 12)
        rig.clock.advance(8 * DAY)
        room.ending.set()
        assert await bridge.run(room, None, group, "first") is None
        row = await state(group)
        assert (row.lease_owner, row.last_completed_at) == (None, None)
        room.ending.clear()
        assert await bridge.run(room, None, group, "second") == 12

    rig.run(main)


def test_finished_operations_leave_the_record_in_time(rig: Rig) -> None:
    """With their steps, ninety days after."""

    async def main(room: Strongroom) -> None:
        await rigs.add(room)
        registry = room.stores.registry

        def records(reader: RegistryReader) -> int:
            return len(reader._connection.all("SELECT key FROM sys_step_records"))

        assert await registry.read(records) == 1
        rig.clock.advance(91 * DAY)
        await Housekeeper(room).round()
        assert await registry.read(records) == 0

    rig.run(main)
