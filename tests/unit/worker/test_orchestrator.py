"""The program's own jobs: run once, kept, given back, bounded and fair."""

import asyncio
import json
from collections.abc import Callable
from functools import partial

import pytest

from app import telemetry
from app.bridge.strongroom import Strongroom
from app.bridge.work import waiting
from app.db.registry import statements as sql
from app.db.registry.rows import WorkTimesRow
from app.ids import UserId
from app.runtime import jobs
from app.runtime.jobs import Job
from app.worker.handlers import Handlers
from tests.support.rig import Rig, closing, open_member, reopen
from tests.support.workshop import (
    ACTOR,
    KIND,
    Order,
    Workshop,
    effects,
    ended,
    enqueue,
    job,
    reached,
    until,
    working,
)

pytestmark = pytest.mark.timeout(60)


async def times(room: Strongroom, user_id: UserId) -> WorkTimesRow:
    """What the registry knows of a locked store's work."""
    row = await room.stores.registry.one(sql.FIND_WORK_TIMES, user_id=user_id)
    assert row is not None
    return row


def test_a_job_runs_at_once_and_its_effect_comes_with_its_mark(
    make_rig: Callable[..., Rig],
) -> None:
    """Woken by the bell, for the next look is an hour away."""
    rig, shop = make_rig(job_poll_s=3600.0), Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        async with working(room, shop.handlers):
            await asyncio.sleep(0)
            for _ in range(3):
                job_id = await enqueue(group, {"name": "x"})
                done = await ended(group, job_id)
                assert (done.status, done.result, done.attempts) == ("done", '{"attempt": 1}', 1)
                assert (await effects(group))[job_id] == 1
        assert shop.most_of_one == 1

    rig.run(main)


@pytest.mark.parametrize(
    ("how", "error", "status"),
    [
        ("permanent", "in_vain", "dead"),
        ("refused", "not_permitted", "pending"),
        ("broken", "RuntimeError", "pending"),
        ("bad_effect", "not_permitted", "pending"),
    ],
)
def test_a_failed_attempt_leaves_its_code_and_no_effect(
    rig: Rig, how: str, error: str, status: str
) -> None:
    """It is tried again later, unless that would be in vain."""
    shop = Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        async with working(room, shop.handlers, lambda: 1.0):
            job_id = await enqueue(group, {"how": how})
            found = await reached(group, job_id, lambda j: j.last_error is not None)
        assert (found.status, found.last_error, found.attempts) == (status, error, 1)
        assert await effects(group) == {}
        if status == "pending":
            assert found.run_at == rig.clock() + 2000

    rig.run(main)


@pytest.mark.parametrize(
    ("kind", "payload", "error"),
    [("strongroom.unheard", {}, "unknown_kind"), (KIND, {"name": 1}, "payload_unfit")],
)
def test_what_nobody_can_do_is_dead_at_once_and_blocks_nobody(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, kind: str, payload: dict[str, int], error: str
) -> None:
    """The log names no kind that the program does not know."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "job_dead", lambda name, _attempts: told.append(name))
    shop = Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        async with working(room, shop.handlers):
            poison = await enqueue(group, payload, kind, priority=9)
            good = await enqueue(group)
            assert (await ended(group, poison)).last_error == error
            assert (await ended(group, good)).status == "done"
            await until(lambda: len(told) == 1)

    rig.run(main)
    assert told == [KIND if kind == KIND else "unknown"]


def test_poison_dies_after_its_tries_and_the_rest_flows(make_rig: Callable[..., Rig]) -> None:
    """Each try counts, and other jobs of the store are done meanwhile."""
    rig, shop = make_rig(job_attempts=3), Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        async with working(room, shop.handlers):
            poison = await enqueue(group, {"how": "broken"}, priority=9)
            others = [await enqueue(group) for _ in range(5)]
            dead = await ended(group, poison)
            assert (dead.status, dead.attempts) == ("dead", 3)
            assert {(await ended(group, one)).status for one in others} == {"done"}

    rig.run(main)


def _is_later(shown: int, found: Job) -> bool:
    return (found.lease_until or 0) > shown


def test_a_long_job_keeps_its_claim(make_rig: Callable[..., Rig]) -> None:
    """Renewed at a third of its length: another process that waits for it to end never gets it."""
    rig, shop, other = make_rig(job_lease_s=1, idle_lock_s=900), Workshop(), Workshop()

    async def main(room: Strongroom) -> None:
        async with rig.open() as second:
            group = room.stores.group
            async with working(room, shop.handlers), working(second, other.handlers):
                job_id = await enqueue(group, {"how": "wait"})
                first = await reached(group, job_id, lambda j: j.status == "running")
                shown = first.lease_until or 0
                for _ in range(3):
                    rig.clock.advance(700)
                    renewed = await reached(group, job_id, partial(_is_later, shown))
                    shown = renewed.lease_until or 0
                shop.gate.set()
                other.gate.set()
                assert (await ended(group, job_id)).generation == 1
        assert shop.begun.total() + other.begun.total() == 1

    rig.run(main)


def test_an_attempt_that_takes_too_long_is_stopped(rig: Rig) -> None:
    """And counts as failed."""
    shop = Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        async with working(room, shop.handlers):
            job_id = await enqueue(group, {"how": "wait"}, timeout_s=1, max_attempts=1)
            dead = await ended(group, job_id)
            assert (dead.status, dead.last_error) == ("dead", "timed_out")
        assert shop.at_once.total() == 0

    rig.run(main)


def test_who_lost_a_claim_is_stopped_and_writes_nothing(make_rig: Callable[..., Rig]) -> None:
    """Found out at the next renewal: cancelled by an operator, the job has no effect."""
    rig, shop = make_rig(job_lease_s=1), Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        async with working(room, shop.handlers):
            job_id = await enqueue(group, {"how": "wait"})
            await reached(group, job_id, lambda j: j.status == "running")
            await group.write(lambda tx: jobs.cancel(tx, job_id), ACTOR)
            await until(lambda: shop.begun.total() == 1 and shop.at_once.total() == 0)
            assert (await job(group, job_id)).status == "cancelled"
        assert await effects(group) == {}

    rig.run(main)


def test_a_dead_processs_claim_is_taken_over_after_its_lease(rig: Rig) -> None:
    """With the same id, and the attempt counted."""
    shop = Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        job_id = await enqueue(group)
        from app.bridge.work.jobs import terms_of  # noqa: PLC0415 - as a process that then dies

        terms = terms_of(rig.settings)
        await group.write(lambda tx: jobs.claim(tx, "dead", terms, 1), ACTOR)
        async with working(room, shop.handlers):
            await asyncio.sleep(0.05)
            assert shop.begun.total() == 0
            rig.clock.advance(terms.lease_ms)
            done = await ended(group, job_id)
        assert (done.status, done.attempts, done.generation) == ("done", 2, 2)

    rig.run(main)


def test_few_at_a_time_of_a_store_and_of_all(make_rig: Callable[..., Rig]) -> None:
    """Two of one store and eight together; stores take turns, so none waits for another's pile."""
    rig, shop = make_rig(jobs_at_once=3), Workshop()

    async def main(room: Strongroom) -> None:
        _, own = await open_member(room)
        for _ in range(8):
            await enqueue(room.stores.group, {"how": "wait", "name": "group"})
        for _ in range(2):
            await enqueue(own, {"how": "wait", "name": "own"})
        async with working(room, shop.handlers):
            await until(lambda: shop.at_once.total() == 3)
            assert set(shop.names) == {"group", "own"}
            shop.gate.set()
            await until(lambda: shop.runs.total() == 10)
        assert (shop.most, shop.most_of_one) == (3, 2)

    rig.run(main)


def test_a_store_that_is_locked_amid_a_job_gets_it_back(rig: Rig) -> None:
    """The attempt is not charged; the registry learns times, and at unlock the job runs."""
    shop = Workshop()

    async def main(room: Strongroom) -> None:
        user_id, own = await open_member(room)
        async with working(room, shop.handlers):
            job_id = await enqueue(own, {"how": "wait"})
            await until(lambda: shop.at_once.total() == 1)
            await room.stores.lock(user_id)
            assert shop.at_once.total() == 0
            assert await times(room, user_id) == (rig.clock(), rig.clock())
            shop.gate.set()
            again = await reopen(room, user_id)
            done = await ended(again, job_id)
            assert (done.status, done.attempts, done.generation) == ("done", 1, 2)
            assert await times(room, user_id) == (None, None)
            await room.stores.lock(user_id)
            # The effect that the test's job left is one for programs outside, and due.
            assert await times(room, user_id) == (rig.clock(), rig.clock())

    rig.run(main)


def test_a_store_locked_with_work_of_later_says_when(rig: Rig) -> None:
    """Nothing waits yet; a store without work says nothing."""

    async def main(room: Strongroom) -> None:
        user_id, own = await open_member(room)
        async with working(room, Handlers()):
            await room.stores.lock(user_id)
            assert await times(room, user_id) == (None, None)
            own = await reopen(room, user_id)
            await enqueue(own, {}, run_at=rig.clock() + 60_000)
            await room.stores.lock(user_id)
            assert await times(room, user_id) == (None, rig.clock() + 60_000)

    rig.run(main)


def test_a_plain_store_is_opened_for_work_that_is_due(rig: Rig) -> None:
    """Nobody's key is needed; not before its time, and not an inactive member's."""

    async def main(room: Strongroom) -> None:
        user_id, own = await open_member(room)
        async with working(room, Workshop().handlers):
            job_id = await enqueue(own, {}, run_at=rig.clock() + 1_000)
            await room.stores.lock(user_id)
            await waiting.open_plain_due(room)
            assert room.stores.unlocked() == {}
            rig.clock.advance(1_000)
            await waiting.open_plain_due(room)
            await ended(room.stores.unlocked()[user_id].store, job_id)

    rig.run(main)


def test_a_store_in_trouble_is_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jobs are done once it can be written."""
    shop = Workshop()
    told: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: told.append(where))

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        async with working(room, shop.handlers) as orchestrator:
            with monkeypatch.context() as broken:
                broken.setattr(orchestrator, "_take", None)
                job_id = await enqueue(group)
                await until(lambda: "claim" in told)
            rig.clock.advance(1_000)
            assert (await ended(group, job_id)).attempts == 1

    rig.run(main)


def test_stopping_gives_everything_back(rig: Rig) -> None:
    """What runs and what was just claimed; the next process has it at once."""
    shop = Workshop()

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        made = [await enqueue(group, {"how": "wait"}) for _ in range(3)]
        async with working(room, shop.handlers):
            await until(lambda: shop.at_once.total() == 2)
        found = [await job(group, one) for one in made]
        assert [(j.status, j.attempts) for j in found] == [("pending", 0)] * 3
        shop.gate.set()
        async with working(room, shop.handlers):
            for one in made:
                assert (await ended(group, one)).attempts == 1
        assert set((await effects(group)).values()) == {1}

    rig.run(main)


def test_looking_is_no_use_of_a_store(make_rig: Callable[..., Rig]) -> None:
    """It is locked when idle all the same; a running job keeps it open."""
    rig, shop = make_rig(idle_lock_s=1), Workshop()

    async def main(room: Strongroom) -> None:
        user_id, own = await open_member(room)
        async with working(room, shop.handlers):
            before = room.stores.unlocked()[user_id].last_used
            await asyncio.sleep(0.3)
            assert room.stores.unlocked()[user_id].last_used == before
            job_id = await enqueue(own, {"how": "wait"})
            await until(lambda: shop.at_once.total() == 1)
            began = room.stores.unlocked()[user_id].last_used
            await until(lambda: room.stores.unlocked()[user_id].last_used > began + 0.3)
            shop.gate.set()
            await ended(own, job_id)

    rig.run(main)


def test_closed_handles_are_opened_only_when_work_is_due(make_rig: Callable[..., Rig]) -> None:
    """A slow look finds what another process enqueued; between two nothing is opened."""
    rig, shop = make_rig(job_look_s=3600.0), Workshop()

    async def main(room: Strongroom) -> None:
        user_id, own = await open_member(room)
        job_id = await enqueue(own, {}, run_at=rig.clock() + 5_000)
        async with working(room, shop.handlers):
            await asyncio.sleep(0.1)
            await room.stores.on_thread(own.handles.close_idle)
            await asyncio.sleep(0.1)
            assert own.handles.glance_reader() is None
            rig.clock.advance(5_000)
            await ended(own, job_id)
        assert user_id

    rig.run(main)


def test_every_store_with_closed_handles_has_its_turn(make_rig: Callable[..., Rig]) -> None:
    """Though a round looks at one of them alone, and each is always due for a look."""
    rig, shop = make_rig(job_look_s=0.001, stale_looks_max=1), Workshop()

    async def main(room: Strongroom) -> None:
        members = [await open_member(room, f"m{number}") for number in range(4)]
        stores = [store for _, store in members]
        async with rig.open() as other, working(room, shop.handlers):
            there = [await reopen(other, user_id) for user_id, _ in members]
            async with closing(room, stores):
                jobs_left = [await enqueue(store) for store in there]
                await until(lambda: shop.runs.keys() == set(jobs_left))

    rig.run(main)


def test_two_processes_do_every_job_once(rig: Rig) -> None:
    """However many are enqueued by either."""
    shop = Workshop()

    async def main(room: Strongroom) -> None:
        async with (
            rig.open() as second,
            working(room, shop.handlers),
            working(second, shop.handlers),
        ):
            stores = (room.stores.group, second.stores.group)
            made = await asyncio.gather(*(enqueue(stores[n % 2]) for n in range(60)))
            for one in made:
                await ended(room.stores.group, one)
        assert shop.begun == dict.fromkeys(made, 1)
        assert await effects(room.stores.group) == dict.fromkeys(made, 1)

    rig.run(main)


def test_handlers_are_one_a_kind_and_of_the_programs_own() -> None:
    """Another is an error of the program, found when it loads."""
    handlers = Workshop().handlers
    for kind in (KIND, "outside"):
        with pytest.raises(ValueError, match="no kind"):
            handlers.handler(kind, Order)
    assert Handlers([handlers]).find(KIND) is handlers.find(KIND)
    assert json.dumps(None) == "null"
