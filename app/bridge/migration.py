"""A member's store of an earlier version, brought to the present one when it is first opened.

The key is at hand only then. The store is taken alone, copied beside itself under the same
key, and migrated in one transaction: whatever happens, the file in place is whole and of
one of the two versions, so after a crash nothing is left to do but to put it back in service.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterator
from typing import Final

from app import telemetry
from app.bridge import layout
from app.bridge.finishing import JANITOR, Desk, Operation
from app.bridge.stores import MIGRATING, StoreAccount, require_in_service
from app.bridge.strongroom import Strongroom, account_of, uncut
from app.bridge.taking import end_state, taken
from app.crypto.keys import Key
from app.db import files, upgrades
from app.db.context import system_actor
from app.db.files import StoreOutdatedError
from app.db.owner.store import OwnerStore
from app.db.pool import StoreClosedError
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.stores import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreMigratingError,
    StoreMigrationFailedError,
)
from app.ids import UserId, new_uuid7
from app.owner import identity
from app.registry import accounts
from app.runtime import steps
from app.runtime.steps import Outcome, Run

ACTION: Final = "migrate"
SHAPE: Final = ("snapshot", "apply")
_ACTOR: Final = system_actor("migration")


def build() -> str:
    """What a migration is tried with: this build and the schema it makes; a digest of both."""
    made = sorted(pair for bucket in layout.MEMBER_KIND.buckets for pair in bucket.record.items())
    return hashlib.sha256(f"{steps.BUILD} {made}".encode()).hexdigest()


async def open_present(
    room: Strongroom,
    account: StoreAccount,
    take_key: Callable[[], Key | None],
    *,
    follows: bool = False,
) -> tuple[OwnerStore, bool]:
    """Open a member's store as `Stores.open` does, brought to the present version first.

    Returns:
        The store, and whether that is an opening, as `Stores.open` tells.

    Raises:
        StoreMigratingError: Another request migrates it just now.
        StoreMigrationFailedError: This build has failed to; the store is as it was.
        StoreError: What `Stores.open` finds.
    """
    try:
        return await room.stores.open(account, take_key, follows=follows)
    except StoreOutdatedError:
        # Closed: somebody else has had it alone meanwhile, and it may be present by now.
        with contextlib.suppress(StoreClosedError):
            await _migrate(room, account, take_key())
    present = await room.stores.registry.one(sql.FIND_ACCOUNT, user_id=account.user_id)
    if present is None or not present.active or present.dek_id != account.dek_id:
        raise StoreClosedError
    return await room.stores.open(account_of(present), take_key, follows=follows)


async def bring_up(room: Strongroom, account: StoreAccount, key: Key | None) -> bool:
    """Bring a store to the present version without opening it for anybody.

    Args:
        room: The service.
        account: Whose store.
        key: Its key, which is zeroed at the end; None for a plain file.

    Returns:
        Whether it was older.

    Raises:
        StoreMigrationFailedError: See `open_present`.
        StoreError: What stands in the way of looking at it.
    """
    try:
        require_in_service(account.state)
        with _shared(room, account.lock_number):
            version = await asyncio.to_thread(_version, room, account, key)
    except StoreDamagedError as error:
        _zero(key)
        raise await room.stores.told_apart(error, account.file_salt) from error
    except BaseException:
        _zero(key)
        raise
    if version is None:
        _zero(key)
        return False
    await _migrate(room, account, key)
    return True


@contextlib.contextmanager
def _shared(room: Strongroom, lock_number: int) -> Iterator[None]:
    room.stores.locks.acquire_shared(lock_number)
    try:
        yield
    finally:
        room.stores.locks.release_shared(lock_number)


def _version(room: Strongroom, account: StoreAccount, key: Key | None) -> str | None:
    path, kind = room.settings.user_file(account.user_id), layout.MEMBER_KIND
    admit = files.admit_any if account.encrypted else identity.admit_plain(account.user_id)
    return upgrades.outdated_version(path, key, kind, room.clock, admit)


@uncut
async def _migrate(room: Strongroom, account: StoreAccount, key: Key | None) -> None:
    """Take the store alone and migrate it, unless somebody has done so meanwhile."""
    registry = room.stores.registry

    def judge(tx: RegistryTransactor) -> None:
        if accounts.get(tx, account.user_id).store_generation != account.generation:
            raise StoreClosedError

    try:
        failed = await registry.one(sql.FIND_FAILED_MIGRATION, user_id=account.user_id)
        if failed is not None and failed.value == build():
            raise StoreMigrationFailedError
        async with taken(room, account.user_id, account.lock_number, MIGRATING, _ACTOR, judge):
            room.reach("migrate.taken")
            version = await asyncio.to_thread(_version, room, account, key)
            if version is not None:
                await _work(room, account.user_id, key, version)
    except StoreBusyError as error:
        present = await registry.one(sql.FIND_ACCOUNT, user_id=account.user_id)
        if present is not None and present.store_state == MIGRATING:
            raise StoreMigratingError from error
        raise
    finally:
        _zero(key)
    room.reach("migrate.done")


async def _work(room: Strongroom, user_id: UserId, key: Key | None, version: str) -> None:
    """Copy and migrate a store that is held alone; or leave it as it was, and say so."""
    kind, registry = layout.MEMBER_KIND, room.stores.registry
    path = room.settings.user_file(user_id)
    run = Run(new_uuid7(room.clock()))

    def begin(tx: RegistryTransactor) -> None:
        steps.begin(tx, run, ACTION, user_id, SHAPE)
        steps.sent(tx, run, "snapshot", version)

    def copied(tx: RegistryTransactor) -> None:
        steps.answered(tx, run, "snapshot", {"version": version})
        steps.sent(tx, run, "apply", kind.version)

    def end(tx: RegistryTransactor) -> None:
        steps.answered(tx, run, "apply", {"version": kind.version})
        tx.run(
            sql.SET_STORE_VERSION,
            user_id=user_id,
            schema_version=kind.version,
            store_bytes=files.size(path),
        )
        steps.finish(tx, run, "done")

    await registry.write(begin, _ACTOR)
    room.reach("migrate.begun")
    try:
        await asyncio.to_thread(upgrades.take_snapshot, path, key, kind, version, room.clock)
        room.reach("migrate.copied")
        await registry.write(copied, _ACTOR)
        await asyncio.to_thread(
            upgrades.migrate, path, key, kind, room.clock, lambda: room.reach("migrate.applying")
        )
    except BaseException as error:
        await _undo(room, user_id, run, version, error)
        raise
    room.reach("migrate.applied")
    await registry.write(end, _ACTOR)
    room.reach("migrate.ended")
    telemetry.store_migrated(user_id, kind.version)


async def _undo(
    room: Strongroom, user_id: UserId, run: Run, version: str, error: BaseException
) -> None:
    """The old version stands: what was prepared goes; a fault is remembered with this build.

    Raises:
        StoreMigrationFailedError: To try again would fail again.
    """
    path = room.settings.user_file(user_id)
    is_fault = _is_fault(error)

    def write(tx: RegistryTransactor) -> None:
        if is_fault:
            tx.run(sql.SET_FAILED_MIGRATION, user_id=user_id, build=build())
        steps.finish(tx, run, "undone")

    def clean() -> None:
        files.remove_new(path)
        files.remove(upgrades.snapshot_of(path, version))

    await asyncio.to_thread(clean)
    await room.stores.registry.write(write, _ACTOR)
    if is_fault:
        telemetry.unexpected("migration", error)
        telemetry.store_migration_failed(user_id, StoreMigrationFailedError.code)
        raise StoreMigrationFailedError from error


def _is_fault(error: BaseException) -> bool:
    """Whether a migration failed by itself, rather than for want of room, time or handles."""
    if isinstance(error, StoreError):
        return isinstance(error, StoreDamagedError)
    return isinstance(error, Exception) and not isinstance(error, OSError | MemoryError)


def _zero(key: Key | None) -> None:
    if key is not None:
        key.zero()


async def _settle(desk: Desk) -> Outcome:
    """The file is whole and of one of the two versions; the next unlock sees which.

    A migration that ends its process has failed as much as one that says so: after a few
    times it is not begun again by this build.

    Returns:
        That it was undone.
    """
    await desk.stores.on_thread(lambda: files.remove_new(desk.path))

    def write(tx: RegistryTransactor) -> bool:
        steps.finish(tx, desk.run, "undone")
        end_state(tx, desk.subject, MIGRATING)
        kills = steps.times_cut(tx, ACTION, desk.subject)
        is_failed = kills >= desk.settings.migration_kills_max
        if is_failed:
            tx.run(sql.SET_FAILED_MIGRATION, user_id=desk.subject, build=build())
        return is_failed

    if await desk.stores.registry.write(write, JANITOR):
        telemetry.store_migration_failed(desk.subject, StoreMigrationFailedError.code)
    return "undone"


OPERATION: Final = Operation(action=ACTION, shape=SHAPE, state=MIGRATING, settle=_settle)
