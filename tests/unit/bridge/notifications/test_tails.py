"""Live tails: told at once, judged all the time, bounded, and no use of the store."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Final

import pytest

from app.bridge import access, quick
from app.bridge.accounts import revocation
from app.bridge.callers import Call, Caller
from app.bridge.content.reports import Home
from app.bridge.notifications.tails import Tail, subscribe
from app.bridge.streams import Streams
from app.bridge.strongroom import Strongroom
from app.errors.callers import InvalidCredentialsError, NotPermittedError, TooManyStreamsError
from app.errors.conflicts import EventCursorAheadError, EventCursorExpiredError
from app.errors.root import StrongroomError
from app.errors.stores import OverloadedError
from app.ids import UserId
from app.owner import access as openings
from app.owner import notes
from app.owner.notes import Condition
from app.owner.paths import USER_MEMORY, PathRef
from app.runtime import events as log
from app.runtime.events import Cursor, Page, Types
from tests.support.rig import ACTOR, BORN, Rig, add, enter, read_note, write_note
from tests.support.rooms import CALL
from tests.support.stores import ANA, BEN

ALL: Final = Types()
_WAIT_S: Final = 20


@contextlib.asynccontextmanager
async def tail_of(
    room: Strongroom, caller: Caller, home: Home = "own", after: Cursor | None = None
) -> AsyncIterator["Follower"]:
    """A tail that is followed in the background."""
    tail = await subscribe(room, caller, CALL, home, after, ALL)
    follower = Follower(tail)
    try:
        yield follower
    finally:
        await follower.end()


class Follower:
    """Collects what a tail gives."""

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.seqs: list[int] = []
        """Places of what came, counted from those with which the store was made."""
        self.beats = 0
        self.error: StrongroomError | None = None
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            async for page in self.tail.pages():
                self._take(page)
        except StrongroomError as error:
            self.error = error

    def _take(self, page: Page | None) -> None:
        if page is None:
            self.beats += 1
        else:
            self.seqs += [event.seq - BORN for event in page.items if event.seq > BORN]
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to become true."""
        async with asyncio.timeout(_WAIT_S):
            while not holds():
                self._news.clear()
                await self._news.wait()

    async def has(self, *seqs: int) -> None:
        """Wait until exactly these came."""
        await self.until(lambda: len(self.seqs) >= len(seqs))
        assert self.seqs == list(seqs)

    async def over(self) -> None:
        """Wait until it ends by itself."""
        await asyncio.wait_for(asyncio.shield(self._task), _WAIT_S)

    async def end(self) -> None:
        """Leave."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self.tail.close()
        self.tail.close()


def test_a_commit_here_is_told_at_once(make_rig: Callable[..., Rig]) -> None:
    """Without waiting for the next look; what was there before comes first."""
    rig = make_rig(event_look_ms=60_000)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller, "before")
        async with tail_of(room, caller) as follower:
            await follower.has(1)
            await write_note(room, caller, "after")
            await follower.has(1, 2)

    rig.run(work)


def test_a_commit_of_another_process_is_seen_at_the_next_look(
    make_rig: Callable[..., Rig],
) -> None:
    """For its bell does not ring here."""
    rig = make_rig(event_look_ms=20)

    async def work() -> None:
        async with rig.open() as here, rig.open() as there:
            await add(here)
            caller = await enter(here)
            async with tail_of(here, caller) as follower:
                other = await access.authenticate(there, caller.token)
                await write_note(there, other, "elsewhere")
                await follower.has(1)

    asyncio.run(work())


_FOLLOWED: Final = {"event_look_ms": 5, "event_heartbeat_s": 0.02}


async def _settled(*followers: "Follower") -> None:
    """Wait until each has looked a few times more."""
    for follower in followers:
        beats = follower.beats
        await follower.until(lambda f=follower, b=beats: f.beats > b + 3)  # type: ignore[misc] # bound


def test_a_store_that_is_used_in_another_process_is_followed_there(
    make_rig: Callable[..., Rig],
) -> None:
    """Though it was locked here meanwhile; no longer than it is used, and without a gap."""
    rig = make_rig(**_FOLLOWED)

    async def work() -> None:
        async with rig.open() as here, rig.open() as there:
            await add(here)
            caller = await enter(here)
            other = await access.authenticate(there, caller.token)
            async with tail_of(here, caller) as follower:
                await write_note(there, other, "elsewhere")
                await follower.has(1)
                # In use there all the time, idle here.
                await here.stores.lock(caller.user_id)
                await write_note(there, other, "again")
                await follower.has(1, 2)
                assert caller.user_id in here.stores.unlocked()
                await there.stores.lock(caller.user_id)
                await _settled(follower)
                assert here.stores.unlocked() == {}
                await write_note(there, other, "later")
                await follower.has(1, 2, 3)

    asyncio.run(work())


async def _openings(room: Strongroom, user_id: UserId) -> int:
    """How many are on record in a store that is open here."""
    store = room.stores.unlocked()[user_id].store
    return len(await store.watch(lambda reader: openings.list_access(reader, None, 100)))


def test_to_follow_is_no_opening_until_somebody_uses_the_store_there(
    make_rig: Callable[..., Rig],
) -> None:
    """Who looks at their openings sees each that somebody asked for, and no other."""
    rig = make_rig(**_FOLLOWED)

    async def work() -> None:
        async with rig.open() as here, rig.open() as there:
            await add(here)
            caller = await enter(here)
            other = await access.authenticate(there, caller.token)
            async with tail_of(here, caller) as follower:
                await write_note(there, other, "elsewhere")
                await follower.has(1)
                count = await _openings(there, caller.user_id)
                for seqs in ((1, 2), (1, 2, 3)):
                    await here.stores.lock(caller.user_id)
                    await write_note(there, other, f"again {seqs}")
                    await follower.has(*seqs)
                assert await _openings(there, caller.user_id) == count
                ref = PathRef(USER_MEMORY, "kept.md")
                assert quick.find_note(here, caller.token, ref) is None
                for _ in range(2):
                    assert await read_note(here, caller) == "again (1, 2, 3)"
                assert quick.find_note(here, caller.token, ref) is not None
                assert await _openings(there, caller.user_id) == count + 1

    asyncio.run(work())


def test_two_who_follow_do_not_keep_a_store_open_for_each_other(
    make_rig: Callable[..., Rig],
) -> None:
    """Locked everywhere it stays so, though both listen; one use of it wakes both."""
    rig = make_rig(**_FOLLOWED)

    async def work() -> None:
        async with rig.open() as here, rig.open() as there:
            made = (await add(here)).account
            caller = await enter(here)
            other = await access.authenticate(there, caller.token)
            async with tail_of(here, caller) as one, tail_of(there, other) as two:
                locking = asyncio.create_task(
                    revocation.lock_everywhere(here, made.id, made.lock_number, ACTOR)
                )
                # As the loop does that watches for stores which were taken.
                while not locking.done():
                    await there.stores.lock(made.id)
                    await asyncio.sleep(0.005)
                assert await locking
                for seqs in ([1], [1, 2]):
                    await _settled(one, two)
                    assert (here.stores.unlocked(), there.stores.unlocked()) == ({}, {})
                    await write_note(here, await access.authenticate(here, caller.token), f"{seqs}")
                    await one.has(*seqs)
                    await two.has(*seqs)
                    # First who used it; then nobody does, and it is let go by who followed.
                    await here.stores.lock(made.id)

    asyncio.run(work())


def test_a_store_that_is_followed_may_come_to_be_used(make_rig: Callable[..., Rig]) -> None:
    """By a request, or by the program's work in it: then it stays, and others follow it."""
    rig = make_rig(**_FOLLOWED)

    async def work() -> None:
        async with rig.open() as here, rig.open() as there:
            await add(here)
            caller = await enter(here)
            other = await access.authenticate(there, caller.token)
            async with tail_of(here, caller) as one, tail_of(there, other) as two:
                for first, second, seqs in (
                    ((here, caller), (there, two), (1, 2)),
                    ((there, other), (here, one), (1, 2, 3, 4)),
                ):
                    await here.stores.lock(caller.user_id)
                    await there.stores.lock(caller.user_id)
                    await write_note(*first, text=f"used {seqs}")
                    await second[1].has(*seqs[:-1])
                    store = second[0].stores.unlocked()[caller.user_id].store
                    await store.write(
                        lambda tx, s=seqs: notes.put_note(tx, "n.md", f"{s}", "x", Condition()),  # type: ignore[misc] # bound
                        ACTOR,
                    )
                    await second[1].has(*seqs)
                    await first[0].stores.lock(caller.user_id)
                    await one.has(*seqs)
                    await two.has(*seqs)
                    await _settled(one, two)
                    assert caller.user_id in here.stores.unlocked()
                    assert caller.user_id in there.stores.unlocked()

    asyncio.run(work())


def test_nothing_is_missed_or_repeated_between_pages(make_rig: Callable[..., Rig]) -> None:
    """Written while the tail begins, reads and sends."""
    rig = make_rig(event_look_ms=60_000)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)

        async def write(name: str) -> None:
            for turn in range(30):
                await write_note(room, caller, f"{name} {turn}")

        writing = asyncio.gather(*(write(name) for name in "abc"))
        async with tail_of(room, caller) as follower:
            await writing
            await follower.has(*range(1, 91))

    rig.run(work)


def test_a_revoked_session_hears_no_more(make_rig: Callable[..., Rig]) -> None:
    """Within one look, though nothing happens in the store."""
    rig = make_rig(event_look_ms=10)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        other = await enter(room)
        async with tail_of(room, caller) as follower, tail_of(room, other) as staying:
            await revocation.sign_out(room, caller, CALL)
            await follower.over()
            assert isinstance(follower.error, InvalidCredentialsError)
            await write_note(room, other)
            await staying.has(1)
            assert follower.seqs == []

    rig.run(work)


def test_a_credential_without_the_scope_hears_nothing(rig: Rig) -> None:
    """Also one whose scope went while it listened."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        tail = await subscribe(room, caller, CALL, "own", None, ALL)
        with contextlib.closing(tail), pytest.MonkeyPatch.context() as patch:

            async def weaker(_room: Strongroom, _token: object) -> Caller:
                return replace(caller, kind="token", scopes=frozenset({"memory:read"}))

            patch.setattr("app.bridge.notifications.tails.authenticate", weaker)
            with pytest.raises(NotPermittedError):
                await anext(tail.pages())

    rig.run(work)


def test_a_locked_store_is_waited_for(make_rig: Callable[..., Rig]) -> None:
    """Heartbeats alone; it is not opened again for the tail, which goes on when it is."""
    rig = make_rig(event_look_ms=5, event_heartbeat_s=0.02)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller, "one")
        async with tail_of(room, caller) as follower:
            await follower.has(1)
            await room.stores.lock(caller.user_id)
            beats = follower.beats
            await follower.until(lambda: follower.beats > beats + 2)
            assert room.stores.unlocked() == {}
            await write_note(room, caller, "two")
            await follower.has(1, 2)

    rig.run(work)


def test_a_tail_is_no_use_of_the_store(make_rig: Callable[..., Rig]) -> None:
    """Looking all the time keeps it from no idle locking."""
    rig = make_rig(event_look_ms=1, event_heartbeat_s=0.01)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        async with tail_of(room, caller) as follower:
            await follower.until(lambda: follower.beats > 0)
            used = room.stores.unlocked()[caller.user_id].last_used
            beats = follower.beats
            await follower.until(lambda: follower.beats > beats + 2)
            assert room.stores.unlocked()[caller.user_id].last_used == used

    rig.run(work)


def test_a_stream_ends_when_the_process_is_to_end(make_rig: Callable[..., Rig]) -> None:
    """By itself, at the next look."""
    rig = make_rig(event_look_ms=5)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        async with tail_of(room, caller) as follower:
            room.ending.set()
            await follower.over()
            assert follower.error is None

    rig.run(work)


def test_a_log_that_is_pruned_under_a_tail_ends_it(make_rig: Callable[..., Rig]) -> None:
    """It was not told of all, and says so."""
    rig = make_rig(event_look_ms=5)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller, "one")
        tail = await subscribe(room, caller, CALL, "own", None, ALL)
        with contextlib.closing(tail):
            store, _ = await room.stores.open(caller.account, caller.take_key)
            rig.clock.advance(1)
            await store.write(lambda tx: log.prune(tx, rig.clock(), 10), ACTOR)
            with pytest.raises(EventCursorExpiredError):
                await anext(tail.pages())

    rig.run(work)


def test_what_one_may_not_see_is_passed_over(make_rig: Callable[..., Rig]) -> None:
    """Of the group's log a member's tail shows the shared, and its place moves on with the rest."""
    rig = make_rig(event_look_ms=5, event_heartbeat_s=0.02)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        async with tail_of(room, caller, "group") as follower:
            await follower.until(lambda: follower.beats > 0)
            assert follower.seqs == []
            place = follower.tail.place.seq - BORN
            assert place > 0
            await room.stores.group.write(
                lambda tx: notes.put_note(tx, "n.md", "text", caller.user_id, Condition()), ACTOR
            )
            await follower.until(lambda: follower.seqs != [])
            assert follower.seqs[0] > place

    rig.run(work)


def test_a_place_that_cannot_be_followed_is_refused_at_once(rig: Rig) -> None:
    """And leaves no stream counted."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        tail = await subscribe(room, caller, CALL, "own", None, ALL)
        assert room.streams.count == 1
        ahead = tail.place._replace(seq=9)
        tail.close()
        for home in ("own", "group"):
            with pytest.raises(StrongroomError):
                await subscribe(room, caller, CALL, home, ahead, ALL)
        with pytest.raises(EventCursorAheadError):
            await subscribe(room, caller, CALL, "own", ahead, ALL)
        assert room.streams.count == 0

    rig.run(work)


def test_streams_are_bounded(make_rig: Callable[..., Rig]) -> None:
    """Each member's, and the process's; one that ends makes room."""
    rig = make_rig(event_streams_each=2, event_streams_max=3)

    async def work(room: Strongroom) -> None:
        for name in ("ana", "ben", "cyd"):
            await add(room, name)
        ana, ben, cyd = [await enter(room, name) for name in ("ana", "ben", "cyd")]

        async def follow(caller: Caller) -> Tail:
            return await subscribe(room, caller, Call("test", "x"), "own", None, ALL)

        tails = [await follow(ana), await follow(ana)]
        with pytest.raises(TooManyStreamsError):
            await follow(ana)
        tails.append(await follow(ben))
        with pytest.raises(OverloadedError):
            await follow(cyd)
        tails.pop(0).close()
        tails.append(await follow(cyd))
        for tail in tails:
            tail.close()
        assert room.streams.count == 0

    rig.run(work)


def test_the_count_is_each_members_own() -> None:
    """And what is left behind is nothing."""
    streams = Streams()
    streams.enter(ANA, 1, 2)
    streams.enter(BEN, 1, 2)
    with pytest.raises(TooManyStreamsError):
        streams.enter(ANA, 1, 3)
    streams.leave(ANA)
    streams.enter(UserId("x"), 1, 2)
    assert streams.count == 2
