"""Approvals that a crash cuts, and time that runs out: nothing is lost, nothing done twice."""

from dataclasses import replace

import pytest

from app.bridge.content import approvals, files, waiting
from app.bridge.content.asking import Waiting
from app.bridge.strongroom import Strongroom
from app.bridge.work import housekeeping
from app.owner import pending_writes
from app.owner.notes import Condition
from app.runtime import steps
from app.runtime.idempotency import Replayed
from tests.support.asking import (
    PLAN,
    TEXT,
    again,
    ask,
    kept,
    once_of,
    pair,
    repair,
    shared_text,
    status_of,
    write_as_person,
)
from tests.support.points import APPROVED, ASKED, REFUSED
from tests.support.rig import Rig, StopHereError, stop_at
from tests.support.rooms import CALL

_DAY_MS = 86_400_000


def _asked(rig: Rig) -> str:
    """A member, and what their agent asks for, in a process that ends then."""

    async def work(room: Strongroom) -> str:
        return await ask(room, (await pair(room)).agent)

    return rig.run(work)


@pytest.mark.parametrize(("point", "is_done"), APPROVED.items())
@pytest.mark.parametrize("keyed", [False, True], ids=["", "keyed"])
def test_an_approval_cut_anywhere_is_done_or_waits_again(
    rig: Rig,
    point: str,
    is_done: bool,  # noqa: FBT001 - a column
    keyed: bool,  # noqa: FBT001 - likewise
) -> None:
    """The janitor, who cannot open the store, brings it to one of its ends; once, by its key."""
    waits = _asked(rig)

    async def decide(room: Strongroom) -> None:
        who = await again(room)
        call = replace(CALL, once=once_of(who.member, room)) if keyed else CALL
        await approvals.approve(room, who.member, call, waits)

    with pytest.raises(StopHereError):
        rig.run(decide, stop_at(point))

    async def look(room: Strongroom) -> None:
        await repair(room)
        assert await room.stores.registry.read(steps.list_open) == []
        who = await again(room)
        assert await status_of(room, who.member, waits) == ("done" if is_done else "pending")
        assert await shared_text(room) == (TEXT if is_done else None)
        # Unlocked, the store has let go of what is over.
        assert [each.id for each in await kept(room, who.member)] == ([] if is_done else [waits])
        if keyed and is_done:
            with pytest.raises(Replayed) as replayed:
                await decide(room)
            assert replayed.value.answer.body == b"done"
        if not is_done:
            await decide(room)
        assert await shared_text(room) == TEXT
        note = await files.get(room, who.member, CALL, PLAN)
        assert note.version == 1

    rig.run(look)


@pytest.mark.parametrize("point", REFUSED)
def test_a_refusal_cut_anywhere_holds(rig: Rig, point: str) -> None:
    """Whatever the store kept goes at its next unlock."""
    waits = _asked(rig)

    async def decide(room: Strongroom) -> None:
        await approvals.reject(room, (await again(room)).member, CALL, waits)

    with pytest.raises(StopHereError):
        rig.run(decide, stop_at(point))

    async def look(room: Strongroom) -> None:
        who = await again(room)
        assert await status_of(room, who.member, waits) == "rejected"
        assert await kept(room, who.member) == []
        assert await shared_text(room) is None

    rig.run(look)


@pytest.mark.parametrize("point", ASKED)
def test_what_was_asked_and_cut_is_told_at_the_next_unlock(rig: Rig, point: str) -> None:
    """And asked again by its key, it waits once."""

    async def request(room: Strongroom) -> None:
        who = await (again(room) if room in rooms else pair(room))
        call = replace(CALL, once=once_of(who.agent, room))
        await files.put(room, who.agent, call, PLAN, TEXT, Condition())

    rooms: list[Strongroom] = []
    with pytest.raises(StopHereError):
        rig.run(request, stop_at(point))

    async def look(room: Strongroom) -> None:
        rooms.append(room)
        with pytest.raises(Replayed):
            await request(room)
        who = await again(room)
        [one] = await kept(room, who.member)
        assert await status_of(room, who.member, one.id) == "pending"
        assert await approvals.approve(room, who.member, CALL, one.id) == "done"

    rig.run(look)


def test_what_was_asked_and_not_told_is_told_to_whom_the_answer_comes_again(rig: Rig) -> None:
    """In the same process, where the store is not unlocked anew."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        call = replace(CALL, once=once_of(who.agent, room))
        for error in (StopHereError, Replayed):
            with pytest.raises(error):
                await files.put(room, who.agent, call, PLAN, TEXT, Condition())
        [one] = await kept(room, who.member)
        assert await status_of(room, who.member, one.id) == "pending"

    rig.run(work, stop_at("approval.kept"))


def test_nobody_decides_what_is_too_late(rig: Rig) -> None:
    """Housekeeping says so; the text of a locked member goes when they come back."""
    waits = _asked(rig)
    rig.clock.advance(8 * _DAY_MS)

    async def keep_house(room: Strongroom) -> None:
        assert await housekeeping.run(room, None, room.stores.group, "test")

    rig.run(keep_house)

    async def look(room: Strongroom) -> None:
        who = await again(room)
        assert await status_of(room, who.member, waits) == "expired"
        assert await kept(room, who.member) == []

    rig.run(look)


def test_housekeeping_removes_what_is_too_late_where_the_store_is_open(rig: Rig) -> None:
    """By the clock, a week later; a day before that it waits."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        waits = await ask(room, who.agent)
        store = room.stores.find(who.member.user_id, who.member.account.generation)
        assert store is not None
        for days, left in ((6, 1), (2, 0)):
            rig.clock.advance(days * _DAY_MS)
            await housekeeping.run(room, who.member.user_id, store, "test")
            assert len(await store.watch(pending_writes.list_facts)) == left
        row = await status_of(room, who.member, waits)
        assert row == "expired"
        assert await waiting.settle(room.stores.registry, who.member.user_id, store) == 0

    rig.run(work)


def test_a_notice_is_forgotten_when_its_time_is_over(rig: Rig) -> None:
    """Three months after the decision; one that waits never is."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        waits = await ask(room, who.agent)
        await approvals.reject(room, who.member, CALL, waits)
        rig.clock.advance(91 * _DAY_MS)
        await housekeeping.run(room, None, room.stores.group, "test")
        found, _ = await approvals.list_own(room, (await again(room)).member, CALL, None, None, 10)
        assert found == []

    rig.run(work)


def test_a_purge_that_was_approved_leaves_no_trace(rig: Rig) -> None:
    """Not in the log either, and not when the crash came right after it."""

    async def work(room: Strongroom) -> str:
        who = await pair(room)
        await write_as_person(room, who.member, TEXT)
        found = await files.delete(room, who.agent, CALL, PLAN, Condition(), purge=True)
        assert isinstance(found, Waiting)
        with pytest.raises(StopHereError):
            await approvals.approve(room, who.member, CALL, found.approval_id)
        return found.approval_id

    waits = rig.run(work, stop_at("approve.written"))

    async def look(room: Strongroom) -> None:
        await repair(room)
        assert await status_of(room, (await again(room)).member, waits) == "done"
        assert rig.files_with(TEXT.encode()) == set()

    rig.run(look)
