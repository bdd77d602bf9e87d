"""What waits in a member's own store for their decision, and what the registry knows of it.

The store has the text, the registry how it stands, and no transaction spans the two. What is
kept is told afterwards; what is decided is removed afterwards. `settle` does both again, at
each unlock, in each round of housekeeping, and whenever the member looks: a crash between two
files leaves nothing that it does not find.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from app.db.context import Actor, system_actor
from app.db.owner.store import OwnerStore
from app.db.registry.store import RegistryReader, RegistryStore, RegistryTransactor
from app.ids import UserId
from app.owner import pending_writes
from app.owner.pending_writes import PendingFacts
from app.registry import approvals
from app.registry.approvals import APPROVED, PENDING, Notice

_ACTOR: Final = system_actor("approvals")


class Approvals:
    """Settles each store that is unlocked."""

    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry

    async def joined(self, user_id: UserId, store: OwnerStore) -> None:
        """Settle it."""
        await settle(self._registry, user_id, store)

    async def leaving(self, user_id: UserId, store: OwnerStore) -> None:
        """Nothing is under way."""


async def settle(registry: RegistryStore, user_id: UserId, store: OwnerStore) -> int:
    """Tell the registry what it was not told or is too late, and remove what is over.

    Args:
        registry: Where the notices are.
        user_id: The member.
        store: Theirs, unlocked; this is no use of it.

    Returns:
        How many texts went, from the store's log as well.
    """
    kept = await store.watch(pending_writes.list_facts)
    if not kept:
        return 0

    found = await registry.read(lambda reader: _look(reader, user_id, kept))
    if found.untold:
        await tell(registry, user_id, found.untold, _ACTOR)
    if found.late:
        await registry.write(lambda tx: approvals.expire_of(tx, user_id), _ACTOR)
    over = found.decided + found.late
    if over:
        await forget(store, over, _ACTOR, is_watch=True)
    return len(over)


class _Found(NamedTuple):
    """What is to be done in a store and about it."""

    untold: list[PendingFacts]
    """Of which the registry does not know."""
    late: list[str]
    """Those that nobody can decide any more."""
    decided: list[str]
    """Those that are over, and whose text is not needed again."""


def _look(reader: RegistryReader, user_id: UserId, kept: Sequence[PendingFacts]) -> _Found:
    states = approvals.states_of(reader, user_id, [each.id for each in kept])
    found = _Found([], [], [])
    for each in kept:
        status = states.get(each.id)
        if each.expires_at <= reader.now_ms and status in {None, PENDING}:
            found.late.append(each.id)
        elif status is None:
            found.untold.append(each)
        elif status not in {PENDING, APPROVED}:
            found.decided.append(each.id)
    return found


async def tell(
    registry: RegistryStore, user_id: UserId, kept: Sequence[PendingFacts], actor: Actor
) -> None:
    """Tell the registry of what waits; twice is once."""

    def write(tx: RegistryTransactor) -> None:
        for each in kept:
            approvals.add(tx, user_id, Notice(**each._asdict()))

    await registry.write(write, actor)


async def forget(
    store: OwnerStore, approval_ids: Sequence[str], actor: Actor, *, is_watch: bool = False
) -> None:
    """Remove what waited, from the store's log as well."""
    await store.write(lambda tx: pending_writes.remove(tx, approval_ids), actor, is_watch=is_watch)
    await store.checkpoint()
