"""Whatever an administrator or operator can do to a member reaches the member's own copy, once."""

import json
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from app.bridge import access, commands
from app.bridge.accounts import acts, api_tokens, members
from app.bridge.accounts.api_tokens import NewToken
from app.bridge.accounts.signup import NewMember
from app.bridge.arguments import find_user
from app.bridge.callers import Call, Caller
from app.bridge.content import shared_folders as folders
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.registry.store import RegistryTransactor
from app.ids import RoleId
from app.owner import acts as own
from app.owner.acts import Act
from app.registry import accounts, shared_folders, supervision
from app.runtime import audit
from app.runtime.audit import ChangeFilter
from app.web.callers import UNSAFE
from app.web.rules import RULES
from tests.support.rig import Rig, StopHereError, add, enter
from tests.support.rooms import CALL, PASSWORD

Deed = Callable[[Strongroom, Caller], Awaitable[None]]
PLAIN: Final = "pia"
ENCRYPTED: Final = "ana"
MADE: Final = ("cyd", "dee")
"""Members whom an administrator and the operator make."""


async def _set(room: Strongroom, boss: Caller, name: str, **changes: object) -> None:
    member = await _id_of(room, name)
    await members.patch_member(room, boss, member, changes, Call("PATCH", CALL.network))


async def _id_of(room: Strongroom, name: str) -> str:
    return (await find_user(room, name)).id


async def _edge(room: Strongroom, boss: Caller, *, is_there: bool) -> None:
    change = supervision.add if is_there else supervision.remove
    subject = await _id_of(room, ENCRYPTED)

    def write(tx: RegistryTransactor) -> None:
        change(tx, subject, boss.user_id)

    await room.stores.registry.write(write, boss.actor(CALL))


async def _patch(room: Strongroom, boss: Caller) -> None:
    await _set(room, boss, ENCRYPTED, notes="a note", role_id="guest")
    await _set(room, boss, ENCRYPTED, active=False)
    await _set(room, boss, ENCRYPTED, active=True)
    await _set(room, boss, PLAIN, password=PASSWORD)


async def _connect(room: Strongroom, boss: Caller) -> None:
    await _edge(room, boss, is_there=True)


async def _part(room: Strongroom, boss: Caller) -> None:
    await _edge(room, boss, is_there=True)
    await _edge(room, boss, is_there=False)


async def _folder_of(room: Strongroom) -> str:
    [folder] = await room.stores.registry.read(lambda r: shared_folders.list_page(r, "", 2))
    return folder.id


async def _let_in(room: Strongroom, boss: Caller) -> None:
    folder, member = await _folder_of(room), await _id_of(room, ENCRYPTED)
    await folders.set_member(room, boss, CALL, folder, member, can_write=False)


async def _take_out(room: Strongroom, boss: Caller) -> None:
    folder, member = await _folder_of(room), await _id_of(room, ENCRYPTED)
    await folders.remove_member(room, boss, CALL, folder, member)


async def _deactivate(room: Strongroom, boss: Caller) -> None:
    await commands.perform(room, "user.deactivate", {"user": ENCRYPTED})
    await _set(room, boss, ENCRYPTED, active=True)


async def _make(room: Strongroom, boss: Caller) -> None:
    new = NewMember(MADE[0], PASSWORD, RoleId("member"), encrypted=True, is_temporary=True)
    await members.add_member(room, boss, new, CALL)


async def _make_by_command(room: Strongroom, _boss: Caller) -> None:
    await commands.perform(room, "user.add", {"username": MADE[1], "password": PASSWORD})


DEEDS: Final[dict[str, Deed]] = {
    "POST /api/admin/users": _make,
    "PATCH /api/admin/users/{user_id}": _patch,
    "PUT /api/admin/supervision/{subject}/{supervisor}": _connect,
    "DELETE /api/admin/supervision/{subject}/{supervisor}": _part,
    "PUT /api/admin/shared-folders/{folder_id}/members/{user_id}": _let_in,
    "DELETE /api/admin/shared-folders/{folder_id}/members/{user_id}": _take_out,
    "user.add": _make_by_command,
    "user.deactivate": _deactivate,
}
"""What is done to a member's account, by its call or command."""
NOT_THEIRS: Final[dict[str, str]] = {
    "DELETE /api/admin/users/{user_id}": "nobody is left to be told",
    "POST /api/admin/invitations": "nobody is a member by it yet",
    "DELETE /api/admin/invitations/{invitation_id}": "as above",
    "POST /api/admin/approval-rules": "a rule is of whoever has the agent",
    "PATCH /api/admin/approval-rules/{rule_id}": "as above",
    "DELETE /api/admin/approval-rules/{rule_id}": "as above",
    "POST /api/admin/shared-folders": "nobody is in it yet",
    "PATCH /api/admin/shared-folders/{folder_id}": "the group's; who is in it stays",
    "DELETE /api/admin/shared-folders/{folder_id}": "the group's; who was in it is told of that",
    "user.erase": "nobody is left to be told",
    "user.list": "a look",
    "lock": "nothing ends; the next opening stands among the openings",
    "audit.trim": "the copy is what outlives it",
    "memory.export": "the member's own act, by their password",
    "memory.import": "as above",
    "migrate.begin": "a file's form, not its account",
    "migrate.next": "as above",
}
"""What is done to no account that is there."""
OF_NO_ACCOUNT: Final = ("jobs", "deliveries", "breakers", "schedules", "flags", "operations")
"""Nouns of what runs beside accounts: on record as the operator's acts, where it was done."""


def _noun(name: str) -> str:
    return name.split("/")[3] if "/" in name else name.partition(".")[0]


def test_every_call_and_command_is_one_or_the_other() -> None:
    """A new one must say here whether a member is to be told of it."""
    calls = {call for call, rule in RULES.items() if rule.capability and call.split()[0] in UNSAFE}
    every = calls | set(commands.COMMANDS)
    beside = {name for name in every if _noun(name) in OF_NO_ACCOUNT}
    assert sorted([*DEEDS, *NOT_THEIRS, *beside]) == sorted(every)


async def _prepare(room: Strongroom) -> Caller:
    """Somebody who administers, and members with several ways in; all stores locked."""
    await add(room, "boss", "admin")
    for name in (ENCRYPTED, PLAIN):
        await add(room, name, encrypted=name == ENCRYPTED)
        caller = await enter(room, name)
        await enter(room, name)
        await api_tokens.mint(
            room,
            caller,
            NewToken("t", ("memory:read",), None, is_agent=False, expires_at=None),
            CALL,
        )
        await room.stores.lock(caller.user_id)
    boss = await enter(room, "boss")
    await folders.add(room, boss, CALL, "team", "")
    return boss


async def _marks(room: Strongroom, boss: Caller) -> list[str]:
    """Of each change in the registry that an administrator or operator made, its record."""
    seen = []
    for actor in (boss.user_id, "cli"):
        which = ChangeFilter(actor=actor)
        rows = await room.stores.registry.read(
            lambda reader, which=which: audit.list_changes(reader, which, None, 1000)  # type: ignore[misc] # bound now
        )
        seen += [f"{row.seq} {row.entity} {row.record_id} {row.kind}" for row in rows]
    return sorted(seen)


async def _is_there(room: Strongroom, name: str) -> bool:
    return await room.stores.registry.read(
        lambda reader: accounts.find_by_name(reader, name) is not None
    )


async def _copied(room: Strongroom, name: str) -> list[Act]:
    caller = await enter(room, name)
    return await acts.read_own(room, caller, CALL, lambda reader: own.list_acts(reader, None, 1000))


def test_each_change_reaches_whom_it_concerns_once(rig: Rig) -> None:
    """Account, sessions, tokens, keys, supervision: no change more, none less, none twice."""

    async def work(room: Strongroom) -> None:
        boss = await _prepare(room)
        before = set(await _marks(room, boss))
        done: set[str] = set()
        for name, deed in DEEDS.items():
            await deed(room, boss)
            done = set(await _marks(room, boss)) - before
            told = [
                f"{act.entity} {act.record_id} {act.kind}"
                for member in (*MADE, ENCRYPTED, PLAIN)
                if await _is_there(room, member)
                for act in await _copied(room, member)
            ]
            assert sorted(told) == sorted(mark.split(" ", 1)[1] for mark in done), name
        told_of = {"user", "session", "key_slot", "supervision", "shared_folder_member"}
        assert {mark.split()[1] for mark in done} == told_of

    rig.run(work)


def test_every_way_in_that_ends_is_told_by_name(rig: Rig) -> None:
    """Two sessions and a token, each with its key, however long the member was away."""

    async def work(room: Strongroom) -> None:
        boss = await _prepare(room)
        await _set(room, boss, ENCRYPTED, active=False)
        await _set(room, boss, ENCRYPTED, active=True)
        year_ms = 2 * 365 * 86_400_000
        rig.clock.advance(year_ms)
        before = Millis(rig.clock.now_ms)
        await room.stores.registry.write(
            lambda tx: audit.expire_fields(tx, before, 10_000), boss.actor(CALL)
        )
        found = await _copied(room, ENCRYPTED)
        kinds = [(act.entity, act.kind) for act in found]
        assert kinds.count(("session", "update")) == kinds.count(("key_slot", "delete")) == 3
        assert len({act.record_id for act in found if act.entity != "user"}) == 6
        assert all(json.loads(act.fields or "{}") == {} for act in found)

    rig.run(work)


def test_a_copy_that_was_cut_off_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was copied is not copied again, and what was not is not lost."""
    monkeypatch.setattr(acts, "_BATCH", 2)
    read = acts._next

    async def work(room: Strongroom) -> None:
        boss = await _prepare(room)
        await _set(room, boss, ENCRYPTED, active=False)
        await _set(room, boss, ENCRYPTED, active=True)
        caller = await enter(room, ENCRYPTED)
        store = await access.open_own(room, caller, CALL)
        await _set(room, boss, ENCRYPTED, notes="one")
        await _set(room, boss, ENCRYPTED, notes="two2")
        await _set(room, boss, ENCRYPTED, notes="three")
        turns: list[int] = []

        async def cut(*args: object) -> object:
            turns.append(1)
            if len(turns) == 2:
                raise StopHereError
            return await read(*args)  # type: ignore[arg-type] # as it came

        monkeypatch.setattr(acts, "_next", cut)
        with pytest.raises(StopHereError):
            await acts.copy(room.stores.registry, caller.user_id, store)
        assert await acts.copy(room.stores.registry, caller.user_id, store) == 1
        found = await _copied(room, ENCRYPTED)
        sizes = [json.loads(act.fields or "{}").get("notes", [0, 0])[1] for act in found]
        assert sizes[:3] == [5, 4, 3]
        assert len(found) == 2 + 6 + 3

    rig.run(work)
