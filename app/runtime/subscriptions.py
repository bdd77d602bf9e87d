"""Who is told of events: webhooks, and parts of the program itself.

A webhook's secret is kept as its caller gives it: as it is in a file that is under a key, and
sealed in any other.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from app.db.runtime import statements as sql
from app.db.runtime.rows import SubscriberRow, TargetRow, WebhookRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError
from app.errors.inputs import InvalidInputError
from app.runtime.versions import require_version

Webhook = WebhookRow
"""One webhook, without its secret."""
Target = TargetRow
"""Where a delivery goes, and what signs it."""
Subscriber = SubscriberRow
"""Who is told of events, by id and name."""

TYPES_MAX: Final = 50
"""Patterns that one subscription may have."""
TYPE_CHARS_MAX: Final = 100
_PATTERN: Final = re.compile(r"\*|[a-z][a-z0-9_]*\.(\*|[a-z][a-z0-9_]*)")
INTERNAL: Final = "internal:"
"""Begins what a part of the program is reached by; no url does."""
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """What a webhook is to be."""

    url: str
    event_types: Sequence[str]
    include_content: bool
    description: str | None


def require_types(event_types: Sequence[str]) -> None:
    """Refuse what names no event: a type is `entity.what`, `entity.*` all of one, `*` all.

    Raises:
        InvalidInputError: One of them does, there is none, or there are too many.
    """
    if not 0 < len(event_types) <= TYPES_MAX:
        raise InvalidInputError(field="event_types")
    for each in event_types:
        if len(each) > TYPE_CHARS_MAX or not _PATTERN.fullmatch(each):
            raise InvalidInputError(field="event_types")


def connection_of(target: Target | Subscriber) -> str:
    """What a target is reached by, `https://example.com:443`; a part of the program by its name."""
    if target.url is None:
        return f"{INTERNAL}{target.name}"
    url = urlsplit(target.url)
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    return f"{url.scheme}://{host}:{url.port or _PORTS[url.scheme]}"


def add_webhook(  # noqa: PLR0913, PLR0917 - each is one column
    tx: RuntimeTransactor, new: NewWebhook, webhook_id: str, secret: bytes, made_by: str, most: int
) -> Webhook:
    """Make one, enabled.

    Args:
        tx: In its home.
        new: What it is to be; its url was judged.
        webhook_id: Its id, to which a sealed secret is bound.
        secret: As it is to be kept.
        made_by: Whose it is.
        most: How many of theirs a home may have.

    Returns:
        It.

    Raises:
        InvalidInputError: Its types name no event.
        ConflictError: They have as many webhooks here as they may.
    """
    require_types(new.event_types)
    count = tx.one(sql.COUNT_WEBHOOKS, made_by=made_by)
    if count is not None and count.value >= most:
        raise ConflictError
    tx.run(
        sql.ADD_WEBHOOK,
        id=webhook_id,
        url=new.url,
        secret=secret,
        event_types=_types(new.event_types),
        include_content=new.include_content,
        description=new.description,
        made_by=made_by,
        now=tx.now_ms,
    )
    return get_webhook(tx, webhook_id, made_by)


def list_webhooks(reader: RuntimeReader, made_by: str, after: str, limit: int) -> list[Webhook]:
    """One member's, in the order of their making, after an id."""
    return reader.all(sql.LIST_WEBHOOKS, made_by=made_by, after=after, limit=limit)


def get_webhook(reader: RuntimeReader, webhook_id: str, made_by: str) -> Webhook:
    """One member's own.

    Returns:
        It.

    Raises:
        NotFoundError: There is none, or it is another's.
    """
    row = reader.one(sql.FIND_WEBHOOK, id=webhook_id, made_by=made_by)
    if row is None:
        raise NotFoundError
    return row


def set_webhook(
    tx: RuntimeTransactor,
    webhook_id: str,
    made_by: str,
    changes: Mapping[str, Any],
    match: frozenset[int] | None,
) -> Webhook:
    """Change one.

    Args:
        tx: In its home.
        webhook_id: Which.
        made_by: Whose it must be.
        changes: Any of url, event_types, include_content, enabled, description; what is left
            out stays.
        match: The versions of which one must stand; None for any.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none, or it is another's.
        VersionConflictError: Another version stands.
        InvalidInputError: Its types name no event.
    """
    row = get_webhook(tx, webhook_id, made_by)
    require_version(row.version, match)
    types = changes.get("event_types", json.loads(row.event_types))
    require_types(types)
    changed = row._replace(
        url=changes.get("url", row.url),
        event_types=_types(types),
        include_content=int(changes.get("include_content", row.include_content)),
        description=changes.get("description", row.description),
        enabled=int(changes.get("enabled", row.enabled)),
    )
    if changed == row:
        return row
    tx.run(
        sql.SET_WEBHOOK,
        id=row.id,
        url=changed.url,
        event_types=changed.event_types,
        include_content=changed.include_content,
        description=changed.description,
        enabled=changed.enabled,
        now=tx.now_ms,
    )
    if changed.url != row.url:
        tx.run(sql.RELEASE_SUBSCRIPTION, subscription_id=row.id)
    return get_webhook(tx, webhook_id, made_by)


def set_secret(  # noqa: PLR0913, PLR0917 - each is one column
    tx: RuntimeTransactor,
    webhook_id: str,
    made_by: str,
    secret: bytes,
    until_ms: int,
    match: frozenset[int] | None,
) -> Webhook:
    """Give one a new secret; the old one signs as well until then.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none, or it is another's.
        VersionConflictError: Another version stands.
    """
    require_version(get_webhook(tx, webhook_id, made_by).version, match)
    tx.run(sql.SET_WEBHOOK_SECRET, id=webhook_id, secret=secret, until=until_ms, now=tx.now_ms)
    return get_webhook(tx, webhook_id, made_by)


def remove_webhook(
    tx: RuntimeTransactor, webhook_id: str, made_by: str, match: frozenset[int] | None
) -> None:
    """Take one away, with every delivery that it is owed.

    Raises:
        NotFoundError: There is none, or it is another's.
        VersionConflictError: Another version stands.
    """
    require_version(get_webhook(tx, webhook_id, made_by).version, match)
    tx.run(sql.REMOVE_WEBHOOK, id=webhook_id)


def declare(tx: RuntimeTransactor, wanted: Mapping[str, Sequence[str]]) -> bool:
    """Have exactly these parts of the program told of events.

    Args:
        tx: In the group's store.
        wanted: Name to event types.

    Returns:
        Whether anything was changed.
    """
    present = {row.name: row for row in tx.all(sql.LIST_INTERNAL)}
    is_changed = False
    for name, types in wanted.items():
        require_types(types)
        row = present.pop(name, None)
        if row is None or not row.enabled or row.event_types != _types(types):
            tx.run(
                sql.SET_INTERNAL,
                id=tx.new_id(),
                name=name,
                event_types=_types(types),
                now=tx.now_ms,
            )
            is_changed = True
    for row in present.values():
        gone = tx.run(sql.DISABLE_SUBSCRIPTION, id=row.id, reason="unknown", now=tx.now_ms)
        is_changed = is_changed or bool(gone)
    return is_changed


def is_declared(reader: RuntimeReader, wanted: Mapping[str, Sequence[str]]) -> bool:
    """Whether `declare` would change nothing."""
    enabled = {row.name: row.event_types for row in reader.all(sql.LIST_INTERNAL) if row.enabled}
    return enabled == {name: _types(types) for name, types in wanted.items()}


def _types(event_types: Sequence[str]) -> str:
    return json.dumps(list(dict.fromkeys(event_types)))
