"""Ways in that end: sessions, tokens, slots; and the store closed when the last one goes."""

from collections.abc import Callable

from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom, uncut
from app.bridge.taking import CLOSING, taken
from app.db.context import Actor
from app.db.registry.store import RegistryTransactor
from app.errors.stores import StoreError
from app.ids import UserId
from app.registry import sessions
from app.registry.sessions import Kind
from app.runtime.idempotency import Once


async def sign_out(room: Strongroom, caller: Caller, call: Call) -> None:
    """End the caller's session or token."""
    kind: Kind = "browser" if caller.is_human else "token"
    await revoke(room, caller, kind, caller.session_id, call)


async def revoke(room: Strongroom, caller: Caller, kind: Kind, session_id: str, call: Call) -> None:
    """End one of the caller's sessions, or one of their tokens.

    Raises:
        NotFoundError: The caller has no such live session of this kind.
    """
    await end(room, caller, call, lambda tx: sessions.revoke(tx, caller.user_id, kind, session_id))


async def revoke_others(room: Strongroom, caller: Caller, call: Call) -> None:
    """End every session of the caller but this one."""

    def work(tx: RegistryTransactor) -> None:
        sessions.revoke_others(tx, caller.user_id, "browser", caller.session_id)

    await end(room, caller, call, work)


async def remove_slot(room: Strongroom, caller: Caller, slot_id: str, call: Call) -> None:
    """Destroy one way to the caller's data key, and end the session or token that had it.

    Raises:
        NotFoundError: The caller has no such slot.
    """
    await end(room, caller, call, lambda tx: sessions.revoke_slot(tx, caller.user_id, slot_id))


@uncut
async def end(
    room: Strongroom, caller: Caller, call: Call, work: Callable[[RegistryTransactor], None]
) -> None:
    """Take ways in away in one step, and with the last of them lock the store everywhere.

    The answer does not depend on the store being let go in time: what opened it is gone.

    Raises:
        StrongroomError: The work's own; nothing was changed.
    """
    actor = caller.actor(call)

    def write(tx: RegistryTransactor) -> int:
        work(tx)
        return sessions.count_ways_in(tx, caller.user_id)

    left = await room.stores.registry.write(write, actor, once=call.once)
    # What was destroyed must leave the log as well as the table.
    await room.stores.registry.checkpoint()
    if left == 0 and caller.account.encrypted:
        await lock_everywhere(room, caller.user_id, caller.account.lock_number, actor)


@uncut
async def lock_everywhere(
    room: Strongroom, user_id: UserId, lock_number: int, actor: Actor, once: Once | None = None
) -> bool:
    """Close a member's store in every process; False when it was not let go in time."""
    try:
        async with taken(room, user_id, lock_number, CLOSING, actor, once=once) as hold:
            if hold.once is not None:
                await room.stores.registry.write(lambda _tx: None, actor, once=hold.once)
    except StoreError:
        return False
    return True
