"""Rows of the system tables, as their statements give them."""

from typing import NamedTuple

from typing_extensions import override


class StepRow(NamedTuple):
    """One step of an operation that spans files."""

    name: str
    sent_at: int
    answered_at: int | None
    answer: str | None


class RecordRow(NamedTuple):
    """One operation that spans files."""

    key: str
    action: str
    subject: str
    shape: str
    started_at: int


class AuditRow(NamedTuple):
    """One recorded change."""

    seq: int
    occurred_at: int
    entity: str
    record_id: str
    kind: str
    actor_kind: str
    actor_sub: str
    action: str
    fields: str | None


class NameRow(NamedTuple):
    """One name."""

    value: str


class KeyRow(NamedTuple):
    """A random key of the store."""

    key: bytes

    @override
    def __repr__(self) -> str:
        return "<KeyRow>"


class FileRow(NamedTuple):
    """One file beside the store."""

    id: str
    name: str
    """Of the file; random."""
    key: bytes
    size_bytes: int
    """Of its content."""
    digest: bytes
    """Keyed, of its content."""

    @override
    def __repr__(self) -> str:
        return f"<FileRow {self.id}>"  # the key stays out of every traceback


class FileNameRow(NamedTuple):
    """A file by its name, and how much it holds."""

    name: str
    size_bytes: int


class JobRow(NamedTuple):
    """One job, whole."""

    id: str
    kind: str
    is_outside: int
    payload: str
    dedupe_key: str | None
    status: str
    priority: int
    run_at: int
    attempts: int
    max_attempts: int | None
    timeout_s: int | None
    lease_until: int | None
    generation: int
    last_error: str | None
    result: str | None
    made_by: str
    schedule_id: str | None
    depth: int
    created_at: int
    updated_at: int
    finished_at: int | None
    version: int


class JobSummaryRow(NamedTuple):
    """One job, without what it carries."""

    id: str
    kind: str
    is_outside: int
    dedupe_key: str | None
    status: str
    priority: int
    run_at: int
    attempts: int
    max_attempts: int | None
    timeout_s: int | None
    lease_until: int | None
    generation: int
    last_error: str | None
    made_by: str
    schedule_id: str | None
    created_at: int
    updated_at: int
    finished_at: int | None
    version: int


class ClaimedJobRow(NamedTuple):
    """One job, as whoever took it needs it."""

    id: str
    kind: str
    payload: str
    attempts: int
    timeout_s: int | None
    lease_until: int
    generation: int
    depth: int
    made_by: str


class NextJobRow(NamedTuple):
    """When a store's jobs next want something; NULL for never."""

    run_at: int | None
    lease_until: int | None


class WhenRow(NamedTuple):
    """A time, Unix milliseconds UTC; NULL for never."""

    value: int | None


class JobCountRow(NamedTuple):
    """How many."""

    value: int


class ExpiredJobRow(NamedTuple):
    """What became of a job whose runner was silent."""

    kind: str
    is_outside: int
    status: str


class OperatorActionRow(NamedTuple):
    """What an operator did by hand."""

    id: str
    acted_at: int
    action: str
    item: str
    item_state: str
    operator: str


class IdempotencyRow(NamedTuple):
    """What a key was used for, and what was answered."""

    route: str
    body_mac: bytes
    state: str
    operation: str | None
    status: int | None
    headers: str | None
    body: bytes | None

    @override
    def __repr__(self) -> str:
        return f"<IdempotencyRow {self.route}>"  # what was answered stays out of every traceback


class StoreKeyRow(NamedTuple):
    """One of the store's own random keys."""

    value: bytes

    @override
    def __repr__(self) -> str:
        return "<StoreKeyRow>"  # the key stays out of every traceback


class NumberRow(NamedTuple):
    """One number."""

    value: int


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
