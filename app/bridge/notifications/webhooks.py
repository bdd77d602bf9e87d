"""Webhooks of members: in their own store, or in the group's, where each sees their own alone.

A webhook carries words out of the service for good, so a person makes and changes it, with
their password just checked; an agent's token never does.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal

from app.bridge.callers import Call, Caller
from app.bridge.content import reports as homes
from app.bridge.notifications import webhook_targets
from app.bridge.notifications.deliveries import kept_secret
from app.bridge.strongroom import Strongroom
from app.crypto import signatures
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError
from app.ids import new_uuid7
from app.runtime import delivery_list, subscriptions
from app.runtime.delivery_list import Delivery
from app.runtime.subscriptions import NewWebhook, Webhook
from app.runtime.versions import require_version

Home = Literal["own", "group"]
_HOUR_MS: Final = 3_600_000
Match = frozenset[int] | None
"""The versions of which one must stand; None for any."""


def _is_under_key(caller: Caller, home: Home) -> bool:
    return home == "own" and caller.account.encrypted


def _size_bytes(fields: Mapping[str, Any]) -> int:
    """About what they add to a store: their texts, UTF-8."""
    texts = [fields.get("url"), fields.get("description"), *fields.get("event_types", ())]
    return sum(len((text or "").encode()) for text in texts)


async def add(
    room: Strongroom, caller: Caller, call: Call, home: Home, new: NewWebhook
) -> tuple[Webhook, str]:
    """Make one.

    Returns:
        It, and its secret's text, which is shown this once.

    Raises:
        WebhookUrlError: Its url is none that a webhook may have.
        WebhookTargetError: It leads where webhooks may not go.
        InvalidInputError: Its types name no event.
        ConflictError: The caller has as many as they may.
        QuotaExceededError: The home has no room for it.
    """
    caller.require_human()
    subscriptions.require_types(new.event_types)
    url = await webhook_targets.require_target(new.url, room.settings.webhook_networks)
    new = NewWebhook(url, new.event_types, new.include_content, new.description)
    webhook_id, secret = new_uuid7(room.clock()), signatures.new_secret()
    kept = kept_secret(room, webhook_id, secret, is_under_key=_is_under_key(caller, home))
    most = room.settings.webhooks_max

    def write(tx: OwnerTransactor) -> Webhook:
        return subscriptions.add_webhook(tx, new, webhook_id, kept, caller.user_id, most)

    adds_bytes = _size_bytes(asdict(new))
    row = await homes.write(room, caller, call, home, write, adds_bytes=adds_bytes)
    return row, signatures.secret_text(secret)


async def list_page(  # noqa: PLR0913, PLR0917 - who, where, and which page
    room: Strongroom, caller: Caller, call: Call, home: Home, after: str, limit: int
) -> list[Webhook]:
    """The caller's, in the order of their making, after an id."""

    def read(reader: OwnerReader) -> list[Webhook]:
        return subscriptions.list_webhooks(reader, caller.user_id, after, limit)

    return await homes.read(room, caller, call, home, read)


async def get(room: Strongroom, caller: Caller, call: Call, home: Home, webhook_id: str) -> Webhook:
    """One of the caller's.

    Returns:
        It.

    Raises:
        NotFoundError: There is none, or it is another's.
    """

    def read(reader: OwnerReader) -> Webhook:
        return subscriptions.get_webhook(reader, webhook_id, caller.user_id)

    return await homes.read(room, caller, call, home, read)


async def change(  # noqa: PLR0913, PLR0917 - who, where, which, and what
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    webhook_id: str,
    changes: Mapping[str, Any],
    match: Match,
) -> Webhook:
    """Change one of the caller's.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none, or it is another's.
        VersionConflictError: Another version stands.
        WebhookUrlError: Its url is none that a webhook may have.
        WebhookTargetError: It leads where webhooks may not go.
        InvalidInputError: Its types name no event.
        QuotaExceededError: The home has no room for what it adds.
        Replayed: It was done before.
    """

    def find(reader: OwnerReader) -> None:
        # First whether it is there: where a url leads is told to nobody who has no webhook.
        subscriptions.get_webhook(reader, webhook_id, caller.user_id)
        # Neither a quota that is full by now nor a name that leads elsewhere hides an answer.
        if call.once is not None:
            call.once.require_new(reader)

    await homes.read(room, caller, call, home, find)
    wanted = dict(changes)
    if "url" in wanted:
        networks = room.settings.webhook_networks
        wanted["url"] = await webhook_targets.require_target(wanted["url"], networks)

    def write(tx: OwnerTransactor) -> Webhook:
        return subscriptions.set_webhook(tx, webhook_id, caller.user_id, wanted, match)

    # With no text in it, as when it is switched off, a full store must take it.
    adds_bytes = _size_bytes(wanted) or None
    return await homes.write(room, caller, call, home, write, adds_bytes=adds_bytes)


async def renew_secret(  # noqa: PLR0913, PLR0917 - who, where and which
    room: Strongroom, caller: Caller, call: Call, home: Home, webhook_id: str, match: Match
) -> tuple[Webhook, str]:
    """Give one of the caller's a new secret; the old one signs as well for a while.

    Returns:
        It, and the new secret's text, which is shown this once.

    Raises:
        NotFoundError: There is none, or it is another's.
        VersionConflictError: Another version stands.
    """
    secret = signatures.new_secret()
    kept = kept_secret(room, webhook_id, secret, is_under_key=_is_under_key(caller, home))
    until_ms = room.clock() + room.settings.webhook_secret_hours * _HOUR_MS

    def write(tx: OwnerTransactor) -> Webhook:
        return subscriptions.set_secret(tx, webhook_id, caller.user_id, kept, until_ms, match)

    row = await homes.write(room, caller, call, home, write)
    return row, signatures.secret_text(secret)


async def remove(  # noqa: PLR0913, PLR0917 - who, where and which
    room: Strongroom, caller: Caller, call: Call, home: Home, webhook_id: str, match: Match
) -> None:
    """Take one of the caller's away, with all that it is owed.

    Raises:
        NotFoundError: There is none, or it is another's.
        VersionConflictError: Another version stands.
    """

    def write(tx: OwnerTransactor) -> None:
        subscriptions.remove_webhook(tx, webhook_id, caller.user_id, match)

    await homes.write(room, caller, call, home, write)


async def list_deliveries(  # noqa: PLR0913, PLR0917 - who, where, which, and which page
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    webhook_id: str,
    before: str,
    limit: int,
) -> list[Delivery]:
    """What one of the caller's is owed and was told, newest first.

    Returns:
        At most so many.

    Raises:
        NotFoundError: There is no such webhook, or it is another's.
    """

    def read(reader: OwnerReader) -> list[Delivery]:
        subscriptions.get_webhook(reader, webhook_id, caller.user_id)
        return delivery_list.list_of(reader, webhook_id, before, limit)

    return await homes.read(room, caller, call, home, read)


async def retry(  # noqa: PLR0913, PLR0917 - who, where and which
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    webhook_id: str,
    delivery_id: str,
    match: Match,
) -> Delivery:
    """Have one delivery tried again at once, from the beginning.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none, or it is another's.
        ConflictError: It was taken, is under way, or waits for its first try.
        VersionConflictError: Another version stands.
    """

    def find(reader: OwnerReader) -> Delivery:
        subscriptions.get_webhook(reader, webhook_id, caller.user_id)
        found = delivery_list.get(reader, delivery_id)
        if found.subscription_id != webhook_id:
            raise NotFoundError
        return found

    def write(tx: OwnerTransactor) -> Delivery:
        require_version(find(tx).version, match)
        delivery_list.retry(tx, delivery_id)
        return find(tx)

    return await homes.write(room, caller, call, home, write, judge=find)
