"""Ticks in the stores of a process: due ones settle, others' trouble is none of theirs."""

import json
from collections.abc import Callable

import pytest

from app import telemetry
from app.bridge.strongroom import Strongroom
from app.bridge.work import schedules as bridge
from app.bridge.work.schedules import NewSchedule
from app.clock import Millis
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.db.runtime import statements as sql
from app.db.runtime.rows import ScheduleRunRow
from app.db.runtime.store import LATER
from app.ids import UserId
from app.owner.scheduled_jobs import Task
from app.runtime import jobs, schedules
from app.runtime.schedules import CatchUp
from app.runtime.timing import Timing
from app.worker import ticks
from app.worker.ticks import Ticker
from tests.support import rig as rigs
from tests.support.rig import Rig, open_member, reopen
from tests.support.rooms import CALL
from tests.support.workshop import ACTOR

MINUTE = 60_000


async def add(store: OwnerStore, interval_s: int = 60, catch_up: CatchUp = "once") -> str:
    """Make a schedule; its id."""
    new = NewSchedule(Task("x"), Timing(None, interval_s), catch_up=catch_up)
    return await store.write(lambda tx: schedules.add(tx, tx.new_id(), new.definition).id, ACTOR)


async def runs(store: OwnerStore, schedule_id: str) -> list[ScheduleRunRow]:
    """What became of its ticks, oldest first."""
    found = await store.read(lambda reader: schedules.list_runs(reader, schedule_id, None, 1_000))
    return found[::-1]


async def outcomes(store: OwnerStore, schedule_id: str) -> list[str]:
    """`run`, or why it was skipped, oldest first."""
    return [row.reason or "run" for row in await runs(store, schedule_id)]


async def finish(store: OwnerStore) -> None:
    """Do every job that waits, as a program outside."""
    terms = jobs.Terms(lease_ms=1_000, attempts_max=1, backoff_max_ms=1)

    def do(tx: OwnerTransactor) -> None:
        while claim := jobs.claim_outside(tx, [bridge.KIND], "w", terms):
            jobs.finish(tx, claim.id, claim.generation)

    await store.write(do, ACTOR)


def test_ticks_settle_in_every_open_store(rig: Rig) -> None:
    """The group's and a member's alike, a store of each time."""

    async def main(room: Strongroom) -> None:
        _, own = await open_member(room)
        ticker = Ticker(room)
        ids = [(store, await add(store)) for store in (room.stores.group, own)]
        for _ in range(3):
            await ticker.round()
            rig.clock.advance(MINUTE)
        await ticker.round()
        for store, schedule_id in ids:
            assert await outcomes(store, schedule_id) == ["run", "overlap", "overlap"]
        ticker.close()

    rig.run(main)


def test_a_locked_store_is_settled_when_it_is_unlocked(rig: Rig) -> None:
    """Down before this process began, locked from then on."""

    async def make(room: Strongroom) -> tuple[UserId, str]:
        user_id, store = await open_member(room)
        return user_id, await add(store, catch_up="skip")

    user_id, schedule_id = rig.run(make)
    rig.clock.advance(2 * MINUTE + 5_000)

    async def main(room: Strongroom) -> None:
        ticker = Ticker(room)
        await ticker.round()
        rig.clock.advance(2 * MINUTE)
        await ticker.round()
        store = await reopen(room, user_id)
        await ticker.round()
        assert await outcomes(store, schedule_id) == ["down", "down", "locked", "locked"]
        rig.clock.advance(MINUTE)
        await ticker.round()
        assert (await outcomes(store, schedule_id))[4:] == ["run"]
        await room.stores.lock(user_id)
        rig.clock.advance(MINUTE)
        await ticker.round()
        store = await reopen(room, user_id)
        rig.clock.advance(3_000)
        await ticker.round()
        assert (await outcomes(store, schedule_id))[5:] == ["locked"]

    rig.run(main)


def test_two_processes_tick_each_once(rig: Rig) -> None:
    """Whoever comes second finds it settled; neither takes the other's for missed."""

    async def main(room: Strongroom) -> None:
        async with rig.open() as other:
            first, second = Ticker(room), Ticker(other)
            schedule_id = await add(room.stores.group, 10, "skip")
            for _ in range(20):
                rig.clock.advance(10_000)
                await first.round()
                await second.round()
                first, second = second, first
                await finish(room.stores.group)
            assert await outcomes(room.stores.group, schedule_id) == ["run"] * 20
            first.close()
            second.close()

    rig.run(main)


def test_a_process_that_has_just_begun_leaves_anothers_tick_alone(rig: Rig) -> None:
    """Two seconds long; after that nobody was there."""

    async def main(room: Strongroom) -> None:
        schedule_id = await add(room.stores.group, 60, "skip")
        rig.clock.advance(MINUTE + 1_500)
        await Ticker(room).round()
        assert await outcomes(room.stores.group, schedule_id) == ["run"]
        await finish(room.stores.group)
        rig.clock.advance(MINUTE + 2_000)
        await Ticker(room).round()
        assert await outcomes(room.stores.group, schedule_id) == ["run", "down"]

    rig.run(main)


def test_a_box_that_slept_has_missed_what_was_due(rig: Rig) -> None:
    """Though the process lives: nobody looked for an hour."""

    async def main(room: Strongroom) -> None:
        ticker = Ticker(room)
        schedule_id = await add(room.stores.group, 600, "skip")
        await ticker.round()
        rig.clock.advance(60 * MINUTE + 30_000)
        await ticker.round()
        assert await outcomes(room.stores.group, schedule_id) == ["down"] * 5 + ["run"]

    rig.run(main)


@pytest.mark.long
def test_what_was_missed_for_very_long_delays_no_other(rig: Rig) -> None:
    """A year of minutes is settled over several rounds, one beside it in the first."""

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        long = NewSchedule(Task("x"), Timing("* * * * *", None), catch_up="once")
        slow = await group.write(
            lambda tx: schedules.add(tx, tx.new_id(), long.definition).id, ACTOR
        )
        quick = await add(group, 3_600)
        rig.clock.advance(45 * 86_400_000)
        ticker = Ticker(room)
        await ticker.round()
        assert (await outcomes(group, quick))[-1] == "run"
        for _ in range(5):
            await ticker.round()
        rows = await runs(group, slow)
        assert sum(row.ticks for row in rows) == 45 * 24 * 60
        assert [row.reason for row in rows].count(None) == 1

    rig.run(main)


def test_a_schedule_in_trouble_stops_no_other(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told once, not each second; mended, it goes on."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: told.append(where))

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        bad, good = await add(group), await add(group)

        async def zone(name: str) -> None:
            with group.handles.borrow_writer() as connection:
                connection.actor = ACTOR
                connection.all(
                    f"UPDATE sys_schedules SET timezone = '{name}', interval_s = NULL,"  # noqa: S608 - a word
                    f" cron = '* * * * *' WHERE id = '{bad}'"
                )

        await zone("Gone/Nowhere")
        ticker = Ticker(room)
        for _ in range(3):
            rig.clock.advance(MINUTE)
            await ticker.round()
        assert await outcomes(group, good) == ["run", "overlap", "overlap"]
        assert await outcomes(group, bad) == []
        assert told == ["schedules"]
        await zone("UTC")
        await ticker.round()
        assert len(await outcomes(group, bad)) == 3

    rig.run(main)


def test_to_look_and_to_tick_keeps_no_store_open(rig: Rig) -> None:
    """A schedule of every minute does not keep a member's key in memory."""

    async def main(room: Strongroom) -> None:
        user_id, store = await open_member(room)
        schedule_id = await add(store)
        ticker = Ticker(room)
        wanted = store.handles.last_wanted
        rig.clock.advance(MINUTE)
        await ticker.round()
        assert store.handles.last_wanted == wanted
        assert await outcomes(store, schedule_id) == ["run"]
        assert room.stores.unlocked().keys() == {user_id}

    rig.run(main)


def test_a_store_with_closed_handles_is_looked_at_when_it_is_due(rig: Rig) -> None:
    """Evicted or fresh: by what is known of it, by its bell, or now and then."""

    async def main(room: Strongroom) -> None:
        _, store = await open_member(room)
        ticker = Ticker(room)
        await ticker.round()
        store.handles.close_idle()
        schedule_id = await add(store)
        store.handles.close_idle()
        await ticker.round()
        rig.clock.advance(MINUTE)
        store.handles.close_idle()
        await ticker.round()
        assert await outcomes(store, schedule_id) == ["run"]
        for _ in range(2):
            store.handles.close_idle()
            await ticker.round()
        assert store.glance(sql.FIND_NEXT_TICK) is LATER

    rig.run(main)


def test_stores_with_closed_handles_take_turns_at_being_looked_at(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many in a round and no more, however many there are; none is left out."""
    rig = make_rig(stale_looks_max=2)
    monkeypatch.setattr(ticks, "_SLOW_S", 0.0)

    async def main(room: Strongroom) -> None:
        stores = [(await open_member(room, f"m{number}"))[1] for number in range(4)]
        ticker = Ticker(room)
        await ticker.round()  # each one's bell has rung, for it is new
        seen: list[set[OwnerStore]] = []
        for _ in range(3):
            for store in stores:
                store.handles.close_idle()
            await ticker.round()
            seen.append({each for each in stores if each.glance(sql.FIND_NEXT_TICK) is not LATER})
        assert [len(each) for each in seen] == [2, 2, 2]
        assert seen[0] == seen[2] == set(stores) - seen[1]

    rig.run(main)


def test_a_store_that_is_closed_amid_a_round_is_no_trouble(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ticks are settled when it is open again."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: told.append(where))

    async def main(room: Strongroom) -> None:
        user_id, store = await open_member(room)
        schedule_id = await add(store)
        ticker = Ticker(room)
        await ticker.round()
        rig.clock.advance(MINUTE)
        place = ticker._places[store]
        await room.stores.lock(user_id)
        await ticker._guarded(place, "", lambda: ticker._settle(place))
        assert told == []
        await ticker.round()
        store = await reopen(room, user_id)
        await ticker.round()
        assert await outcomes(store, schedule_id) == ["run"]

    rig.run(main)


def test_a_schedule_of_a_member_is_made_and_told_by_the_bridge(rig: Rig) -> None:
    """With what it is for; its jobs carry that."""

    async def main(room: Strongroom) -> None:
        await rigs.add(room)
        caller = await rigs.enter(room)
        new = NewSchedule(
            Task("x", prompt="p", agent_id="a", run_context={"k": 1}), Timing(None, 60)
        )
        made = await bridge.add(room, caller, CALL, "own", new)
        store = next(iter(room.stores.unlocked().values())).store
        ticker = Ticker(room)
        await ticker.round()
        rig.clock.advance(MINUTE)
        await ticker.round()
        page = await store.read(
            lambda reader: jobs.list_page(reader, before=None, limit=9, is_outside=True)
        )
        job = await store.read(lambda reader: jobs.get(reader, page[0].id))
        assert json.loads(job.payload) == {
            "prompt": "p",
            "agent_id": "a",
            "schedule_id": made.schedule.id,
            "due_at": "2023-11-14T22:14:20.000Z",
        }
        assert Millis(made.schedule.next_due_at or 0) == 1_700_000_060_000

    rig.run(main)
