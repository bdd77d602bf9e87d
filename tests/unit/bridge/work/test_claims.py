"""A wait for a job, beside the locking of the store it is waited for in."""

import asyncio
from typing import Final, Literal

import pytest
from typing_extensions import override

from app.bridge import access
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.bridge.work import claims, jobs
from app.bridge.work.claims import Waiting
from app.bridge.work.jobs import Home, NewJob
from app.db.owner.store import OwnerStore
from app.db.pool import StoreClosedError
from app.errors.stores import OutOfHandlesError, StoreBusyError, StoreMigratingError
from app.runtime.jobs import Claim
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL
from tests.support.workshop import until

_LONG_S: Final = 30.0
_KIND: Final = "work"


class _News(asyncio.Event):
    """Counts how often somebody began to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    @override
    async def wait(self) -> Literal[True]:
        self.waits += 1
        return await super().wait()


class _Awaited(Waiting):
    """A wait of which the test knows when it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = self.news = _News()

    async def goes_on(self) -> None:
        """Look again, and wait again."""
        before = self.counted.waits
        self.news.set()
        await until(lambda: self.counted.waits > before)


async def _claim(
    room: Strongroom, caller: Caller, waiting: Waiting, wait_s: float, home: Home = "own"
) -> Claim | None:
    return await claims.claim(room, caller, CALL, home, [_KIND], wait_s, waiting)


async def _enqueue(room: Strongroom, caller: Caller) -> str:
    made, _ = await jobs.add(room, caller, CALL, "own", NewJob(_KIND, {}))
    return made.id


def _is_open(room: Strongroom, caller: Caller) -> bool:
    return room.stores.find(caller.user_id, caller.account.generation) is not None


def test_a_wait_goes_on_however_often_its_store_is_locked(rig: Rig) -> None:
    """Once it is unlocked again, what is enqueued there is found."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller, waiting = await enter(room), _Awaited()
        waiter = asyncio.create_task(_claim(room, caller, waiting, _LONG_S))
        await waiting.goes_on()
        for _ in range(5):
            await room.stores.lock(caller.user_id)
            await waiting.goes_on()
            assert not _is_open(room, caller)
            await room.stores.open(caller.account, caller.take_key)
            await waiting.goes_on()
        await room.stores.lock(caller.user_id)
        await waiting.goes_on()
        job_id = await _enqueue(room, caller)
        waiting.news.set()
        found = await waiter
        assert found is not None
        assert found.id == job_id

    rig.run(work)


def test_a_wait_unlocks_no_store(rig: Rig) -> None:
    """One that was locked meanwhile stays so, and the wait ends without a job."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller, waiting = await enter(room), _Awaited()
        waiter = asyncio.create_task(_claim(room, caller, waiting, 0.4))
        await waiting.goes_on()
        await room.stores.lock(caller.user_id)
        waiting.news.set()
        assert await waiter is None
        assert not _is_open(room, caller)

    rig.run(work)


def test_a_wait_goes_on_where_its_store_is_used_in_another_process(rig: Rig) -> None:
    """Locked everywhere it unlocks nothing; used elsewhere it is followed, and no longer."""

    async def work() -> None:
        async with rig.open() as here, rig.open() as there:
            await add(here)
            caller, waiting = await enter(here), _Awaited()
            other = await access.authenticate(there, caller.token)
            waiter = asyncio.create_task(_claim(here, caller, waiting, _LONG_S))
            await waiting.goes_on()
            for _ in range(2):
                await here.stores.lock(caller.user_id)
                await waiting.goes_on()
                assert not _is_open(here, caller)
                await there.stores.open(other.account, other.take_key)
                await waiting.goes_on()
                assert _is_open(here, caller)
                await there.stores.lock(caller.user_id)
                await waiting.goes_on()
                assert not _is_open(here, caller)
            job_id = await _enqueue(there, other)
            waiting.news.set()
            found = await waiter
            assert found is not None
            assert found.id == job_id
            # Who took a job uses the store here.
            assert here.stores.find_opened(caller.user_id, caller.account.generation) is not None

    asyncio.run(work())


@pytest.mark.parametrize(
    "error", [StoreClosedError, StoreBusyError, StoreMigratingError, OutOfHandlesError]
)
def test_a_wait_bears_with_a_store_that_cannot_be_followed_now(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """It looks again, and finds what is there then."""
    looks = 0

    async def follow_own(room: Strongroom, caller: Caller, _call: Call) -> OwnerStore | None:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise error
        return room.stores.find(caller.user_id, caller.account.generation)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller, waiting = await enter(room), _Awaited()
        waiter = asyncio.create_task(_claim(room, caller, waiting, _LONG_S))
        await waiting.goes_on()
        for _ in range(3):
            await waiting.goes_on()
        job_id = await _enqueue(room, caller)
        waiting.news.set()
        found = await waiter
        assert found is not None
        assert found.id == job_id

    monkeypatch.setattr(claims, "follow_own", follow_own)
    rig.run(work)


def test_the_end_of_a_wait_is_no_failure_while_the_store_is_locked(rig: Rig) -> None:
    """The client went away, or the service ends."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller, waiting = await enter(room), _Awaited()
        waiter = asyncio.create_task(_claim(room, caller, waiting, _LONG_S))
        await waiting.goes_on()
        await room.stores.lock(caller.user_id)
        waiting.end()
        assert await waiter is None

    rig.run(work)


def test_a_claim_that_reaches_nobody_is_given_back(rig: Rig) -> None:
    """Who asked went away while it was taken: the job waits, and no attempt counts."""
    waiting = Waiting()

    def reach(point: str) -> None:
        if point == "job.claimed":
            waiting.end()

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        job_id = await _enqueue(room, caller)
        assert await _claim(room, caller, waiting, 0) is None
        job = await jobs.get(room, caller, CALL, "own", job_id)
        assert (job.status, job.attempts) == ("pending", 0)

    rig.run(work, reach)
