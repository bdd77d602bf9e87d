"""A member's secrets changed: password, code, key; and what each change ends."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from app.bridge import access
from app.bridge.accounts import api_tokens, codes, credentials, members, passwords, rotation, signin
from app.bridge.accounts.api_tokens import NewToken
from app.bridge.accounts.passwords import Checked
from app.bridge.callers import Caller
from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom
from app.crypto.keys import Key
from app.db import files
from app.db.owner.store import OwnerReader
from app.db.registry import statements as sql
from app.db.registry.rows import SlotRow
from app.db.registry.store import RegistryTransactor
from app.errors.callers import (
    HumanSessionRequiredError,
    InvalidCredentialsError,
    TooManyAttemptsError,
)
from app.errors.conflicts import StoreNotEncryptedError
from app.errors.inputs import WeakPasswordError
from app.errors.stores import DiskFullError, StoreBusyError, StoreError
from app.owner.access import list_access
from app.registry import sessions
from app.registry.throttle import ACCOUNT_FREE
from app.runtime import steps
from app.runtime.steps import Run
from tests.support.rig import (
    ACTOR,
    OTHER,
    Rig,
    StopHereError,
    add,
    begin_state,
    enter,
    member,
    read_note,
    stop_at,
    write_note,
)
from tests.support.rooms import CALL, PASSWORD

_WHOLE = ("memory:read", "memory:write")
_NETWORKS = itertools.cycle(range(256))


async def _mint(room: Strongroom, caller: Caller, *scopes: str) -> Caller:
    new = NewToken("token", scopes, None, is_agent=False, expires_at=None)
    token, _ = await api_tokens.mint(room, caller, new, CALL)
    return await access.authenticate(room, token)


async def _is_live(room: Strongroom, caller: Caller) -> bool:
    try:
        await access.authenticate(room, caller.token)
    except InvalidCredentialsError:
        return False
    return True


async def _slots(room: Strongroom, caller: Caller) -> list[SlotRow]:
    return await room.stores.registry.read(lambda r: sessions.list_slots(r, caller.user_id))


async def _refresh(room: Strongroom, caller: Caller) -> Caller:
    return await access.authenticate(room, caller.token)


async def _opens(room: Strongroom, password: str) -> bool:
    """Whether the password is the member's, asked from a network that has failed nothing yet."""
    call = replace(CALL, network=f"198.51.{next(_NETWORKS)}.0/24")
    try:
        checked = await passwords.check(room, "ana", password, call)
    except InvalidCredentialsError:
        return False
    checked.zero()
    return True


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "cleartext"])
@pytest.mark.parametrize("keep_sessions", [False, True])
@pytest.mark.parametrize("end_tokens", [False, True])
def test_a_change_of_password_ends_what_it_says(
    rig: Rig, *, encrypted: bool, keep_sessions: bool, end_tokens: bool
) -> None:
    """Other sessions unless kept, tokens if asked; the calling one stays, the key too."""

    async def work(room: Strongroom) -> None:
        made = (await add(room, encrypted=encrypted)).account
        caller, other = await enter(room), await enter(room)
        token = await _mint(room, caller, *_WHOLE)
        await write_note(room, caller)
        code = await credentials.change_password(
            room,
            caller,
            PASSWORD,
            OTHER,
            CALL,
            keep_sessions=keep_sessions,
            end_tokens=end_tokens,
        )
        assert code is None
        assert await read_note(room, await _refresh(room, caller)) == "kept"
        assert await _is_live(room, other) is keep_sessions
        assert await _is_live(room, token) is not end_tokens
        assert (await member(room, made.id)).dek_id == made.dek_id
        assert not await _opens(room, PASSWORD)
        await enter(room, password=OTHER)

    rig.run(work)


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "cleartext"])
def test_the_first_change_of_a_temporary_password_takes_everything_back(
    rig: Rig, *, encrypted: bool
) -> None:
    """Whoever chose it keeps no session, no token and no key, whatever was asked to stay."""

    async def work(room: Strongroom) -> None:
        made = (await add(room, encrypted=encrypted, is_temporary=True)).account
        creator = await enter(room)
        planted = [await _mint(room, creator, *_WHOLE), await _mint(room, creator, "account")]
        caller = await enter(room)
        await write_note(room, caller)
        code = await credentials.change_password(
            room, caller, PASSWORD, OTHER, CALL, keep_sessions=True
        )
        assert (code is not None) is encrypted
        row = await member(room, made.id)
        assert not row.password_is_temporary
        if encrypted:
            assert row.dek_id != made.dek_id
            assert row.file_salt != made.file_salt
        for each in (creator, *planted):
            assert not await _is_live(room, each)
        assert await read_note(room, await _refresh(room, caller)) == "kept"
        assert not await _opens(room, PASSWORD)

    rig.run(work)


def test_a_rotation_under_a_temporary_password_leaves_it_temporary(rig: Rig) -> None:
    """Somebody else still knows it; only their own first change makes it the member's."""

    async def work(room: Strongroom) -> None:
        made = (await add(room, is_temporary=True)).account
        await credentials.rotate(room, await enter(room), PASSWORD, CALL)
        row = await member(room, made.id)
        assert row.password_is_temporary
        assert row.dek_id != made.dek_id

    rig.run(work)


def test_a_rotation_keeps_the_calling_session_alone(rig: Rig) -> None:
    """The same password, a new key, a new code; every other way in ended, and named."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        device = signin.Device(label="phone")
        got = await signin.sign_in(room, "ana", PASSWORD, CALL, device)
        caller, other = await access.authenticate(room, got.token), await enter(room)
        tokens = [await _mint(room, caller, *_WHOLE), await _mint(room, caller, "account")]
        await write_note(room, caller)
        done = await credentials.rotate(room, caller, PASSWORD, CALL)
        ended = sorted((way.kind, way.label) for way in done.ended)
        assert ended[0] == ("recovery", "")
        assert ended[1] == ("session", "")
        assert [kind for kind, _ in ended] == ["recovery", "session", "token", "token"]
        assert "phone" not in {label for _, label in ended}
        for each in (other, *tokens):
            assert not await _is_live(room, each)
        caller = await _refresh(room, caller)
        assert await read_note(room, caller) == "kept"
        assert {slot.kind: slot.label for slot in await _slots(room, caller)} == {
            "session": "phone",
            "recovery": "",
        }
        with pytest.raises(InvalidCredentialsError):
            await codes.check_code(room, "ana", made.recovery_code or "", CALL)
        (await codes.check_code(room, "ana", done.recovery_code, CALL)).zero()
        assert done.recovery_code not in repr(done)
        assert rig.files() - {f"{caller.user_id}.db-wal", f"{caller.user_id}.db-shm"} == {
            f"{caller.user_id}.db"
        }
        await enter(room)

    rig.run(work)


def test_a_change_of_password_may_change_the_key(rig: Rig) -> None:
    """Asked for, it ends what a rotation ends, and answers with the new code."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await enter(room)
        token = await _mint(room, caller, *_WHOLE)
        code = await credentials.change_password(
            room, caller, PASSWORD, OTHER, CALL, rotate_key=True
        )
        assert code is not None
        assert (await member(room, made.id)).dek_id != made.dek_id
        assert not await _is_live(room, token)
        assert await _is_live(room, caller)
        await enter(room, password=OTHER)

    rig.run(work)


def test_recovery_brings_back_the_data_and_nothing_else(rig: Rig) -> None:
    """A new password, key and code; every session and token ended; the opening on record."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        caller = await enter(room)
        tokens = [await _mint(room, caller, *_WHOLE), await _mint(room, caller, "account")]
        await write_note(room, caller)
        code = made.recovery_code or ""
        again = await credentials.recover(room, "ANA", code.lower(), OTHER, CALL)
        assert again != code
        for each in (caller, *tokens):
            assert not await _is_live(room, each)
        caller = await enter(room, password=OTHER)
        assert await read_note(room, caller) == "kept"

        def ways(reader: OwnerReader) -> list[str]:
            return [row.way for row in list_access(reader, None, 2)]

        found = await access.with_own(room, caller, CALL, lambda store: store.read(ways))
        assert found == ["sign_in", "recovery"]
        with pytest.raises(InvalidCredentialsError):
            await credentials.recover(room, "ana", code, PASSWORD, CALL)
        await credentials.recover(room, "ana", again, PASSWORD, CALL)

    rig.run(work)


def test_of_two_recoveries_with_one_code_one_succeeds(rig: Rig) -> None:
    """The other is refused, and its password opens nothing."""

    async def work(room: Strongroom) -> None:
        code = (await add(room)).recovery_code or ""
        one, two = OTHER + " one", OTHER + " two"
        told = await asyncio.gather(
            credentials.recover(room, "ana", code, one, CALL),
            credentials.recover(room, "ana", code, two, CALL),
            return_exceptions=True,
        )
        assert [isinstance(each, str) for each in told].count(True) == 1
        assert await _opens(room, one) is isinstance(told[0], str)
        assert await _opens(room, two) is isinstance(told[1], str)

    rig.run(work)


def test_a_new_code_voids_the_old(rig: Rig) -> None:
    """At once, also for whoever has shown the old one already."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        old = made.recovery_code or ""
        caller = await enter(room)
        checked = await codes.check_code(room, "ana", old, CALL)
        new = await credentials.renew_recovery_code(room, caller, PASSWORD, CALL)
        held = await room.stores.registry.read(lambda r: passwords.holds(r, checked))
        assert not held
        checked.zero()
        with pytest.raises(InvalidCredentialsError):
            await credentials.recover(room, "ana", old, OTHER, CALL)
        await credentials.recover(room, "ana", new, OTHER, CALL)

    rig.run(work)


Change = Callable[[Strongroom, Caller], Awaitable[object]]

_CHANGES: dict[str, Change] = {
    "password": lambda room, who: credentials.change_password(room, who, PASSWORD, OTHER, CALL),
    "code": lambda room, who: credentials.renew_recovery_code(room, who, PASSWORD, CALL),
    "rotate": lambda room, who: credentials.rotate(room, who, PASSWORD, CALL),
    "confirm": lambda room, who: signin.confirm(room, who, PASSWORD, CALL),
    "unlock": lambda room, who: signin.unlock(room, who, CALL, password=PASSWORD),
    "token": lambda room, who: _mint(room, who, *_WHOLE),
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_nothing_is_made_for_a_key_that_is_being_changed(rig: Rig, change: Change) -> None:
    """It would be lost with that key; so the caller is told to try again."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await enter(room)
        slots = await _slots(room, caller)
        await begin_state(room, made.id, "rotating")
        with pytest.raises(StoreBusyError):
            await change(room, caller)
        assert await _slots(room, caller) == slots
        assert (await member(room, made.id)).database_password == made.database_password

    rig.run(work)


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_session_that_was_ended_changes_nothing(rig: Rig, change: Change) -> None:
    """Though its request began before; it is judged in the transaction that would act."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await enter(room)
        await enter(room)
        await room.stores.registry.write(
            lambda tx: sessions.revoke(tx, caller.user_id, "browser", caller.session_id), ACTOR
        )
        slots = await _slots(room, caller)
        with pytest.raises(InvalidCredentialsError):
            await change(room, caller)
        assert await _slots(room, caller) == slots
        assert (await member(room, made.id)).database_password == made.database_password

    rig.run(work)


@pytest.mark.parametrize("name", ["password", "code", "rotate"])
def test_a_token_changes_no_secret(rig: Rig, name: str) -> None:
    """Nor one that knows the password."""

    async def work(room: Strongroom) -> None:
        await add(room)
        token = await _mint(room, await enter(room), *_WHOLE)
        with pytest.raises(HumanSessionRequiredError):
            await _CHANGES[name](room, token)

    rig.run(work)


def test_a_wrong_password_changes_nothing_and_counts(rig: Rig) -> None:
    """Like one at sign-in, under the same throttle."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        for _ in range(ACCOUNT_FREE + 1):
            with pytest.raises(InvalidCredentialsError):
                await credentials.change_password(room, caller, OTHER, PASSWORD, CALL)
        with pytest.raises(TooManyAttemptsError):
            await credentials.rotate(room, caller, PASSWORD, CALL)

    rig.run(work)


def test_a_weak_password_is_refused_and_changes_nothing(rig: Rig) -> None:
    """Also where the code was right; it still is."""

    async def work(room: Strongroom) -> None:
        code = (await add(room)).recovery_code or ""
        caller = await enter(room)
        with pytest.raises(WeakPasswordError):
            await credentials.change_password(room, caller, PASSWORD, "short", CALL)
        with pytest.raises(WeakPasswordError):
            await credentials.recover(room, "ana", code, "short", CALL)
        await credentials.recover(room, "ana", code, OTHER, CALL)

    rig.run(work)


def test_a_plain_store_has_no_key_to_change(rig: Rig) -> None:
    """Rotation and code say so, and a change of password that asks for a new key as well."""

    async def work(room: Strongroom) -> None:
        await add(room, encrypted=False)
        caller = await enter(room)
        with pytest.raises(StoreNotEncryptedError):
            await credentials.rotate(room, caller, PASSWORD, CALL)
        with pytest.raises(StoreNotEncryptedError):
            await credentials.renew_recovery_code(room, caller, PASSWORD, CALL)
        with pytest.raises(StoreNotEncryptedError):
            await credentials.change_password(room, caller, PASSWORD, OTHER, CALL, rotate_key=True)
        assert await credentials.change_password(room, caller, PASSWORD, OTHER, CALL) is None

    rig.run(work)


def test_a_caller_whose_store_was_turned_plain_is_told(rig: Rig) -> None:
    """What the request knew of the store is judged again by what the password opened."""

    async def work(room: Strongroom) -> None:
        await add(room, encrypted=False)
        caller = await enter(room)
        stale = replace(caller, account=replace(caller.account, encrypted=True))
        for change in (credentials.rotate, credentials.renew_recovery_code):
            with pytest.raises(StoreNotEncryptedError):
                await change(room, stale, PASSWORD, CALL)

    rig.run(work)


_POINTS = [
    "rotate.planned",
    "rotate.taken",
    "rotate.begun",
    "rotate.amending",
    "rotate.copied",
    "rotate.recorded",
    "rotate.exchanged",
    "rotate.switched",
]
_UNDONE = 6
"""Points before the exchange: a failure there leaves everything as it was."""


@pytest.mark.parametrize("point", _POINTS)
def test_a_rotation_that_fails_is_done_or_undone(rig: Rig, point: str) -> None:
    """At once or by the janitor; one password opens the store, and the data is there."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await enter(room)
        await write_note(room, caller)
        with pytest.raises(StopHereError):
            await credentials.change_password(room, caller, PASSWORD, OTHER, CALL, rotate_key=True)
        await Janitor(room.settings, room.stores).round()
        row = await member(room, made.id)
        assert row.store_state == "open"
        assert row.pending_dek_id is None
        assert row.pending_file_salt is None
        is_done = _POINTS.index(point) >= _UNDONE
        assert (row.dek_id != made.dek_id) is is_done
        assert await _opens(room, PASSWORD) is not is_done
        assert await _opens(room, OTHER) is is_done
        assert not [name for name in rig.files() if ".new" in name]
        assert await room.stores.registry.read(steps.list_open) == []
        # The calling session stays, whichever way it ended.
        assert await read_note(room, await _refresh(room, caller)) == "kept"

    rig.run(work, stop_at(point))


def test_a_recovery_that_a_crash_finished_ends_everything(rig: Rig) -> None:
    """The janitor adopts the new key as the operation would have: no old session lives."""

    async def work(room: Strongroom) -> None:
        code = (await add(room)).recovery_code or ""
        caller = await enter(room)
        token = await _mint(room, caller, "account")
        with pytest.raises(StopHereError):
            await credentials.recover(room, "ana", code, OTHER, CALL)
        await Janitor(room.settings, room.stores).settle()
        assert not await _is_live(room, caller)
        assert not await _is_live(room, token)
        assert await _opens(room, OTHER)

    rig.run(work, stop_at("rotate.exchanged"))


def test_a_full_disk_undoes_a_rotation(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the caller's, and the store is in service."""

    def full(*_args: object) -> bytes:
        raise DiskFullError

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        with monkeypatch.context() as patch:
            patch.setattr(files, "copy_under_new_key", full)
            with pytest.raises(DiskFullError):
                await credentials.rotate(room, caller, PASSWORD, CALL)
        assert await read_note(room, await _refresh(room, caller)) == "kept"
        await credentials.rotate(room, await _refresh(room, caller), PASSWORD, CALL)

    rig.run(work)


def test_a_session_that_ends_under_a_rotation_leaves_no_slot(rig: Rig) -> None:
    """Its new slot is destroyed with it: nothing of an ended session opens the new key."""
    background: list[asyncio.Task[None]] = []

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        ended = room.stores.registry.write(
            lambda tx: sessions.revoke(tx, caller.user_id, "browser", caller.session_id), ACTOR
        )

        def reach(point: str) -> None:
            # The registry's writes go one by one, so this one comes before the adoption.
            if point == "rotate.recorded":
                background.append(asyncio.ensure_future(ended))

        exchanging = replace(room, reach=reach)
        done = await credentials.rotate(exchanging, caller, PASSWORD, CALL)
        await asyncio.gather(*background)
        assert {slot.kind for slot in await _slots(room, caller)} == {"recovery"}
        (await codes.check_code(room, "ana", done.recovery_code, CALL)).zero()

    rig.run(work)


def test_many_changes_at_once_leave_one_password(rig: Rig) -> None:
    """Two processes, every kind of change: what was answered is what holds."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        async with rig.open() as other:
            phrases = [f"{OTHER} number {n}" for n in range(4)]
            told = await asyncio.gather(
                credentials.change_password(room, caller, PASSWORD, phrases[0], CALL),
                credentials.change_password(other, caller, PASSWORD, phrases[1], CALL),
                credentials.change_password(
                    room, caller, PASSWORD, phrases[2], CALL, rotate_key=True
                ),
                credentials.change_password(
                    other, caller, PASSWORD, phrases[3], CALL, rotate_key=True
                ),
                credentials.renew_recovery_code(other, caller, PASSWORD, CALL),
                return_exceptions=True,
            )
            failures = [each for each in told if isinstance(each, BaseException)]
            assert all(isinstance(each, (StoreError, InvalidCredentialsError)) for each in failures)
            right = [phrase for phrase in (PASSWORD, *phrases) if await _opens(room, phrase)]
            assert len(right) == 1
            answered = [n for n in range(4) if not isinstance(told[n], BaseException)]
            assert right == ([phrases[answered[-1]]] if answered else [PASSWORD])
            assert len(answered) <= 1
            assert await read_note(room, await _refresh(room, caller)) == "kept"

    rig.run(work)


def test_a_cancelled_request_does_not_cut_a_rotation(rig: Rig) -> None:
    """It ends by itself, with the key it needs still in memory, and the store is whole."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await enter(room)
        await write_note(room, caller)

        def reach(point: str) -> None:
            if point == "rotate.begun":
                waiting.cancel()

        cancelling = replace(room, reach=reach)
        waiting = asyncio.create_task(credentials.rotate(cancelling, caller, PASSWORD, CALL))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await member(room, made.id)).store_state == "rotating"
        await room.operations.settle()
        row = await member(room, made.id)
        assert row.store_state == "open"
        assert row.dek_id != made.dek_id
        assert await read_note(room, await _refresh(room, caller)) == "kept"

    rig.run(work)


def test_keys_are_wiped_when_an_operation_is_over(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it succeeded or failed: nothing that was taken out of a wrap is left."""
    taken: list[Checked] = []
    made: list[Key] = []
    check, generate = passwords.check, Key.generate

    async def note(*args: object) -> Checked:
        checked = await check(*args)  # type: ignore[arg-type]  # passed on as they came
        taken.append(checked)
        return checked

    def note_new() -> Key:
        made.append(generate())
        return made[-1]

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        monkeypatch.setattr(passwords, "check", note)
        monkeypatch.setattr(Key, "generate", note_new)
        for change in _CHANGES.values():
            if change is not _CHANGES["password"]:
                await change(room, await _refresh(room, caller))
        broken = replace(room, reach=stop_at("rotate.copied"))
        with pytest.raises(StopHereError):
            await credentials.rotate(broken, await _refresh(room, caller), PASSWORD, CALL)
        await _CHANGES["password"](room, await _refresh(room, caller))
        await add(room, "ben")
        await enter(room, "ben")

    rig.run(work)
    assert taken
    assert all(each.dek is not None and each.dek.is_zeroed for each in taken)
    assert all(key.is_zeroed for key in made)


def test_deactivation_and_recovery_at_once_leave_an_inactive_member(rig: Rig) -> None:
    """Whichever comes first, nobody gets in, and the store is in service for later."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        caller = await enter(room)
        await asyncio.gather(
            members.deactivate(room, made.account.id, ACTOR),
            credentials.recover(room, "ana", made.recovery_code or "", OTHER, CALL),
            return_exceptions=True,
        )
        with contextlib.suppress(StoreBusyError):
            await members.deactivate(room, made.account.id, ACTOR)
        assert not await _is_live(room, caller)
        for password in (PASSWORD, OTHER):
            assert not await _opens(room, password)
        assert (await member(room, made.account.id)).store_state == "open"

    rig.run(work)


def test_nothing_pending_is_nothing_to_adopt(rig: Rig) -> None:
    """An adoption without a prepared key is refused, and changes nothing."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        await begin_state(room, made.id, "rotating")

        def adopt(tx: RegistryTransactor) -> None:
            rotation.adopt(tx, made.id, Run("no record"))

        with pytest.raises(StoreBusyError):
            await room.stores.registry.write(adopt, ACTOR)
        row = await room.stores.registry.one(sql.FIND_ACCOUNT, user_id=made.id)
        assert row is not None
        assert row.dek_id == made.dek_id

    rig.run(work)
