"""The bridge on a root of its own, at a time that the test moves; no HTTP, no processes."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from app.bridge import access, start
from app.bridge.accounts import signin
from app.bridge.accounts.signup import NewMember, SignedUp, sign_up
from app.bridge.callers import Call, Caller
from app.bridge.content import notes
from app.bridge.strongroom import Reach, Strongroom, account_of, reach_nothing
from app.db.context import system_actor
from app.db.owner.store import OwnerStore
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.ids import RoleId, UserId
from app.owner import notes as owner_notes
from app.owner.notes import Condition
from app.owner.paths import USER_MEMORY, PathRef
from app.registry import accounts
from app.settings import Settings
from tests.support.rooms import CALL, CHEAP, PASSWORD
from tests.support.stores import MovedClock

T = TypeVar("T")
ACTOR: Final = system_actor("test")
BORN: Final = 2
"""Events with which the log of a new store begins, for the notes that it is made with."""
OTHER: Final = "another fine password"
ELSEWHERE: Final = Call("test", "198.51.100.0/24")
_NOTE: Final = PathRef(USER_MEMORY, "kept.md")


class Rig:
    """A prepared root and its clock; each `open` is one process of the service."""

    def __init__(self, root: Path, template: Path, **chosen: float) -> None:
        shutil.copytree(template, root)
        self.settings = Settings.model_validate({"root": root, **chosen})
        self.clock = MovedClock()

    @contextlib.asynccontextmanager
    async def open(self, reach: Reach = reach_nothing) -> AsyncIterator[Strongroom]:
        """One process's service."""
        async with start.running(self.settings, self.clock, kdf_params=CHEAP, reach=reach) as room:
            yield room

    def run(self, work: Callable[[Strongroom], Awaitable[T]], reach: Reach = reach_nothing) -> T:
        """Do something in one process, to its end."""

        async def main() -> T:
            async with self.open(reach) as room:
                return await work(room)

        return asyncio.run(main())

    def files(self) -> set[str]:
        """Names of what stands in `database/` beside the system's own."""
        own = {"system.db", "system.db-wal", "system.db-shm", ".stores.lock", "setup.token"}
        return {path.name for path in self.settings.database.iterdir()} - own

    def files_with(self, *secrets: bytes) -> set[str]:
        """Names of files in `database/` in whose bytes one of these stands; logs among them."""
        found = {path: path.read_bytes() for path in self.settings.database.iterdir()}
        return {path.name for path, raw in found.items() if any(each in raw for each in secrets)}


async def add(
    room: Strongroom,
    username: str = "ana",
    role_id: str = "member",
    *,
    encrypted: bool = True,
    is_temporary: bool = False,
) -> SignedUp:
    """Make a member with the PASSWORD."""
    new = NewMember(
        username, PASSWORD, RoleId(role_id), encrypted=encrypted, is_temporary=is_temporary
    )
    return await sign_up(room, new, CALL, ACTOR, lambda _tx: None)


async def enter(room: Strongroom, username: str = "ana", password: str = PASSWORD) -> Caller:
    """Sign in; the caller that the session makes."""
    made = await signin.sign_in(room, username, password, CALL)
    return await access.authenticate(room, made.token)


async def write_note(room: Strongroom, caller: Caller, text: str = "kept") -> None:
    """Write the one note."""
    await notes.write(
        room,
        caller,
        CALL,
        _NOTE,
        lambda tx: owner_notes.put_note(tx, _NOTE.key, text, caller.author, Condition()),
    )


async def read_note(room: Strongroom, caller: Caller) -> str:
    """Read it."""
    return await notes.read(
        room, caller, CALL, _NOTE, lambda reader: owner_notes.get_note(reader, _NOTE.key).content
    )


async def member(room: Strongroom, user_id: str) -> AccountRow:
    """A member's row."""
    return await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))


async def open_member(room: Strongroom, username: str = "ana") -> tuple[UserId, OwnerStore]:
    """A new member with a plain store, open here."""
    made = await add(room, username, encrypted=False)
    return made.account.id, await reopen(room, made.account.id)


async def reopen(room: Strongroom, user_id: UserId) -> OwnerStore:
    """Open a plain store."""
    store, _ = await room.stores.open(account_of(await member(room, user_id)), lambda: None)
    return store


@contextlib.asynccontextmanager
async def closing(room: Strongroom, stores: Sequence[OwnerStore]) -> AsyncIterator[None]:
    """Close the handles of stores over and over until the end of the context, as need does."""
    ending = asyncio.Event()

    async def close_all() -> None:
        while not ending.is_set():
            for store in stores:
                await room.stores.on_thread(store.handles.close_idle)
            await asyncio.sleep(0.005)

    closer = asyncio.create_task(close_all())
    try:
        yield
    finally:
        ending.set()
        await closer


async def begin_state(room: Strongroom, user_id: str, state: str) -> None:
    """Take a store out of service, as an operation does that then crashes."""

    def write(tx: RegistryTransactor) -> None:
        tx.run(sql.BEGIN_STORE_STATE, user_id=user_id, store_state=state)

    await room.stores.registry.write(write, ACTOR)


class StopHereError(Exception):
    """What the test lets go wrong."""


def stop_at(point: str) -> Reach:
    """Go wrong at a named point, once."""
    seen: list[str] = []

    def reach(here: str) -> None:
        if here == point and not seen:
            seen.append(here)
            raise StopHereError

    return reach
