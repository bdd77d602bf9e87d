"""What administrators do to members, and what members end themselves."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from app.bridge import access
from app.bridge.accounts import api_tokens, erasure, members, passwords, revocation, signin
from app.bridge.accounts.api_tokens import SCOPES, NewToken
from app.bridge.accounts.signup import NewMember
from app.bridge.callers import Caller
from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db import files
from app.db.registry.store import RegistryTransactor
from app.errors.callers import (
    HumanSessionRequiredError,
    InvalidCredentialsError,
    NotFoundError,
    NotPermittedError,
    TooManyAttemptsError,
)
from app.errors.conflicts import KeyNotHeldError, LastAdministratorError, VersionConflictError
from app.errors.inputs import InvalidInputError, WeakPasswordError
from app.errors.stores import DiskFullError, StoreBusyError, StoreLockedError
from app.ids import DekId, RoleId
from app.registry import accounts, sessions
from app.registry.throttle import ACCOUNT_FREE
from tests.support.registry import give_capability
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

_DAY_MS = 86_400_000


async def _boss(room: Strongroom) -> Caller:
    await add(room, "boss", "admin")
    return await enter(room, "boss")


async def _manager(room: Strongroom) -> Caller:
    """One who manages users and is no administrator."""

    def write(tx: RegistryTransactor) -> None:
        for capability in ("users.read", "users.manage"):
            give_capability(tx, "guest", capability)

    await room.stores.registry.write(write, ACTOR)
    await add(room, "manager", "guest")
    return await enter(room, "manager")


def _token(*scopes: str, expires_at: int | None = None) -> NewToken:
    ends_at = None if expires_at is None else Millis(expires_at)
    return NewToken("label", scopes, "agent", is_agent=True, expires_at=ends_at)


async def _mint(room: Strongroom, caller: Caller, *scopes: str) -> Caller:
    token, _ = await api_tokens.mint(room, caller, _token(*scopes), CALL)
    return await access.authenticate(room, token)


async def _is_live(room: Strongroom, caller: Caller) -> bool:
    try:
        await access.authenticate(room, caller.token)
    except InvalidCredentialsError:
        return False
    return True


def test_deactivation_is_now(rig: Rig) -> None:
    """Sessions, tokens and slots end, and the store is closed, before it returns."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        made = (await add(room)).account
        caller = await enter(room)
        token = await _mint(room, caller, "memory:read")
        row = await members.patch_member(room, boss, made.id, {"active": False}, CALL)
        assert not row.active
        assert row.store_state == "open"
        assert made.id not in room.stores.unlocked()
        for each in (caller, token):
            assert not await _is_live(room, each)
        slots = await room.stores.registry.read(lambda r: sessions.list_slots(r, made.id))
        assert {slot.kind for slot in slots} == {"recovery"}
        # Once more is no error; active again, the member signs in anew.
        await members.patch_member(room, boss, made.id, {"active": False}, CALL)
        await members.patch_member(room, boss, made.id, {"active": True}, CALL)
        assert not await _is_live(room, caller)
        await enter(room)

    rig.run(work)


def test_a_store_that_is_held_leaves_its_member_active(rig: Rig) -> None:
    """Deactivation that cannot take effect now changes nothing."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        made = (await add(room)).account
        caller = await enter(room)
        await write_note(room, caller)
        async with rig.open() as other:
            await read_note(other, caller)
            with pytest.raises(StoreBusyError):
                await members.patch_member(room, boss, made.id, {"active": False}, CALL)
        assert (await member(room, made.id)).active
        assert await read_note(room, caller) == "kept"

    rig.run(work)


def test_a_role_is_read_at_the_next_request(rig: Rig) -> None:
    """A session made before has the new one."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        made = (await add(room)).account
        caller = await enter(room)
        with pytest.raises(NotPermittedError):
            await access.require_capability(room, caller, "users.manage")
        await members.patch_member(room, boss, made.id, {"role_id": "admin"}, CALL)
        caller = await access.authenticate(room, caller.token)
        await access.require_capability(room, caller, "users.manage")

    rig.run(work)


def test_nobody_gives_an_encrypted_member_a_password(rig: Rig) -> None:
    """Nobody but the member holds the key; the answer says so."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        made = (await add(room)).account
        with pytest.raises(KeyNotHeldError):
            await members.patch_member(room, boss, made.id, {"password": OTHER}, CALL)
        await enter(room)

    rig.run(work)


def test_a_cleartext_member_is_given_a_temporary_password(rig: Rig) -> None:
    """Their sessions end, and their first change of it ends whatever was made under it."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        made = (await add(room, encrypted=False)).account
        caller = await enter(room)
        with pytest.raises(WeakPasswordError):
            await members.patch_member(room, boss, made.id, {"password": "short"}, CALL)
        changes = {"password": OTHER, "display_name": "Ana"}
        row = await members.patch_member(room, boss, made.id, changes, CALL)
        assert row.password_is_temporary
        assert row.display_name == "Ana"
        assert not await _is_live(room, caller)
        await enter(room, password=OTHER)

    rig.run(work)


def test_a_password_that_changed_meanwhile_is_not_replaced(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The administrator is told, and neither password nor sessions change."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        made = (await add(room, encrypted=False)).account
        caller = await enter(room)
        hash_password = passwords.hash_password

        async def hash_late(room: Strongroom, password: str, network: str) -> bytes:
            monkeypatch.undo()
            await members.patch_member(room, boss, made.id, {"password": PASSWORD}, CALL)
            return await hash_password(room, password, network)

        monkeypatch.setattr(passwords, "hash_password", hash_late)
        with pytest.raises(VersionConflictError):
            await members.patch_member(room, boss, made.id, {"password": OTHER}, CALL)
        assert not await _is_live(room, caller)
        await enter(room)

    rig.run(work)


def test_one_who_manages_users_touches_no_administrator(rig: Rig) -> None:
    """Neither changes nor erases one, nor makes one of a member."""

    async def work(room: Strongroom) -> None:
        boss, manager = await _boss(room), await _manager(room)
        made = (await add(room)).account
        for user_id, changes in ((boss.user_id, {"notes": "x"}), (made.id, {"role_id": "admin"})):
            with pytest.raises(NotPermittedError):
                await members.patch_member(room, manager, user_id, changes, CALL)
        with pytest.raises(NotPermittedError):
            await members.erase_member(room, manager, boss.user_id, CALL)
        assert (await member(room, boss.user_id)).store_state == "open"
        await members.patch_member(room, manager, made.id, {"notes": "x"}, CALL)
        new = NewMember("ben", PASSWORD, RoleId("member"), is_temporary=True)
        await members.add_member(room, manager, new, CALL)
        receipt = await members.erase_member(room, manager, made.id, CALL)
        assert receipt.user_id == made.id

    rig.run(work)


Removal = Callable[[Strongroom, Caller, str], Awaitable[object]]
_REMOVALS: dict[str, Removal] = {
    "role": lambda room, by, who: members.patch_member(room, by, who, {"role_id": "member"}, CALL),
    "active": lambda room, by, who: members.patch_member(room, by, who, {"active": False}, CALL),
    "erase": lambda room, by, who: members.erase_member(room, by, who, CALL),
    "command": lambda room, _by, who: members.deactivate(room, who, ACTOR),
}


@pytest.mark.parametrize("removal", _REMOVALS.values(), ids=_REMOVALS)
def test_the_last_administrator_cannot_be_removed(rig: Rig, removal: Removal) -> None:
    """By whatever way; two who remove each other at once leave one."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        with pytest.raises(LastAdministratorError):
            await removal(room, boss, boss.user_id)
        assert (await member(room, boss.user_id)).store_state == "open"
        other = (await add(room, "other", "admin")).account
        second = await enter(room, "other")
        await asyncio.gather(
            removal(room, boss, other.id),
            removal(room, second, boss.user_id),
            return_exceptions=True,
        )
        rows = await room.stores.registry.read(lambda reader: accounts.list_page(reader, "", 9))
        assert [row.role_id == "admin" and bool(row.active) for row in rows].count(True) == 1

    rig.run(work)


def test_an_erased_member_is_gone(rig: Rig) -> None:
    """File, row, sessions and failures; the name is free for somebody who inherits nothing."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        caller = await enter(room)
        await write_note(room, caller)
        for _ in range(ACCOUNT_FREE + 1):
            with pytest.raises(InvalidCredentialsError):
                await signin.sign_in(room, "ana", OTHER, CALL)
        receipt = await erasure.erase(room, made.id, CALL, ACTOR)
        assert receipt.file_bytes > 0
        assert receipt.erased_at == room.clock()
        assert rig.files() == set()
        assert not await _is_live(room, caller)
        with pytest.raises(NotFoundError):
            await erasure.erase(room, made.id, CALL, ACTOR)
        with pytest.raises(InvalidCredentialsError):
            await signin.sign_in(room, "ana", PASSWORD, CALL)
        again = (await add(room)).account
        assert again.id != made.id
        assert again.lock_number != made.lock_number
        assert not await _is_live(room, caller)

    rig.run(work)


@pytest.mark.parametrize("point", ["erase.taken", "erase.begun", "erase.file_removed"])
def test_an_erasure_that_fails_is_finished_or_never_was(rig: Rig, point: str) -> None:
    """Before it is on record the member is as before; after it the janitor finishes it."""

    async def work(room: Strongroom) -> None:
        await add(room, "ben", "admin")
        made = (await add(room)).account
        caller = await enter(room)
        await write_note(room, caller)
        with pytest.raises(StopHereError):
            await erasure.erase(room, made.id, CALL, ACTOR)
        if point == "erase.taken":
            assert await read_note(room, await access.authenticate(room, caller.token)) == "kept"
            return
        assert not await _is_live(room, caller)
        await Janitor(room.settings, room.stores).settle()
        with pytest.raises(NotFoundError):
            await member(room, made.id)
        assert not [name for name in rig.files() if name.startswith(made.id)]
        await add(room)

    rig.run(work, stop_at(point))


def test_a_file_that_cannot_be_removed_is_removed_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile nobody gets in; one such member stops no other repair."""
    remove_all = files.remove_all

    def stuck(*_args: object) -> None:
        raise DiskFullError

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        await add(room, "ben")
        monkeypatch.setattr(files, "remove_all", stuck)
        with pytest.raises(DiskFullError):
            await erasure.erase(room, made.id, CALL, ACTOR)
        ben = await enter(room, "ben")
        await room.stores.lock(ben.user_id)
        await begin_state(room, ben.user_id, "closing")
        janitor = Janitor(room.settings, room.stores)
        for _ in range(2):
            await janitor.settle()
        assert (await member(room, ben.user_id)).store_state == "open"
        with pytest.raises(InvalidCredentialsError):
            await signin.sign_in(room, "ana", PASSWORD, CALL)
        monkeypatch.setattr(files, "remove_all", remove_all)
        await janitor.settle()
        assert not [name for name in rig.files() if name.startswith(made.id)]

    rig.run(work)


Ending = Callable[[Strongroom, Caller, Caller], Awaitable[None]]
_ENDINGS: dict[str, Ending] = {
    "sign out": lambda room, caller, _: revocation.sign_out(room, caller, CALL),
    "session": lambda room, caller, other: revocation.revoke(
        room, other, "browser", caller.session_id, CALL
    ),
    "slot": lambda room, caller, other: revocation.remove_slot(
        room, other, caller.slot_id or "", CALL
    ),
}


@pytest.mark.parametrize("ending", _ENDINGS.values(), ids=_ENDINGS)
def test_the_last_way_in_locks_the_store(rig: Rig, ending: Ending) -> None:
    """Everywhere, key and all; while another way in lives, it stays open."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        one, two = await enter(room), await enter(room)
        await ending(room, one, two)
        assert not await _is_live(room, one)
        unlocked = room.stores.unlocked()[made.id]
        assert unlocked.key is not None
        await ending(room, two, two)
        assert not await _is_live(room, two)
        assert made.id not in room.stores.unlocked()
        assert unlocked.key.is_zeroed
        assert (await member(room, made.id)).store_state == "open"

    rig.run(work)


def test_ending_the_others_keeps_the_caller(rig: Rig) -> None:
    """One's own other sessions, not tokens, and nobody else's."""

    async def work(room: Strongroom) -> None:
        await add(room)
        await add(room, "ben")
        caller, other, ben = await enter(room), await enter(room), await enter(room, "ben")
        token = await _mint(room, caller, "memory:read")
        await revocation.revoke_others(room, caller, CALL)
        assert not await _is_live(room, other)
        for each in (caller, token, ben):
            assert await _is_live(room, each)
        for absent in (ben.session_id, "nothing"):
            with pytest.raises(NotFoundError):
                await revocation.revoke(room, caller, "browser", absent, CALL)
        with pytest.raises(NotFoundError):
            await revocation.remove_slot(room, caller, ben.slot_id or "", CALL)

    rig.run(work)


def test_a_store_that_is_not_let_go_does_not_keep_a_session(rig: Rig) -> None:
    """Signing out answers all the same: what opened the store is gone."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        async with rig.open() as other:
            await read_note(other, caller)
            await revocation.sign_out(room, caller, CALL)
            assert not await _is_live(other, caller)
            with pytest.raises(StoreBusyError):
                await members.lock_member(room, caller.user_id, ACTOR)

    rig.run(work)


def test_a_plain_store_has_no_way_in_to_lose(rig: Rig) -> None:
    """Signing out of it ends the session and locks nothing."""

    async def work(room: Strongroom) -> None:
        made = (await add(room, encrypted=False)).account
        await revocation.sign_out(room, await enter(room), CALL)
        assert (await member(room, made.id)).store_generation == made.store_generation

    rig.run(work)


def test_a_locked_store_opens_for_the_next_valid_credential(rig: Rig) -> None:
    """Locking ends no session."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        await members.lock_member(room, caller.user_id, ACTOR)
        assert caller.user_id not in room.stores.unlocked()
        assert await read_note(room, caller) == "kept"
        with pytest.raises(NotFoundError):
            await members.lock_member(room, "nobody", ACTOR)

    rig.run(work)


def test_a_token_is_narrower_than_its_maker(rig: Rig) -> None:
    """Its scopes alone, its agent's name on what it writes, its slot its own."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        token = await _mint(room, caller, "memory:read", "memory:read")
        assert token.scopes == {"memory:read"}
        assert token.has_scope("memory:read")
        assert not token.has_scope("memory:write")
        assert token.author == f"{caller.user_id}/agent"
        assert token.actor(CALL).acting_for == caller.user_id
        assert await read_note(room, token) == "kept"
        assert token.slot_id != caller.slot_id
        account = await _mint(room, caller, "account")
        with pytest.raises(StoreLockedError):
            await read_note(room, account)

    rig.run(work)


def test_a_token_lives_as_long_as_it_says(rig: Rig) -> None:
    """Ninety days unless said, a year at most, and its slot ends with it."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        now = room.clock()
        _, row = await api_tokens.mint(room, caller, _token("memory:read"), CALL)
        assert row.ends_at == now + 90 * _DAY_MS
        _, row = await api_tokens.mint(
            room, caller, _token("memory:read", expires_at=now + 365 * _DAY_MS), CALL
        )
        for ends_at in (now, now - 1, now + 365 * _DAY_MS + 1):
            with pytest.raises(InvalidInputError):
                await api_tokens.mint(room, caller, _token("account", expires_at=ends_at), CALL)
        rig.clock.now_ms = row.ends_at
        slots = await room.stores.registry.read(lambda r: sessions.list_slots(r, caller.user_id))
        assert len(slots) == 4
        await Janitor(room.settings, room.stores).compare()
        slots = await room.stores.registry.read(lambda r: sessions.list_slots(r, caller.user_id))
        assert {slot.kind for slot in slots} == {"recovery"}

    rig.run(work)


@pytest.mark.parametrize("scopes", [(), ("everything",), ("*",), ("memory:read", "")])
def test_a_token_has_known_scopes(rig: Rig, scopes: tuple[str, ...]) -> None:
    """At least one, and never all of a person's."""

    async def work(room: Strongroom) -> None:
        await add(room)
        with pytest.raises(InvalidInputError):
            await api_tokens.mint(room, await enter(room), _token(*scopes), CALL)

    rig.run(work)


def test_only_who_administers_makes_an_administrating_token(rig: Rig) -> None:
    """As of the transaction that makes it; and only a person makes tokens at all."""

    async def work(room: Strongroom) -> None:
        await add(room)
        boss, manager, ana = await _boss(room), await _manager(room), await enter(room)
        for caller in (boss, manager):
            assert (await _mint(room, caller, "admin")).scopes == {"admin"}
        with pytest.raises(NotPermittedError):
            await _mint(room, ana, *SCOPES)
        with pytest.raises(HumanSessionRequiredError):
            await _mint(room, await _mint(room, boss, "account"), "account")

    rig.run(work)


def test_a_token_needs_the_way_in_that_its_maker_has(rig: Rig) -> None:
    """Without a slot, or with one of a key that was changed, none is made for the store."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        locked = replace(caller, wrapped_dek=None)
        with pytest.raises(StoreLockedError):
            await _mint(room, locked, "memory:read")
        await _mint(room, locked, "account")
        nameless = replace(caller, account=replace(caller.account, dek_id=None))
        with pytest.raises(StoreLockedError):
            await _mint(room, nameless, "memory:read")
        stale = replace(caller, account=replace(caller.account, dek_id=DekId("old")))
        with pytest.raises(InvalidCredentialsError):
            await _mint(room, stale, "memory:read")

    rig.run(work)


def test_failures_of_a_free_name_count_like_a_members(rig: Rig) -> None:
    """Failures of a free name count before it is anybody's, like those of a member."""

    async def work(room: Strongroom) -> None:
        for _ in range(ACCOUNT_FREE + 1):
            with pytest.raises(InvalidCredentialsError):
                await signin.sign_in(room, "ana", PASSWORD, CALL)
        await add(room)
        with pytest.raises(TooManyAttemptsError):
            await signin.sign_in(room, "ana", PASSWORD, CALL)

    rig.run(work)


@pytest.mark.parametrize(
    ("loss", "error"),
    [
        pytest.param({"active": False}, InvalidCredentialsError, id="deactivated"),
        pytest.param({"role_id": "member"}, NotPermittedError, id="demoted"),
    ],
)
def test_who_lost_the_right_while_a_password_was_derived_does_nothing(
    rig: Rig, loss: dict[str, object], error: type[Exception]
) -> None:
    """The transaction that decides judges them again, and leaves no file."""

    async def work(room: Strongroom) -> None:
        boss = await _boss(room)
        await add(room, "other", "admin")
        plain = (await add(room, "plain", encrypted=False)).account
        await members.patch_member(room, await enter(room, "other"), boss.user_id, loss, CALL)
        before = rig.files()
        new = NewMember("late", PASSWORD, RoleId("member"), None, encrypted=True)
        with pytest.raises(error):
            await members.add_member(room, boss, new, CALL)
        with pytest.raises(error):
            await members.patch_member(room, boss, plain.id, {"password": OTHER}, CALL)
        assert rig.files() == before
        assert (await member(room, plain.id)).password_hash == plain.password_hash

    rig.run(work)
