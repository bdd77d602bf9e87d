"""What operators do to deliveries and breakers by hand: never what is told, each act on record."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from app import metrics
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.db.context import Actor
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.runtime.store import Once
from app.runtime import breakers, delivery_list, operator_actions
from app.runtime.breakers import Breaker
from app.runtime.delivery_list import Delivery
from app.runtime.versions import Match, require_version

Act = Literal["retry", "cancel", "release"]
_ACTS: Final[Mapping[Act, Callable[[OwnerTransactor, str], None]]] = {
    "retry": delivery_list.retry,
    "cancel": delivery_list.cancel,
    "release": delivery_list.release_held,
}


async def act(  # noqa: PLR0913, PLR0917 - what, on which, where, by whom
    store: OwnerStore,
    name: Act,
    delivery_id: str,
    operator: str,
    actor: Actor,
    once: Once | None = None,
    match: Match = None,
) -> Delivery:
    """Do one thing to a delivery, and record that, with its state as it was.

    Returns:
        The delivery after it.

    Raises:
        NotFoundError: There is none.
        ConflictError: Its state stands against it.
        VersionConflictError: It stands at another version than was asked for.
    """

    def write(tx: OwnerTransactor) -> Delivery:
        before = delivery_list.get(tx, delivery_id)
        require_version(before.version, match)
        _ACTS[name](tx, delivery_id)
        state: dict[str, str | int | None] = {
            "status": before.status,
            "attempts": before.attempts,
            "next_attempt_at": before.next_attempt_at,
            "last_failure": before.last_failure,
            "version": before.version,
        }
        operator_actions.record(tx, f"delivery.{name}", delivery_id, state, operator)
        return delivery_list.get(tx, delivery_id)

    return await store.write(write, actor, once=once)


async def act_of(  # noqa: PLR0913, PLR0917 - who, what, on which, if
    room: Strongroom, caller: Caller, call: Call, name: Act, delivery_id: str, match: Match
) -> Delivery:
    """The same, on a delivery of the group's store, by an administrator's call."""
    call = call.judged(lambda reader: delivery_list.get(reader, delivery_id))
    group, actor = room.stores.group, caller.actor(call)
    return await act(group, name, delivery_id, caller.user_id, actor, call.once, match)


async def reset(
    store: OwnerStore, connection: str, operator: str, actor: Actor, once: Once | None = None
) -> Breaker:
    """Close a breaker, and let go on what it held.

    Returns:
        The breaker as it was.

    Raises:
        NotFoundError: This connection has not failed of late.
    """

    def write(tx: OwnerTransactor) -> Breaker:
        before = breakers.reset(tx, connection)
        state: dict[str, str | int | None] = {
            "status": before.state,
            "failures": before.failures,
            "pauses": before.pauses,
        }
        operator_actions.record(tx, "breaker.reset", connection, state, operator)
        return before

    before = await store.write(write, actor, once=once)
    if before.opened_at is not None:
        metrics.breaker_turned("closed")
    return before


async def reset_of(room: Strongroom, caller: Caller, call: Call, connection: str) -> Breaker:
    """The same, in the group's store, by an administrator's call."""
    actor = caller.actor(call)
    return await reset(room.stores.group, connection, caller.user_id, actor, call.once)


async def list_page(
    store: OwnerStore, before: str, limit: int, status: str | None
) -> list[Delivery]:
    """Every delivery of a store, newest first."""

    def read(reader: OwnerReader) -> list[Delivery]:
        return delivery_list.list_all(reader, before, limit, status)

    return await store.read(read)


async def get(store: OwnerStore, delivery_id: str) -> Delivery:
    """One of them.

    Returns:
        It.

    Raises:
        NotFoundError: There is none.
    """
    return await store.read(lambda reader: delivery_list.get(reader, delivery_id))


async def list_breakers(store: OwnerStore) -> list[Breaker]:
    """Every connection that failed of late."""
    return await store.read(breakers.list_all)
