"""One try of a delivery, and its mark: by HTTP, or by a part of the program."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from app import metrics, telemetry
from app.bridge.notifications import deliveries as words
from app.bridge.notifications import subscribers as internal
from app.bridge.notifications.subscribers import Subscribers
from app.bridge.strongroom import Strongroom
from app.db.context import system_actor
from app.db.runtime.store import RuntimeStore
from app.db.triggers import DEPTH_MAX
from app.runtime import deliveries
from app.runtime.deliveries import Claimed, Result

if TYPE_CHECKING:
    from app.worker.http_sender import Sender

Store = RuntimeStore[Any, Any]
"""The group's, or a member's."""
ACTOR: Final = system_actor("deliveries")
_LEASE_SHARE: Final = 2
"""A part of the program may take the lease divided by this; a webhook's try is far shorter."""


class Teller:
    """Makes the tries of one process."""

    def __init__(
        self,
        room: Strongroom,
        subscribers: Subscribers,
        sender: "Sender | None",
        random: Callable[[float, float], float],
    ) -> None:
        """Begin; arguments as `Deliveries` has them."""
        self._room = room
        self._subscribers = {each.name: each for each in subscribers}
        self._made = sender
        self._random = random
        self._policy = words.policy_of(room.settings)
        self._told_of_depth: set[str] = set()

    async def close(self) -> None:
        """Let every connection go."""
        if self._made is not None:
            await self._made.close()

    def _sender(self) -> "Sender":
        if self._made is None:
            from app.worker.http_sender import Sender  # noqa: PLC0415 - only who sends needs it

            settings = self._room.settings
            self._made = Sender(settings.delivery_timeout_s, settings.webhook_networks)
        return self._made

    async def tell(self, claimed: Claimed, *, is_group: bool) -> Result | None:
        """Make one try.

        Args:
            claimed: What is told, and to whom.
            is_group: Whether it is of the group's store.

        Returns:
            How it went; None when its subscriber may not be told.
        """
        try:
            if claimed.target.url is None:
                return await self._tell_part(claimed)
            if is_group and not await words.may_be_told(self._room, claimed):
                return None
            message = words.message_of(self._room, claimed, is_group=is_group)
            return await self._sender().send(message)
        except Exception as error:  # noqa: BLE001 - the boundary of a try
            telemetry.unexpected("delivery", error)
            return Result("internal")

    async def _tell_part(self, claimed: Claimed) -> Result:
        subscriber = self._subscribers.get(claimed.target.name or "")
        if subscriber is None:
            return Result("unknown_subscriber")
        told = internal.told_of(claimed)
        if told.actor.depth > DEPTH_MAX and subscriber.name not in self._told_of_depth:
            self._told_of_depth.add(subscriber.name)
            telemetry.delivery_chain_ended(subscriber.name)
        try:
            async with asyncio.timeout(self._room.settings.delivery_lease_s / _LEASE_SHARE):
                await subscriber.handle(self._room, told)
        except TimeoutError:
            return Result("timeout")
        return Result()

    async def mark(self, store: Store, claimed: Claimed, result: Result | None) -> None:
        """Record how a try went, as `tell` says it."""
        kind: metrics.DeliveryKind = "internal" if claimed.target.url is None else "webhook"
        if result is None:
            await store.write(lambda tx: deliveries.drop(tx, claimed), ACTOR)
            metrics.delivery_tried(kind, "cancelled")
            return
        jitter = self._room.settings.delivery_jitter
        factor = self._random(1 - jitter, 1 + jitter)
        settled, turn = await store.write(
            lambda tx: deliveries.settle(tx, claimed, result, self._policy, factor), ACTOR
        )
        metrics.delivery_tried(kind, settled)
        if settled == "dead":
            telemetry.delivery_dead(result.failure or "")
        if turn is not None:
            metrics.breaker_turned(turn)
        if turn == "open":
            telemetry.breaker_opened()
