"""Deliveries at work in a service without HTTP: webhooks made at once, their ends on this box."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from app.bridge.callers import Caller
from app.bridge.notifications import webhooks
from app.bridge.notifications.subscribers import Subscribers
from app.bridge.notifications.webhooks import Home
from app.bridge.strongroom import Strongroom
from app.db.owner.store import OwnerStore
from app.db.runtime import statements as sql
from app.runtime import delivery_list
from app.runtime.delivery_list import LAST_ID, Delivery
from app.runtime.subscriptions import NewWebhook
from app.worker.deliveries import Deliveries
from tests.support.endpoint import Endpoint
from tests.support.rooms import CALL

NOTES: Final = ("memory_doc.*",)
CHOSEN: Final = {
    "webhook_networks": "127.0.0.0/8",
    "delivery_poll_s": 0.02,
    "delivery_look_s": 0.05,
}
"""Settings of a service that looks often, and may reach this box."""


@contextlib.asynccontextmanager
async def delivering(room: Strongroom, subscribers: Subscribers = ()) -> AsyncIterator[Deliveries]:
    """Have what is owed sent until the end of the context, as a worker does."""
    made = Deliveries(room, subscribers, random=lambda _low, _high: 1.0)
    room.stores.company.append(made)
    loop = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        await made.close()
        await loop
        room.stores.company.remove(made)


async def add_webhook(  # noqa: PLR0913 - each is one column
    room: Strongroom,
    caller: Caller,
    far: Endpoint,
    home: Home = "own",
    types: Sequence[str] = NOTES,
    *,
    include_content: bool = False,
    path: str = "/hook",
) -> tuple[str, str]:
    """Make one that leads to an endpoint; its id and secret."""
    new = NewWebhook(far.url(path), types, include_content, description=None)
    row, secret = await webhooks.add(room, caller, CALL, home, new)
    return row.id, secret


async def until(is_so: Callable[[], bool]) -> None:
    """Let the others work until something is so; the test's time-out ends a vain wait."""
    while not is_so():  # noqa: ASYNC110 - what is waited for knows nothing of the test
        await asyncio.sleep(0.005)


async def all_of(store: OwnerStore) -> list[Delivery]:
    """Every delivery of a store, the oldest first; to look is no use of it."""
    rows = await store.watch(lambda reader: delivery_list.list_all(reader, LAST_ID, 1000))
    return rows[::-1]


async def declared(store: OwnerStore) -> None:
    """Wait until parts of the program are told of a store's events."""
    # What is waited for knows nothing of the test.
    while not await store.watch(lambda reader: reader.all(sql.LIST_INTERNAL)):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def settled(store: OwnerStore, *statuses: str) -> list[Delivery]:
    """Wait until every delivery of a store has one of these statuses."""
    while True:
        rows = await all_of(store)
        if rows and all(row.status in statuses for row in rows):
            return rows
        await asyncio.sleep(0.005)
