"""Stores unlocked and open in one process."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from app.bridge import access, readiness
from app.bridge.accounts import members
from app.bridge.callers import Caller
from app.bridge.generations import Generations
from app.bridge.stores import StoreAccount, require_in_service
from app.bridge.strongroom import Strongroom, account_of
from app.crypto.keys import Key
from app.db import files
from app.db.pool import StoreClosedError
from app.errors.callers import InvalidCredentialsError
from app.errors.stores import (
    DiskFullError,
    OverloadedError,
    StoreBusyError,
    StoreDamagedError,
    StoreLockedError,
    StoreMigratingError,
    StoreMissingError,
    StoreSwappedError,
)
from app.ids import UserId
from app.registry import sessions
from tests.support.rig import ACTOR, Rig, add, begin_state, enter, member, read_note, write_note
from tests.support.rooms import CALL


async def _closed(room: Strongroom, name: str = "ana") -> Caller:
    """A caller with a note, whose store is closed here."""
    caller = await enter(room, name)
    await write_note(room, caller, f"of {name}")
    await room.stores.lock(caller.user_id)
    return caller


def test_a_store_opens_once(rig: Rig) -> None:
    """Many who ask at once wait for one opening."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await _closed(room)
        opened = await asyncio.gather(
            *(room.stores.open(caller.account, caller.take_key) for _ in range(5))
        )
        assert [is_new for _, is_new in opened].count(True) == 1
        assert len({id(store) for store, _ in opened}) == 1
        again, is_new = await room.stores.open(caller.account, caller.take_key)
        assert not is_new
        assert again is opened[0][0]

    rig.run(work)


def test_a_store_that_is_only_read_keeps_no_writing_handle(rig: Rig) -> None:
    """Its opening is written down, by key or by signing in; the first write after it keeps one."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await _closed(room)
        closed = room.stores.pool.used

        def held() -> int:
            return room.stores.pool.used - closed

        await read_note(room, caller)
        only_read = held()
        await write_note(room, caller)
        assert held() == only_read + 1
        await room.stores.lock(caller.user_id)
        await enter(room)
        assert held() == only_read

    rig.run(work)


@pytest.mark.parametrize(
    ("state", "error"),
    [("migrating", StoreMigratingError), ("erasing", StoreBusyError), ("copying", StoreBusyError)],
)
def test_a_store_out_of_service_says_why(state: str, error: type[Exception]) -> None:
    """Being migrated, or busy with anything else."""
    with pytest.raises(error):
        require_in_service(state)
    require_in_service("open")


def test_a_store_is_judged_again_under_its_lock(rig: Rig) -> None:
    """What was read with the credential may be old; a key that is not needed is wiped."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await _closed(room)
        key = caller.take_key()
        assert key is not None
        with pytest.raises(StoreLockedError):
            await room.stores.open(caller.account, lambda: None)
        old = replace(caller.account, generation=99)
        with pytest.raises(StoreClosedError):
            await room.stores.open(old, lambda: key)
        assert key.is_zeroed
        gone = replace(caller.account, user_id=UserId("gone"))
        with pytest.raises(StoreClosedError):
            await room.stores.open(gone, caller.take_key)
        await begin_state(room, made.id, "copying")
        with pytest.raises(StoreBusyError):
            await room.stores.open(caller.account, caller.take_key)
        # Nothing is held afterwards.
        assert room.stores.locks.try_exclusive(made.lock_number)
        with pytest.raises(StoreBusyError):
            await room.stores.open(replace(caller.account), caller.take_key)

    rig.run(work)


def test_a_missing_damaged_or_swapped_file_is_told_apart(rig: Rig) -> None:
    """Each by its own name, and none is ever made anew."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        await add(room, "ben")
        await add(room, "plain", encrypted=False)
        ben = await _closed(room, "ben")
        caller, plain = await _closed(room), await _closed(room, "plain")
        path, other = (rig.settings.user_file(who.user_id) for who in (caller, ben))
        whole = path.read_bytes()

        async def open_with(content: bytes | None) -> None:
            files.remove(path)
            if content is not None:
                path.write_bytes(content)
            await read_note(room, caller)

        with pytest.raises(StoreMissingError):
            await open_with(None)
        assert not path.exists()
        for damaged in (b"", bytes(16) + whole[16:], whole[:200] + bytes(200) + whole[400:]):
            with pytest.raises(StoreDamagedError):
                await open_with(damaged)
        plain_file = rig.settings.user_file(plain.user_id)
        for foreign in (other.read_bytes(), plain_file.read_bytes()):
            with pytest.raises((StoreSwappedError, StoreDamagedError)):
                await open_with(foreign)
        with pytest.raises(StoreSwappedError):
            await open_with(other.read_bytes())
        # A plain store in another plain member's place is told by its identity.
        await add(room, "plain too", encrypted=False)
        second = await _closed(room, "plain too")
        rig.settings.user_file(second.user_id).write_bytes(plain_file.read_bytes())
        with pytest.raises(StoreSwappedError):
            await read_note(room, second)
        files.remove(path)
        path.write_bytes(whole)
        assert await read_note(room, caller) == "of ana"
        assert ana.id in room.stores.unlocked()

    rig.run(work)


def test_a_store_that_closes_under_the_work_is_opened_again(rig: Rig) -> None:
    """Nothing was done yet; the caller is judged anew, and not for ever."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        tries: list[int] = []

        async def once(store: object) -> str:
            tries.append(1)
            if len(tries) == 1:
                await room.stores.lock(caller.user_id)
                raise StoreClosedError
            return str(bool(store))

        assert await access.with_own(room, caller, CALL, once) == "True"

        async def never(_store: object) -> None:
            raise StoreClosedError

        with pytest.raises(StoreBusyError):
            await access.with_own(room, caller, CALL, never)

        async def last(_store: object) -> None:
            await room.stores.registry.write(
                lambda tx: sessions.revoke(tx, caller.user_id, "browser", caller.session_id), ACTOR
            )
            raise StoreClosedError

        with pytest.raises(InvalidCredentialsError):
            await access.with_own(room, caller, CALL, last)

    rig.run(work)


def test_an_opening_that_cannot_be_recorded_is_an_opening(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk a store can still be read."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await _closed(room)

        async def full(*_args: object) -> None:
            raise DiskFullError

        monkeypatch.setattr(access, "refresh_mirror", full)
        assert await read_note(room, caller) == "of ana"

    rig.run(work)


def test_a_changed_store_is_found(rig: Rig) -> None:
    """By its generation, its state, its member's activity, or its absence; and no other."""

    async def work(room: Strongroom) -> None:
        assert await Generations(room.stores).find_changed() == []
        for name in ("ana", "ben", "cyd"):
            await add(room, name)
            await enter(room, name)
        assert await Generations(room.stores).find_changed() == []
        rows = {name: await enter(room, name) for name in ("ana", "ben", "cyd")}
        async with rig.open() as other:
            await begin_state(other, rows["ana"].user_id, "copying")
            await members_deactivated(other, rows["ben"])
        changed = await Generations(room.stores).find_changed()
        assert set(changed) == {rows["ana"].user_id, rows["ben"].user_id}

    async def members_deactivated(other: Strongroom, caller: Caller) -> None:
        with contextlib.suppress(StoreBusyError):
            await members.deactivate(other, caller.user_id, ACTOR)

    rig.run(work)


def test_stores_that_nobody_uses_are_known(rig: Rig) -> None:
    """By the seconds since their last use."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        assert room.stores.idle_since(60) == []
        assert room.stores.idle_since(-60) == [caller.user_id]

    rig.run(work)


def test_a_stop_wipes_every_key(rig: Rig) -> None:
    """Also of stores that were open."""
    keys: list[Key] = []

    async def work(room: Strongroom) -> None:
        await add(room)
        await enter(room)
        keys.extend(each.key for each in room.stores.unlocked().values() if each.key)

    rig.run(work)
    assert [key.is_zeroed for key in keys] == [True]


def test_a_last_use_is_written_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many notes of one session are one write; a write that fails is no request's error."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        rig.clock.advance(1)
        for _ in range(3):
            room.seen.note(caller.session_id)
        await room.seen.settle()
        row = await room.stores.registry.read(
            lambda reader: sessions.require_live(reader, caller.user_id, caller.session_id)
        )
        assert row.last_seen_at == room.clock()

        async def refuse(*_args: object) -> None:
            raise OverloadedError

        with monkeypatch.context() as patch:
            patch.setattr(type(room.stores.registry), "write", refuse)
            room.seen.note(caller.session_id)
            await room.seen.settle()

    rig.run(work)


def test_a_process_says_whether_it_can_serve(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry read and the disk written; the probe leaves no file."""

    async def work(room: Strongroom) -> None:
        assert await readiness.find_unmet(room) == []
        assert rig.files() == set()

        async def refuse(*_args: object) -> None:
            raise OverloadedError

        def read_only(_folder: object) -> None:
            raise OSError

        monkeypatch.setattr(type(room.stores.registry), "read", refuse)
        monkeypatch.setattr(readiness, "_write_probe", read_only)
        assert await readiness.find_unmet(room) == ["registry", "disk"]
        monkeypatch.undo()

    rig.run(work)


def test_an_account_says_what_opening_needs(rig: Rig) -> None:
    """The same from a member's row as from a credential's."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await enter(room)
        account: StoreAccount = account_of(await member(room, made.id))
        assert account == caller.account

    rig.run(work)
