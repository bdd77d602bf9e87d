"""Which stores this process has unlocked and open, and how they are let go.

Unlocked and open are two things. An unlocked store keeps its key and a shared lock until
it is locked; its handles come and go with the pool.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from app import telemetry
from app.bridge import layout
from app.clock import Clock
from app.crypto.keys import Key
from app.db import files
from app.db.files import Connection
from app.db.locks import LockFile
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.pool import Handles, Pool, StoreClosedError, budget_for, descriptors_allowed
from app.db.registry import statements as sql
from app.db.registry.store import RegistryReader, RegistryStore, RegistryTransactor
from app.db.writer import Lane, Writer
from app.errors.stores import (
    StoreBusyError,
    StoreDamagedError,
    StoreLockedError,
    StoreMigratingError,
    StoreSwappedError,
)
from app.ids import DekId, UserId
from app.owner import identity
from app.settings import Settings

T = TypeVar("T")
_OPENING_THREADS: Final = 4
LEAVE_S: Final = 2.0
"""Seconds that a store about to close leaves to what works in it."""
OPEN: Final = "open"
ROTATING: Final = "rotating"
MIGRATING: Final = "migrating"


@dataclass(frozen=True, slots=True)
class StoreAccount:
    """What the registry says of a member's store, read with the credential."""

    user_id: UserId
    encrypted: bool
    dek_id: DekId | None
    file_salt: bytes | None
    lock_number: int
    state: str
    generation: int


@dataclass(slots=True, eq=False)
class UnlockedStore:
    """A member's store that this process may open: its key, its lock, its handles."""

    account: StoreAccount
    key: Key | None
    store: OwnerStore
    is_used: bool = False
    """Whether other processes are told that it is used here; else it only follows them."""
    is_opened: bool = False
    """Whether somebody opened it here, rather than following others' use."""
    followed_since: float = math.inf
    """Monotonic seconds; whatever uses it later is this process's own."""

    @property
    def last_used(self) -> float:
        """Monotonic seconds of its last use; to watch it is none."""
        return self.store.handles.last_wanted


class Company(Protocol):
    """Part of the program that works in members' stores while they are unlocked here."""

    async def joined(self, user_id: UserId, store: OwnerStore) -> None:
        """Begin with a store that was unlocked just now; a failure locks nobody out."""

    async def leaving(self, user_id: UserId, store: OwnerStore) -> None:
        """End what is under way in a store that is about to be closed; it can still be written.

        Bounded by `LEAVE_S`; what is not done by then is left as a crash would leave it.
        """


def require_in_service(state: str) -> None:
    """Refuse a store that an operation of its own has taken.

    Raises:
        StoreMigratingError: It is being migrated.
        StoreBusyError: Any other operation.
    """
    if state == MIGRATING:
        raise StoreMigratingError
    if state != OPEN:
        raise StoreBusyError


class Stores:
    """The registry, the group's store, and the members' stores unlocked in this process."""

    def __init__(self, settings: Settings, clock: Clock, locks: LockFile) -> None:
        self._settings = settings
        self._clock = clock
        self.locks = locks
        self.began_at = clock()
        """When this process began to work; before it, as far as it knows, the program was down."""
        budget = settings.handle_budget or budget_for(descriptors_allowed())
        self.pool = Pool(budget)
        self._writer = Writer(
            threads=settings.writer_threads,
            nice=settings.writer_nice,
            batch_max=settings.commit_batch_max,
            slice_ms=settings.commit_slice_ms,
        )
        self._readers = ThreadPoolExecutor(settings.reader_threads, "reader")
        self._openers = ThreadPoolExecutor(_OPENING_THREADS, "opener")
        self._members: dict[UserId, UnlockedStore] = {}
        self.company: list[Company] = []
        """Told of each store that is unlocked here, and before each that is let go."""
        self._gates: WeakValueDictionary[UserId, asyncio.Lock] = WeakValueDictionary()
        self.disk_turn = asyncio.Lock()
        """Held from a write's decision until it is done on the disk: no two of this process
        share a transaction."""
        locks.acquire_shared(layout.SYSTEM_LOCK)
        system_lane = self._lane(layout.SYSTEM_LOCK)
        self.registry: RegistryStore = RegistryStore(
            handles=self._system_handles(layout.owner_tables()),
            lane=system_lane,
            writer=self._writer,
            threads=self._readers,
            reader=RegistryReader,
            transactor=RegistryTransactor,
        )
        self.group: OwnerStore = OwnerStore(
            handles=self._system_handles(layout.registry_tables()),
            lane=system_lane,
            writer=self._writer,
            threads=self._readers,
            reader=OwnerReader,
            transactor=OwnerTransactor,
        )

    def _lane(self, lock_number: int) -> Lane:
        wait_s = self._settings.write_wait_s
        return Lane(lambda: self.locks.write_lock(lock_number, wait_s))

    def _system_handles(self, denied: frozenset[str]) -> Handles:
        path = self._settings.system_file

        def open_handle(reader: bool) -> Connection:  # noqa: FBT001 - the pool's protocol
            return files.open_handle(
                path,
                None,
                layout.SYSTEM_KIND,
                self._clock,
                reader=reader,
                denied_tables=denied,
            )

        close = partial(files.close_unwritten, path=path, key=None, clock=self._clock)
        return Handles(self.pool, open_handle, close_unwritten=close, is_pinned=True)

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Run file work on one of the opening threads."""
        return await asyncio.get_running_loop().run_in_executor(self._openers, work)

    def find(self, user_id: UserId, generation: int) -> OwnerStore | None:
        """The member's store if it is unlocked here and still of this generation."""
        found = self._members.get(user_id)
        if found is None or found.account.generation != generation:
            return None
        # Whose file was exchanged is opened anew, by its key and identity.
        return None if found.store.handles.is_lost else found.store

    def find_opened(self, user_id: UserId, generation: int) -> OwnerStore | None:
        """The same, if somebody opened it here and does not only follow it."""
        found = self._members.get(user_id)
        return self.find(user_id, generation) if found is not None and found.is_opened else None

    def unlocked(self) -> dict[UserId, UnlockedStore]:
        """Those unlocked here now; a copy."""
        return dict(self._members)

    async def open(
        self, account: StoreAccount, take_key: Callable[[], Key | None], *, follows: bool = False
    ) -> tuple[OwnerStore, bool]:
        """Open a member's store, unless it is open here already.

        Args:
            account: As read with the credential.
            take_key: Gives the data key when it is needed; None for a plain file.
            follows: That this is no use of it, only because it is used in another process.

        Returns:
            The store, and whether it was unlocked now, or followed so far and is used from now on.

        Raises:
            StoreBusyError: An operation of its own has it.
            StoreDamagedError: The file, or what of it can be told.
            StoreSwappedError: Another store's file stands in its place.
        """
        require_in_service(account.state)
        found = self.find(account.user_id, account.generation)
        if found is not None:
            return found, self._note_opening(account.user_id, follows=follows)
        async with self._gate(account.user_id):
            found = self.find(account.user_id, account.generation)
            if found is not None:
                return found, self._note_opening(account.user_id, follows=follows)
            await self._let_go(account.user_id)
            unlocked = await self._unlock(account, take_key())
            self._members[account.user_id] = unlocked
            self._note_opening(account.user_id, follows=follows)
            telemetry.store_opened(account.user_id)
        for each in self.company:
            await _guarded("joined", each.joined(account.user_id, unlocked.store))
        return unlocked.store, True

    async def _unlock(self, account: StoreAccount, key: Key | None) -> UnlockedStore:
        """Take the shared lock, and open the store under it; or neither, and zero the key."""
        if account.encrypted and key is None:
            raise StoreLockedError
        try:
            self.locks.acquire_shared(account.lock_number)
            try:
                store = await self._opened(account, key)
            except BaseException:
                self.locks.release_shared(account.lock_number)
                raise
        except BaseException:
            _zero(key)
            raise
        return UnlockedStore(account, key, store)

    def _note_opening(self, user_id: UserId, *, follows: bool) -> bool:
        """Whether this is the first opening that is no following; others are told of the use."""
        unlocked = self._members[user_id]
        if follows or unlocked.is_opened:
            return False
        unlocked.is_opened = True
        self._note_use(unlocked)
        return True

    def _note_use(self, unlocked: UnlockedStore) -> None:
        if not unlocked.is_used:
            unlocked.is_used = True
            self.locks.note_used(unlocked.account.lock_number)

    def note_followed(self, user_id: UserId) -> None:
        """Say that a store was opened to follow it, and that this is over: what comes is use."""
        unlocked = self._members.get(user_id)
        if unlocked is not None and unlocked.followed_since == math.inf:
            unlocked.followed_since = time.monotonic()

    def is_forsaken(self, user_id: UserId) -> bool:
        """Whether a member's store is unlocked here to be followed, and used nowhere any more."""
        unlocked = self._members.get(user_id)
        if unlocked is None:
            return False
        if unlocked.last_used > unlocked.followed_since:
            self._note_use(unlocked)
        lock_number = unlocked.account.lock_number
        return not unlocked.is_used and not self.locks.is_used_elsewhere(lock_number)

    async def lock_forsaken(self, user_id: UserId) -> None:
        """Let a store go that is only followed here, unless it has come to be used meanwhile."""
        async with self._gate(user_id):
            if self.is_forsaken(user_id):
                await self._let_go(user_id)

    async def _opened(self, account: StoreAccount, key: Key | None) -> OwnerStore:
        # Read again under the lock: whoever takes a store moves its generation first.
        present = await self.registry.one(sql.FIND_ACCOUNT, user_id=account.user_id)
        if present is None:
            raise StoreClosedError
        require_in_service(present.store_state)
        if present.store_generation != account.generation:
            raise StoreClosedError
        store = self._member_store(account, key)
        try:
            await store.read(lambda reader: _require_own(reader, account))
        except StoreDamagedError as error:
            await self.on_thread(store.handles.close)
            raise await self.told_apart(error, account.file_salt) from error
        except BaseException:
            await self.on_thread(store.handles.close)
            raise
        return store

    async def told_apart(self, error: StoreDamagedError, file_salt: bytes | None) -> Exception:
        """Damaged, or another store's file: the salt it begins with tells."""
        salt = error.file_salt
        if not salt or salt == file_salt:
            return error
        owner = await self.registry.one(sql.FIND_OWNER_OF_SALT, file_salt=salt)
        return StoreSwappedError() if owner is not None else error

    def _member_store(self, account: StoreAccount, key: Key | None) -> OwnerStore:
        path, kind = self._settings.user_file(account.user_id), layout.MEMBER_KIND
        admit = files.admit_any if account.encrypted else identity.admit_plain(account.user_id)

        def open_handle(reader: bool) -> Connection:  # noqa: FBT001 - the pool's protocol
            return files.open_handle(path, key, kind, self._clock, reader=reader, admit=admit)

        close = partial(files.close_unwritten, path=path, key=key, clock=self._clock)
        return OwnerStore(
            handles=Handles(self.pool, open_handle, close_unwritten=close),
            lane=self._lane(account.lock_number),
            writer=self._writer,
            threads=self._readers,
            reader=OwnerReader,
            transactor=OwnerTransactor,
        )

    async def lock(self, user_id: UserId) -> None:
        """Let a member's store go in this process: handles closed, key zeroed, lock released."""
        async with self._gate(user_id):
            await self._let_go(user_id)

    async def _let_go(self, user_id: UserId) -> None:
        unlocked = self._members.pop(user_id, None)
        if unlocked is None:
            return
        self.locks.note_unused(unlocked.account.lock_number)
        if self.company:
            await _guarded("leaving", self._tell_leaving(user_id, unlocked.store))

        def close() -> None:
            # All of it on the thread, so that a caller who is cancelled leaves no half.
            try:
                unlocked.store.handles.close(interrupt=True)
            finally:
                _zero(unlocked.key)
                self.locks.release_shared(unlocked.account.lock_number)

        await self.on_thread(close)
        telemetry.store_locked(user_id)

    async def _tell_leaving(self, user_id: UserId, store: OwnerStore) -> None:
        async with asyncio.timeout(LEAVE_S):
            for each in self.company:
                await _guarded("leaving", each.leaving(user_id, store))

    def live(self) -> list[OwnerStore]:
        """Every store that this process can work in now: the group's, and those unlocked here."""
        return [self.group, *(unlocked.store for unlocked in self._members.values())]

    def _gate(self, user_id: UserId) -> asyncio.Lock:
        return self._gates.setdefault(user_id, asyncio.Lock())

    def idle_since(self, seconds: float) -> list[UserId]:
        """Members whose store nobody used here for so long."""
        before = time.monotonic() - seconds
        return [user_id for user_id, s in self._members.items() if s.last_used < before]

    async def warm(self) -> None:
        """Open the handles that every request needs, before the first one."""
        await asyncio.gather(
            self.registry.read(lambda reader: reader.all(sql.LIST_ROLES)),
            self.group.read(identity.get_identity),
        )

    async def close(self) -> None:
        """Finish writes, close everything, zero every key."""
        for user_id in list(self._members):
            await self.lock(user_id)
        await self.on_thread(self.group.handles.close)
        await self.on_thread(self.registry.handles.close)
        self.locks.release_shared(layout.SYSTEM_LOCK)
        await asyncio.to_thread(self._writer.close)
        self._readers.shutdown()
        self._openers.shutdown()


def _require_own(reader: OwnerReader, account: StoreAccount) -> None:
    identity.require_identity(reader, account.user_id, frozenset(filter(None, [account.dek_id])))


async def _guarded(name: str, work: Awaitable[None]) -> None:
    """Await a part of the program that must not stand in the way of a store."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the boundary of another part
        telemetry.unexpected(name, error)


def _zero(key: Key | None) -> None:
    if key is not None:
        key.zero()
