"""One use of a key, over the two stores that a caller's requests can land in."""

from app.bridge.callers import Caller
from app.bridge.strongroom import Strongroom
from app.db.pool import StoreClosedError
from app.db.runtime import statements as sql
from app.runtime.idempotency import Once


async def require_one_use(room: Strongroom, caller: Caller, once: Once) -> None:
    """Refuse a key that the group's file or the caller's own store knows for another request.

    The store that is written judges again, in the write; this finds what went to the other
    one. A store that is locked here is not opened for it.

    Raises:
        IdempotencyKeyReusedError: One of them does.
    """
    shared, own = room.stores.registry, room.stores.find(caller.user_id, caller.account.generation)
    who, key, now = once.caller, once.key, room.clock()
    if await shared.one(sql.FIND_IDEMPOTENCY_USE, caller=who, key=key, now=now) is not None:
        await shared.read(once.require_same)
    if own is None:
        return
    try:
        if await own.one(sql.FIND_IDEMPOTENCY_USE, caller=who, key=key, now=now) is not None:
            await own.read(once.require_same)
    except StoreClosedError:
        return
