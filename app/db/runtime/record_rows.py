"""Rows of events and of the record of changes, as their statements give them."""

from typing import NamedTuple


class EventBoundsRow(NamedTuple):
    """Where a log of events begins and ends."""

    last_seq: int
    first_seq: int


class EventRow(NamedTuple):
    """One event."""

    seq: int
    id: str
    occurred_at: int
    entity_type: str
    entity_id: str
    type: str
    actor_kind: str
    actor_sub: str
    acting_for: str | None
    audience: str
    payload: str


class ActRow(NamedTuple):
    """What somebody did to another's account."""

    seq: int
    occurred_at: int
    entity: str
    record_id: str
    kind: str
    actor_sub: str
    action: str
    fields: str | None
    source: str


class AuditChainRow(NamedTuple):
    """One recorded change with all that chains it."""

    seq: int
    entity: str
    record_id: str
    ordinal: int
    occurred_at: int
    kind: str
    actor_kind: str
    actor_sub: str
    acting_for: str | None
    action: str
    request_id: str | None
    trace_id: str | None
    encoding: int | None
    fields: str | None
    salt: bytes | None
    fields_digest: bytes | None
    row_hash: bytes | None


class AuditHeadRow(NamedTuple):
    """The end of the chain."""

    seq: int
    row_hash: bytes | None


class AuditCheckpointRow(NamedTuple):
    """What stands for removed rows."""

    seq: int
    row_hash: bytes
    removed: int


class AuditListRow(NamedTuple):
    """One recorded change, as administrators see it."""

    seq: int
    occurred_at: int
    entity: str
    record_id: str
    ordinal: int
    kind: str
    actor_kind: str
    actor_sub: str
    acting_for: str | None
    action: str
    request_id: str | None
    trace_id: str | None
    fields: str | None
