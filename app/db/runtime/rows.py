"""Rows of the system tables, as their statements give them."""

from typing import NamedTuple

from typing_extensions import override


class StepRow(NamedTuple):
    """One step of an operation that spans files."""

    name: str
    fingerprint: str
    """Of what it was asked."""
    sent_at: int
    answered_at: int | None
    answer: str | None


class RecordRow(NamedTuple):
    """One operation that spans files."""

    key: str
    action: str
    subject: str
    shape: str
    """Names of its steps, by comma."""
    started_at: int
    generation: int
    """Of its runner."""
    diverged: int
    """Whether it is left to a person."""
    alerted_at: int | None
    """When the operator was told that it takes long; None until then."""


class NameRow(NamedTuple):
    """One name."""

    value: str


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
    version: int


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


class WebhookRow(NamedTuple):
    """One webhook, without its secret."""

    id: str
    url: str
    event_types: str
    include_content: int
    enabled: int
    disabled_reason: str | None
    description: str | None
    made_by: str
    created_at: int
    updated_at: int
    version: int

    @override
    def __repr__(self) -> str:
        return f"<WebhookRow {self.id}>"  # an address may hold a secret of its own


class SubscriberRow(NamedTuple):
    """Who is told of events."""

    id: str
    name: str | None
    url: str | None

    @override
    def __repr__(self) -> str:
        return f"<SubscriberRow {self.id}>"  # an address may hold a secret of its own


class InternalRow(NamedTuple):
    """A part of the program that is told of events."""

    id: str
    name: str
    event_types: str
    enabled: int


class TargetRow(NamedTuple):
    """Where a delivery goes, and what signs it."""

    id: str
    kind: str
    name: str | None
    url: str | None
    secret: bytes | None
    old_secret: bytes | None
    old_secret_until: int | None
    include_content: int
    made_by: str

    @override
    def __repr__(self) -> str:
        return f"<TargetRow {self.id}>"  # the secrets stay out of every traceback


class ClaimRow(NamedTuple):
    """One delivery, as whoever took it needs it."""

    id: str
    event_seq: int
    subscription_id: str
    attempts: int
    generation: int


class OwedRow(NamedTuple):
    """What a delivery tells: an event, as it was."""

    event_seq: int
    event_id: str
    occurred_at: int
    type: str
    entity_type: str
    entity_id: str
    audience: str
    payload: str
    encoding: int | None
    trace_id: str | None
    depth: int


class ProbeRow(NamedTuple):
    """A held delivery that may try its connection."""

    id: str
    subscription_id: str
    next_attempt_at: int


class DeliveryRow(NamedTuple):
    """One delivery, without what it tells."""

    id: str
    type: str
    event_id: str
    subscription_id: str
    kind: str
    name: str | None
    status: str
    attempts: int
    next_attempt_at: int
    last_failure: str | None
    last_status: int | None
    connection: str | None
    held_since: int | None
    created_at: int
    finished_at: int | None
    version: int


class BreakerRow(NamedTuple):
    """How a connection has done of late."""

    connection: str
    state: str
    failures: int
    pauses: int
    opened_at: int | None
    next_probe_at: int | None
    alerted_at: int | None
    version: int


class ScheduleRow(NamedTuple):
    """What is due again and again, and where it stands."""

    id: str
    name: str
    cron: str | None
    interval_s: int | None
    timezone: str
    kind: str
    is_outside: int
    payload: str
    catch_up: str
    enabled: int
    single_run: int
    next_due_at: int | None
    last_due_at: int | None
    last_tick_at: int | None
    created_at: int
    updated_at: int
    version: int


class ScheduleRunRow(NamedTuple):
    """What became of a tick, and of its job while that is kept."""

    due_at: int
    by_hand: int
    ticks: int
    last_due_at: int
    outcome: str
    reason: str | None
    job_id: str | None
    ticked_at: int
    job_status: str | None
    attempts: int | None
    finished_at: int | None
    last_error: str | None


class HousekeepingRow(NamedTuple):
    """How the rounds in a store go."""

    lease_owner: str | None
    lease_until: int | None
    generation: int
    last_started_at: int | None
    last_completed_at: int | None
    removed: int
