"""Parts of the program that are told of the group's events, by name.

A subscriber is told at least once of each event and may be told again. So whatever it
writes, in whichever store, begins there with `app.runtime.deliveries.handled`, in the same
transaction, and with the actor it is given, which says how deep in a chain of causes it is.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.bridge.strongroom import Strongroom
from app.db.context import Actor, system_actor
from app.runtime import subscriptions
from app.runtime.deliveries import Claimed, Owed

_ACTOR: Final = system_actor("subscribers")


@dataclass(frozen=True, slots=True)
class Told:
    """One event, as a subscriber is told of it."""

    delivery_id: str
    """The same at every try."""
    event: Owed
    actor: Actor
    """Who writes what the subscriber writes."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A part of the program that is told."""

    name: str
    """For ever; it stands in the store."""
    event_types: Sequence[str]
    """Names or patterns, as `report.*`."""
    handle: Callable[[Strongroom, Told], Awaitable[None]]
    """Acts on one event; what it raises makes the try fail."""


Subscribers = Sequence[Subscriber]
SUBSCRIBERS: Final[Subscribers] = ()
"""Those of the program itself."""


async def declare(room: Strongroom, subscribers: Subscribers) -> None:
    """Have exactly these told from now on; nothing is written when they are already."""
    wanted = {each.name: each.event_types for each in subscribers}
    group = room.stores.group
    if not await group.watch(lambda reader: subscriptions.is_declared(reader, wanted)):
        await group.write(lambda tx: subscriptions.declare(tx, wanted), _ACTOR)


def told_of(claimed: Claimed) -> Told:
    """What a subscriber is told, one step deeper in the chain of causes than the event."""
    actor = Actor(
        kind="system",
        sub=claimed.target.name or "",
        action="subscriber",
        trace_id=claimed.owed.trace_id,
        depth=claimed.owed.depth + 1,
    )
    return Told(claimed.id, claimed.owed, actor)
