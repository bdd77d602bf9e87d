"""What the registry knows of work in a store that is locked: when it is due, and nothing else."""

from typing import Final

from app.bridge.strongroom import Strongroom, account_of
from app.db.context import system_actor
from app.db.owner.store import OwnerStore
from app.db.registry import statements as sql
from app.ids import UserId
from app.runtime import due

_ACTOR: Final = system_actor("jobs")
_OPENED_AT_ONCE: Final = 20


async def note(room: Strongroom, user_id: UserId, store: OwnerStore) -> None:
    """Leave word of what is next due in a store that is about to be locked."""
    due_at = await store.watch(due.next_work)
    since = room.clock() if due_at is not None and due_at <= room.clock() else None
    await _set(room, user_id, since, due_at)


async def settle(room: Strongroom, user_id: UserId) -> None:
    """Forget it: the store is unlocked, and what is due there runs."""
    row = await room.stores.registry.one(sql.FIND_WORK_TIMES, user_id=user_id)
    if row is not None and any(at is not None for at in row):
        await _set(room, user_id, None, None)


async def _set(room: Strongroom, user_id: UserId, since: int | None, due_at: int | None) -> None:
    await room.stores.registry.write(
        lambda tx: tx.run(
            sql.SET_WORK_TIMES, user_id=user_id, work_waiting_since=since, next_due_at=due_at
        ),
        _ACTOR,
    )


async def open_plain_due(room: Strongroom) -> None:
    """Open plain stores in which work is due: they need nobody's key."""
    registry = room.stores.registry
    found = await registry.read(
        lambda reader: reader.all(sql.LIST_PLAIN_DUE, now=room.clock(), limit=_OPENED_AT_ONCE)
    )
    for row in found:
        account = await registry.one(sql.FIND_ACCOUNT, user_id=row.value)
        if account is not None:
            await room.stores.open(account_of(account), lambda: None)
