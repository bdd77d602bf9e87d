"""Rows of the system tables, as their statements give them."""

from typing import NamedTuple


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
