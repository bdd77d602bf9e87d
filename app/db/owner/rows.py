"""Rows of an owner's store, as its statements give them. Times are unix milliseconds UTC."""

from typing import NamedTuple

from typing_extensions import override

from app.ids import DekId, NoteId, ReportId, SessionId, UserId


class IdentityRow(NamedTuple):
    """Whose file this is."""

    owner_id: str
    dek_id: DekId | None
    epoch: str
    format: int
    path_key: bytes
    created_at: int

    @override
    def __repr__(self) -> str:
        return f"<IdentityRow {self.owner_id}>"  # the key stays out of every traceback


class SmallNoteRow(NamedTuple):
    """A note as the event loop reads it: each column more is felt here."""

    version: int
    content: str | None
    """None when it is larger than was asked for."""


class NoteMetaRow(NamedTuple):
    """A note without its content."""

    id: NoteId
    path: str
    size_bytes: int
    lines: int
    version: int
    author: str
    created_at: int
    updated_at: int


class NoteRow(NamedTuple):
    """A note with its content."""

    id: NoteId
    path: str
    size_bytes: int
    lines: int
    version: int
    author: str
    created_at: int
    updated_at: int
    content: str


class MatchRow(NamedTuple):
    """A note that a search found; the better the higher its score."""

    path: str
    score: float
    updated_at: int
    beginning: str


class VersionRow(NamedTuple):
    """A version without its text."""

    version: int
    doc_id: NoteId
    size_bytes: int
    author: str
    via: str
    created_at: int
    is_deletion: int


class VersionTextRow(NamedTuple):
    """A version with its text."""

    version: int
    doc_id: NoteId
    size_bytes: int
    author: str
    via: str
    created_at: int
    content: str | None
    """None for a deletion."""


class ReportMetaRow(NamedTuple):
    """A report without its body."""

    id: ReportId
    kind: str
    title: str
    summary: str | None
    severity: str
    subject_user_id: UserId | None
    audience: str
    period_start: int | None
    period_end: int | None
    produced_by: str
    producer_user_id: UserId
    run_id: str | None
    metadata: str
    read_at: int | None
    read_by: UserId | None
    created_at: int


class ReportRow(NamedTuple):
    """A report with its body."""

    id: ReportId
    kind: str
    title: str
    summary: str | None
    severity: str
    subject_user_id: UserId | None
    audience: str
    period_start: int | None
    period_end: int | None
    produced_by: str
    producer_user_id: UserId
    run_id: str | None
    metadata: str
    read_at: int | None
    read_by: UserId | None
    created_at: int
    body: str


class ReadMarkRow(NamedTuple):
    """Who read a report first, and when."""

    read_at: int
    read_by: UserId


class SecretRow(NamedTuple):
    """One secret's value."""

    value: bytes

    @override
    def __repr__(self) -> str:
        return "<SecretRow>"


class AccessRow(NamedTuple):
    """One opening of the store."""

    id: int
    at: int
    session_id: SessionId | None
    agent_id: str | None
    way: str
    network: str


class NumberRow(NamedTuple):
    """One number."""

    value: int


class TextRow(NamedTuple):
    """One text."""

    value: str


class BlobRow(NamedTuple):
    """Bytes that belong to the store, without the bytes."""

    id: str
    file_id: str
    name: str | None
    media_type: str
    doc_id: NoteId | None
    report_id: ReportId | None
    author: str
    created_at: int
    size_bytes: int
    digest: bytes
    """Keyed, of the content: the same inside one store for the same bytes."""
    note_path: str | None
    """Where the note that it hangs on stands now; None for none, or one that was deleted."""


class MaybeTextRow(NamedTuple):
    """One text, or none."""

    value: str | None


class ReportRightsRow(NamedTuple):
    """What decides who may read a report."""

    subject_user_id: UserId | None
    producer_user_id: UserId
    audience: str


class ActRow(NamedTuple):
    """What somebody else did to the owner's account."""

    id: int
    occurred_at: int
    entity: str
    record_id: str | None
    """NULL: copied before it was kept."""
    kind: str
    actor_sub: str
    action: str
    fields: str | None


class LastActRow(NamedTuple):
    """The act that was copied last."""

    source: str
    seq: int


class ScheduledJobRow(NamedTuple):
    """What a schedule is for, and whether it runs."""

    id: str
    title: str
    description: str | None
    prompt: str | None
    agent_id: str | None
    session_id: str | None
    run_context: str | None
    running_session_id: str | None
    running_since: int | None
    last_run_at: int | None


class JobRunRow(NamedTuple):
    """How a run of a schedule ended; status and what follows it are None while it runs."""

    id: str
    job_id: str
    session_id: str | None
    started_at: int
    completed_at: int | None
    duration_ms: int | None
    status: str | None
    final_response: str | None
    error: str | None


class ExpendableRow(NamedTuple):
    """A version that may go when there are too many."""

    path: str
    version: int
    size_bytes: int


class PendingWriteRow(NamedTuple):
    """What an agent wants to write, until its member decides."""

    id: str
    tool: str
    path: str
    """Canonical, with its root."""
    content: str | None
    arguments: str
    """JSON."""
    base_version: str | None
    agent_id: str | None
    size_bytes: int
    created_at: int
    expires_at: int

    @override
    def __repr__(self) -> str:
        return f"<PendingWriteRow {self.id}>"  # what a member may refuse is in no traceback


class PendingFactsRow(NamedTuple):
    """The same as the registry may know it: no path, no text."""

    id: str
    tool: str
    root: str
    agent_id: str | None
    size_bytes: int
    created_at: int
    expires_at: int
