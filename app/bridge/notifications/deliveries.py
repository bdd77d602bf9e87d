"""What webhooks are sent: to whom, in which words, under which signature."""

import json
import secrets
from dataclasses import dataclass
from typing import Any, Final

from app.bridge.notifications import events
from app.bridge.strongroom import Strongroom
from app.clock import rfc3339
from app.crypto import envelope, signatures
from app.crypto.envelope import UnwrapError
from app.db.registry import statements as sql
from app.db.registry.store import RegistryReader
from app.errors.stores import StoreDamagedError
from app.runtime.breakers import Rule
from app.runtime.deliveries import Claimed, Policy
from app.settings import Settings

_TABLE: Final = "sys_subscriptions"
_COLUMN: Final = "secret"
_MS: Final = 1000


@dataclass(frozen=True, slots=True, repr=False)
class Message:
    """One try of a delivery, whole."""

    url: str
    headers: dict[str, str]
    body: bytes


def policy_of(settings: Settings) -> Policy:
    """When deliveries are tried, from the settings."""
    return Policy(
        retries_ms=[int(pause * _MS) for pause in settings.delivery_retries_s],
        lease_ms=int(settings.delivery_lease_s * _MS),
        breaker=Rule(
            settings.breaker_failures, [int(pause * _MS) for pause in settings.breaker_pauses_s]
        ),
    )


def kept_secret(room: Strongroom, webhook_id: str, secret: bytes, *, is_under_key: bool) -> bytes:
    """A webhook's secret as its store keeps it.

    Args:
        room: The service.
        webhook_id: To which a sealed one is bound.
        secret: As it signs.
        is_under_key: Whether the store's file is encrypted.

    Returns:
        As it is in an encrypted file; in any other sealed under the instance key, which no
        copy of the file has.
    """
    if is_under_key:
        return secret
    key = room.instance_key.secrets
    return envelope.seal(key, secret, table=_TABLE, column=_COLUMN, row_id=webhook_id)


def _secret(room: Strongroom, webhook_id: str, kept: bytes) -> bytes:
    # Its length tells: a seal is longer.
    if len(kept) == signatures.SECRET_BYTES:
        return kept
    key = room.instance_key.secrets
    try:
        return envelope.open_sealed(key, kept, table=_TABLE, column=_COLUMN, row_id=webhook_id)
    except UnwrapError as error:
        raise StoreDamagedError from error


async def may_be_told(room: Strongroom, claimed: Claimed) -> bool:
    """Whether who made a webhook in the group's store may see the event now."""

    def judge(reader: RegistryReader) -> bool:
        account = reader.one(sql.FIND_ACCOUNT, user_id=claimed.target.made_by)
        if account is None or not account.active:
            return False
        return events.may_see(claimed.owed, events.viewer_of(reader, account.id, account.role_id))

    return await room.stores.registry.read(judge)


def message_of(room: Strongroom, claimed: Claimed, *, is_group: bool) -> Message:
    """One try: the same body and id as every other, signed for this moment.

    What a member's own store tells is ids and the type, unless they chose otherwise.

    Args:
        room: The service.
        claimed: A webhook's delivery.
        is_group: Whether it is of the group's store.

    Returns:
        What is sent.

    Raises:
        StoreDamagedError: The secret does not open.
    """
    owed, target = claimed.owed, claimed.target
    data: dict[str, Any] = {
        "event_id": owed.event_id,
        "entity_type": owed.entity_type,
        "entity_id": owed.entity_id,
    }
    if is_group or target.include_content:
        data["payload"] = json.loads(owed.payload)
    body = json.dumps(
        {"type": owed.type, "timestamp": rfc3339(owed.occurred_at), "data": data},
        separators=(",", ":"),
    ).encode()
    now = room.clock()
    kept = [target.secret]
    if target.old_secret_until is not None and target.old_secret_until > now:
        kept.append(target.old_secret)
    keys = [_secret(room, target.id, each) for each in kept if each is not None]
    headers = {
        "content-type": "application/json",
        "user-agent": "Strongroom",
        "webhook-id": claimed.id,
        "webhook-timestamp": str(now // _MS),
        "webhook-signature": signatures.sign(keys, claimed.id, now // _MS, body),
    }
    if owed.trace_id is not None:
        headers["traceparent"] = _trace_parent(owed.trace_id)
    return Message(target.url or "", headers, body)


def _trace_parent(trace_id: str) -> str:
    """The trace that the change was part of, by W3C Trace Context: this try is its next span."""
    # Of zeros alone it would be none.
    span = 1 + secrets.randbelow((1 << 64) - 1)
    return f"00-{trace_id}-{span:016x}-01"
