"""A store that one operation has alone."""

import contextlib

import pytest

from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom
from app.bridge.taking import taken
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.conflicts import LastAdministratorError
from app.errors.stores import DiskFullError, StoreBusyError
from tests.support.rig import (
    ACTOR,
    Rig,
    StopHereError,
    add,
    begin_state,
    enter,
    member,
    read_note,
    write_note,
)


def test_a_taken_store_is_closed_and_comes_back(rig: Rig) -> None:
    """Meanwhile nobody opens it; afterwards the same session does, in a new generation."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        caller = await enter(room)
        await write_note(room, caller)
        before = room.stores.unlocked()[ana.id]
        assert before.key is not None
        async with taken(room, ana.id, ana.lock_number, "copying", ACTOR):
            assert before.key.is_zeroed
            assert (await member(room, ana.id)).store_state == "copying"
            with pytest.raises(StoreBusyError):
                await read_note(room, caller)
            with pytest.raises(StoreBusyError):
                async with taken(room, ana.id, ana.lock_number, "closing", ACTOR):
                    pass
        assert (await member(room, ana.id)).store_generation == ana.store_generation + 2
        assert await read_note(room, caller) == "kept"

    rig.run(work)


def test_a_store_that_is_not_let_go_is_left_as_it_was(rig: Rig) -> None:
    """After the wait the operation is refused, and the store is in service."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        caller = await enter(room)
        await write_note(room, caller)
        async with rig.open() as other:
            await read_note(other, caller)
            with pytest.raises(StoreBusyError):
                async with taken(room, ana.id, ana.lock_number, "closing", ACTOR):
                    pass
            assert (await member(room, ana.id)).store_state == "open"
        assert await read_note(room, caller) == "kept"

    rig.run(work)


def test_a_judge_refuses_before_anything_changes(rig: Rig) -> None:
    """In the transaction that would begin it; whoever has the store open keeps it."""

    def judge(_tx: RegistryTransactor) -> None:
        raise LastAdministratorError

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        await enter(room)
        with pytest.raises(LastAdministratorError):
            async with taken(room, ana.id, ana.lock_number, "erasing", ACTOR, judge):
                pass
        assert ana.id in room.stores.unlocked()
        assert (await member(room, ana.id)).store_generation == ana.store_generation

    rig.run(work)


def test_a_janitor_that_was_faster_is_made_up_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that it ended while the lock was free is begun again under the lock."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        lock = room.stores.lock

        async def lock_late(user_id: object) -> None:
            await Janitor(room.settings, room.stores).settle()
            assert (await member(room, ana.id)).store_state == "open"
            await lock(ana.id)
            assert user_id == ana.id

        monkeypatch.setattr(type(room.stores), "lock", lambda _, user_id: lock_late(user_id))
        async with taken(room, ana.id, ana.lock_number, "copying", ACTOR):
            monkeypatch.undo()
            assert (await member(room, ana.id)).store_state == "copying"
            # Under the lock it is left alone.
            await Janitor(room.settings, room.stores).settle()
            assert (await member(room, ana.id)).store_state == "copying"
        assert (await member(room, ana.id)).store_state == "open"

    rig.run(work)


@pytest.mark.parametrize("must_finish", [False, True])
def test_an_operation_that_fails_is_over_or_the_janitors(rig: Rig, *, must_finish: bool) -> None:
    """Before its point of no return the store is back at once; after it, with the janitor."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        with contextlib.suppress(StopHereError):
            async with taken(room, ana.id, ana.lock_number, "copying", ACTOR) as hold:
                hold.must_finish = must_finish
                raise StopHereError
        state = (await member(room, ana.id)).store_state
        assert state == ("copying" if must_finish else "open")
        await Janitor(room.settings, room.stores).round()
        assert (await member(room, ana.id)).store_state == "open"
        await enter(room)

    rig.run(work)


def test_the_lock_is_free_whatever_fails(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that cannot be written at the end leaves a state for the janitor, and no lock."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        write = type(room.stores.registry).write

        async def full(*_args: object) -> None:
            raise DiskFullError

        with pytest.raises(DiskFullError):
            async with taken(room, ana.id, ana.lock_number, "copying", ACTOR):
                monkeypatch.setattr(type(room.stores.registry), "write", full)
        monkeypatch.setattr(type(room.stores.registry), "write", write)
        await Janitor(room.settings, room.stores).settle()
        assert (await member(room, ana.id)).store_state == "open"

    rig.run(work)


def test_a_state_that_nobody_holds_is_ended(rig: Rig) -> None:
    """A process that died with a store out of service keeps nobody from it for long."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        caller = await enter(room)
        for state in ("closing", "rotating", "erasing"):
            await begin_state(room, ana.id, state)
            # A store that is still open somewhere is not this round's.
            await Janitor(room.settings, room.stores).settle()
            assert (await member(room, ana.id)).store_state == state
            await room.stores.lock(ana.id)
            await Janitor(room.settings, room.stores).settle()
            assert (await member(room, ana.id)).store_state == "open"
            await enter(room)
        gone = await room.stores.registry.read(lambda r: r.all(sql.LIST_MOVING_STORES))
        assert gone == []
        assert caller.user_id == ana.id

    rig.run(work)
