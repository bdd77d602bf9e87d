"""Notes where their path says: the caller's own store, or the group's."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar

from app.bridge.access import quota_of, with_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.errors.callers import NotPermittedError
from app.errors.conflicts import NotVersionedError
from app.errors.inputs import DifferentRootsError
from app.owner import search as searching
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from app.owner.search import HitRow
from app.runtime.idempotency import Replayed

T = TypeVar("T")
SearchScope = Literal["own", "shared", "all"]
READ: Final = "memory:read"
_OWN_SCOPE: Final = "memory:write"
_SHARED_SCOPE: Final = "shared:write"
"""For whatever others read, in the group's store or on the disk."""


async def read(
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, work: Callable[[OwnerReader], T]
) -> T:
    """Read in the store that a path names.

    Returns:
        What the work returned.

    Raises:
        NotVersionedError: It names no store but a folder on the disk.
        StoreLockedError: It is the caller's own, and this credential cannot open it.
    """
    _require_store(ref)
    if ref.root == SHARED_MEMORY:
        return await room.stores.group.read(work)
    return await with_own(room, caller, call, lambda store: store.read(work))


def _require_store(ref: PathRef) -> None:
    if ref.is_on_disk:
        raise NotVersionedError


def require_may_write(caller: Caller, ref: PathRef) -> None:
    """Refuse a credential that was not made for writing there.

    Raises:
        NotPermittedError: Its scopes do not reach there.
    """
    if not caller.has_scope(_OWN_SCOPE if ref.root == USER_MEMORY else _SHARED_SCOPE):
        raise NotPermittedError


def require_may_read(caller: Caller) -> None:
    """Refuse a credential that may learn nothing of the texts that stand.

    Raises:
        NotPermittedError: It was not made for reading.
    """
    if not caller.has_scope(READ):
        raise NotPermittedError


async def write(  # noqa: PLR0913 - the parts of one write
    room: Strongroom,
    caller: Caller,
    call: Call,
    ref: PathRef,
    work: Callable[[OwnerTransactor], T],
    *,
    adds_bytes: int | None = 0,
    leaves_no_trace: bool = False,
    judge: Callable[[OwnerReader], object] | None = None,
) -> T:
    """Write in the store that a path names, durably.

    Args:
        room: The service.
        caller: Who writes.
        call: The request.
        ref: Where.
        work: What; one transaction.
        adds_bytes: How much it adds at least; with what it really added it is held against the
            store's quota. None when it only takes away.
        leaves_no_trace: Whether what it removes must leave the store's log as well.
        judge: Refuses to give a kept answer again; None when there is no reason to.

    Returns:
        What the work returned.

    Raises:
        NotPermittedError: See `require_may_write`.
        QuotaExceededError: The store would pass its quota; nothing was written.
        NotVersionedError: The path names no store but a folder on the disk.
    """
    require_may_write(caller, ref)
    _require_store(ref)
    actor, call = caller.actor(call), call.judged(judge)
    is_shared = ref.root == SHARED_MEMORY
    quota = quota_of(room, caller, is_group=is_shared)

    async def write_in(store: OwnerStore) -> T:
        try:
            written = await store.write(
                lambda tx: quota.hold(tx, work, adds_bytes), actor, once=call.once
            )
        except Replayed:
            # A crash may have come between the commit and this.
            await _empty_log(store, leaves_no_trace=leaves_no_trace)
            raise
        await _empty_log(store, leaves_no_trace=leaves_no_trace)
        return written

    if is_shared:
        return await write_in(room.stores.group)
    return await with_own(room, caller, call, write_in)


async def _empty_log(store: OwnerStore, *, leaves_no_trace: bool) -> None:
    if leaves_no_trace:
        await store.checkpoint()


def require_one_root(one: PathRef, other: PathRef) -> None:
    """Refuse to carry text from one audience to another by a move.

    Raises:
        DifferentRootsError: The two paths are in different roots.
    """
    if one.root != other.root:
        raise DifferentRootsError


async def search(  # noqa: PLR0913, PLR0917 - the parts of one search
    room: Strongroom, caller: Caller, call: Call, q: str, scope: SearchScope, limit: int
) -> list[HitRow]:
    """Search the caller's own notes, the group's, or both; best first, paths with their root."""
    hits: list[HitRow] = []
    if scope != "shared":
        own = await with_own(
            room,
            caller,
            call,
            lambda store: store.read(lambda reader: searching.search(reader, q, limit)),
        )
        hits += _rooted(USER_MEMORY, own)
    if scope != "own":
        shared = await room.stores.group.read(lambda reader: searching.search(reader, q, limit))
        hits += _rooted(SHARED_MEMORY, shared)
    return sorted(hits, key=lambda hit: hit.score, reverse=True)[:limit]


def _rooted(root: str, hits: Sequence[HitRow]) -> list[HitRow]:
    return [hit._replace(path=PathRef(root, hit.path).display) for hit in hits]
