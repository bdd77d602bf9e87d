"""A caller's own store: opened when needed, each opening on record."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from app import telemetry
from app.bridge import layout, migration
from app.bridge.callers import Call, Caller, judge
from app.bridge.strongroom import Strongroom, uncut
from app.crypto.tokens import Token
from app.db import blobs as disk_blobs
from app.db import files, upgrades
from app.db.context import Actor, system_actor
from app.db.owner.store import OwnerStore
from app.db.pool import StoreClosedError
from app.db.registry import statements as sql
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotPermittedError
from app.errors.stores import StoreBusyError, StoreError
from app.ids import SessionId, UserId
from app.owner import access
from app.owner.quota import Quota
from app.registry import roles
from app.registry.roles import Capability

T = TypeVar("T")
_TRIES: Final = 3


async def authenticate(room: Strongroom, token: Token) -> Caller:
    """Judge a token, on a row read anew, never remembered.

    Returns:
        Whoever its secret says.

    Raises:
        InvalidCredentialsError: It does not hold.
    """
    row = await room.stores.registry.one(sql.FIND_CREDENTIAL, session_id=token.id)
    return judge(row, token, room.clock(), room.settings.cookie_idle_hours)


def require_still(room: Strongroom, reader: RegistryReader, caller: Caller) -> None:
    """Judge a caller again, in the transaction that decides: a derivation may have lain between.

    Raises:
        InvalidCredentialsError: The credential holds no more.
        NotPermittedError: The role is another.
    """
    row = reader.one(sql.FIND_CREDENTIAL, session_id=caller.session_id)
    present = judge(row, caller.token, room.clock(), room.settings.cookie_idle_hours)
    if present.role_id != caller.role_id:
        raise NotPermittedError


async def require_capability(room: Strongroom, caller: Caller, capability: Capability) -> None:
    """Refuse a caller whose role does not hold a capability; an administrator's holds all.

    Raises:
        NotPermittedError: It does not.
    """
    if caller.role_id == roles.ADMIN:
        return
    held = await room.stores.registry.one(
        sql.FIND_CAPABILITY, role_id=caller.role_id, capability=capability
    )
    if held is None:
        raise NotPermittedError


async def with_own(
    room: Strongroom, caller: Caller, call: Call, work: Callable[[OwnerStore], Awaitable[T]]
) -> T:
    """Do something with the caller's own store, unlocking it first when it is locked.

    A store that idle locking closes under the work was not written; it is opened again.

    Returns:
        What the work returned.

    Raises:
        StoreLockedError: This credential cannot open it.
        StoreError: The store is in trouble; which, says its type.
    """
    caller.require_key_way()
    for _ in range(_TRIES):
        try:
            store = await open_own(room, caller, call)
            return await work(store)
        except StoreClosedError:
            # Closed meanwhile, and nothing was done: the caller is judged anew.
            caller = await authenticate(room, caller.token)
    raise StoreBusyError


def bytes_max_of(room: Strongroom, caller: Caller) -> int:
    """Bytes that the caller's own store and files may have."""
    quota_bytes = caller.quota_bytes
    return room.settings.member_bytes_max if quota_bytes is None else quota_bytes


def own_quota(room: Strongroom, caller: Caller) -> Quota:
    """What the caller's own store may hold."""
    folder = room.settings.files_folder(caller.user_id)
    return Quota(
        bytes_max_of(room, caller),
        room.settings.notes_max,
        lambda: disk_blobs.size_of_folder(folder),
    )


def group_quota(room: Strongroom) -> Quota:
    """What the group's store may hold."""
    settings = room.settings
    folder = settings.files_folder(layout.GROUP)
    return Quota(
        settings.group_bytes_max, settings.notes_max, lambda: disk_blobs.size_of_folder(folder)
    )


def quota_of(room: Strongroom, caller: Caller, *, is_group: bool) -> Quota:
    """What the store may hold that somebody writes in: the group's, or their own."""
    return group_quota(room) if is_group else own_quota(room, caller)


async def used_bytes(room: Strongroom, user_id: UserId) -> int:
    """What a member takes up of the disk: their store and the files beside it."""
    path, folder = room.settings.user_file(user_id), room.settings.files_folder(user_id)
    return await room.stores.on_thread(lambda: files.size(path) + disk_blobs.size_of_folder(folder))


async def open_own(
    room: Strongroom, caller: Caller, call: Call, *, follows: bool = False
) -> OwnerStore:
    """Open the caller's own store; `follows` as `Stores.open` has it.

    Returns:
        The store. To follow it is on record with the use that is followed, not by itself.
    """
    store, is_new = await migration.open_present(
        room, caller.account, caller.take_key, follows=follows
    )
    if is_new and not follows:
        way: access.Way = "session" if caller.is_human else "token"
        await record_opening(
            room, caller.user_id, store, way, caller.session_id, caller.agent_id, call
        )
    return store


async def follow_own(room: Strongroom, caller: Caller, call: Call) -> OwnerStore | None:
    """The caller's own store for as long as somebody uses it, in whichever process.

    To follow a store is no use of it. It is opened here when it is used in another process,
    and let go when it is no more: two who follow do not keep it open for each other.

    Returns:
        The store; None while it is locked.

    Raises:
        StoreLockedError: This credential cannot open it.
        StoreError: The store is in trouble; which, says its type.
    """
    stores, account = room.stores, caller.account
    if stores.is_forsaken(account.user_id):
        await stores.lock_forsaken(account.user_id)
    store = stores.find(account.user_id, account.generation)
    if store is not None or not stores.locks.is_used_elsewhere(account.lock_number):
        return store
    return await _join_use(room, caller, call)


@uncut
async def _join_use(room: Strongroom, caller: Caller, call: Call) -> OwnerStore:
    try:
        return await open_own(room, caller, call, follows=True)
    finally:
        room.stores.note_followed(caller.user_id)


async def record_opening(  # noqa: PLR0913, PLR0917 - each is one column
    room: Strongroom,
    user_id: UserId,
    store: OwnerStore,
    way: access.Way,
    session_id: SessionId | None,
    agent_id: str | None,
    call: Call,
) -> None:
    """Write an opening into the member's own log, and what of it the operator may see.

    A store that can be read but not written, as on a full disk, is still read. Most are only
    read, so none keeps a writing handle for this line alone.
    """
    actor = Actor("system", "strongroom", call.action, user_id, call.request_id, call.trace_id)
    try:
        await store.write(
            lambda tx: access.record_access(
                tx, way=way, session_id=session_id, agent_id=agent_id, network=call.network
            ),
            actor,
        )
        await refresh_mirror(room, user_id, store)
        await store.rest_writer()
    except StoreError as error:
        telemetry.request_failed(call.action, error.code, call.request_id)


async def refresh_mirror(room: Strongroom, user_id: UserId, store: OwnerStore) -> None:
    """Tell the registry the store's size, its version, and whether its schema is as it was made."""
    kind = layout.MEMBER_KIND
    size = await used_bytes(room, user_id)
    drifted = await store.watch(lambda reader: upgrades.drift_of(reader.outline(), kind))
    if drifted:
        telemetry.store_drifted(user_id, len(drifted))

    def write(tx: RegistryTransactor) -> None:
        tx.run(
            sql.SET_STORE_MIRROR,
            user_id=user_id,
            store_bytes=size,
            schema_version=kind.version,
            schema_check="drift" if drifted else "ok",
            now=tx.now_ms,
        )

    await room.stores.registry.write(write, system_actor("mirror"))
