"""Reports: written once, read in lists without bodies, marked by their first reader.

In the group's store `may_read_report` alone decides who reads a report, in lists, single
reads, marks and removals alike. In a member's own store whoever has the store may.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

from app.clock import Millis
from app.db.owner import statements
from app.db.owner.rows import ReadMarkRow, ReportMetaRow, ReportRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.ids import ReportId, UserId, is_uuid
from app.owner.cursor import END, place_before
from app.owner.text import measure

Severity = Literal["info", "notice", "alert"]
Audience = Literal["owner", "admins", "supervisors"]

_BATCH: Final = 200


Report = ReportRow
"""A report with its body."""

ReportSummary = ReportMetaRow
"""A report without it."""

ReadMark = ReadMarkRow
"""Who read a report first, and when."""


@dataclass(frozen=True, slots=True)
class NewReport:
    """A report as it is written."""

    kind: str
    title: str
    body: str
    produced_by: str
    """The name of what made it."""
    summary: str | None = None
    severity: Severity = "info"
    audience: Audience = "owner"
    subject_user_id: UserId | None = None
    """The member it is about; None for no one."""
    period_start: Millis | None = None
    period_end: Millis | None = None
    run_id: str | None = None
    metadata: Mapping[str, int | float] = field(default_factory=dict)
    """Counters, never contents."""

    @property
    def size_bytes(self) -> int:
        """About what it adds to a store: its texts, UTF-8."""
        return sum(measure(text or "") for text in (self.title, self.summary, self.body))


class ReportCursor(NamedTuple):
    """A place in the list: the report that ended the page before."""

    created_at: int
    id: ReportId


@dataclass(frozen=True, slots=True)
class ReportFilter:
    """Which reports to list; all by default."""

    kind: str | None = None
    unread: bool = False
    since: Millis | None = None
    """Made at this time or later."""
    subject: UserId | None = None


class ReportPage(NamedTuple):
    """A part of the list."""

    items: list[ReportMetaRow]
    next: ReportCursor | None
    """Where to go on; None at the end."""


@dataclass(frozen=True, slots=True)
class ReportRights:
    """What decides which of the group's reports a member may read, as of this request."""

    user_id: UserId
    is_admin: bool
    subjects: frozenset[UserId]
    """Whom the member supervises now."""


class ReportFacts(Protocol):
    """What decides who may read a report."""

    @property
    def subject_user_id(self) -> UserId | None:
        """Whom it is about."""

    @property
    def producer_user_id(self) -> UserId:
        """Who made it."""

    @property
    def audience(self) -> str:
        """For whom it is."""


def may_read_report(report: ReportFacts, rights: ReportRights) -> bool:
    """Whether a member may read one of the group's reports, mark it read and remove it.

    Its subject never may, whatever their role, nor as its producer; its producer always may;
    then administrators what is for administrators, and supervisors of the subject what is
    for supervisors. An administrator needs an edge of supervision for these like anyone.

    Args:
        report: One of the group's, with or without its body.
        rights: The caller's, as of this request.

    Returns:
        False as well for what is for an owner alone: it has no business in the group's store.
    """
    if report.subject_user_id == rights.user_id:
        return False
    if report.producer_user_id == rights.user_id:
        return True
    if report.audience == "admins":
        return rights.is_admin
    return report.audience == "supervisors" and report.subject_user_id in rights.subjects


def add_report(tx: OwnerTransactor, new: NewReport, producer_user_id: UserId) -> ReportRow:
    """Write a report.

    Returns:
        It, unread.

    Raises:
        InvalidInputError: For supervisors without a subject, a period that ends before it
            begins, a text that cannot be stored, or a counter that is no finite number.
    """
    if new.audience == "supervisors" and new.subject_user_id is None:
        raise InvalidInputError(field="subject_user_id")
    if new.period_start and new.period_end and new.period_end < new.period_start:
        raise InvalidInputError(field="period_end")
    for text in (new.kind, new.title, new.body, new.produced_by, new.summary, new.run_id):
        measure(text or "")
    [report] = tx.run(
        statements.ADD_REPORT,
        id=tx.new_id(),
        kind=new.kind,
        title=new.title,
        summary=new.summary,
        severity=new.severity,
        subject_user_id=new.subject_user_id,
        audience=new.audience,
        period_start=new.period_start,
        period_end=new.period_end,
        produced_by=new.produced_by,
        producer_user_id=producer_user_id,
        run_id=new.run_id,
        metadata=_json(new.metadata),
        now=tx.now_ms,
        body=new.body,
    )
    return report


def find_report(reader: OwnerReader, report_id: str) -> ReportRow | None:
    """A report with its body; None when there is none, or the id is no id."""
    return reader.one(statements.FIND_REPORT, id=report_id) if is_uuid(report_id) else None


def list_reports(
    reader: OwnerReader,
    which: ReportFilter,
    before: ReportCursor | None,
    limit: int,
    may: Callable[[ReportMetaRow], bool] | None = None,
) -> ReportPage:
    """A page of reports, newest first, without bodies.

    Args:
        reader: The store.
        which: The reports to list.
        before: The place where the page before ended; None for the newest.
        limit: Most reports on the page, at least 1.
        may: Whether the caller may read one; None for all, as in a member's own store. A
            page is filled with what passes, and whatever does not leaves no trace in it.

    Returns:
        The page. It may be followed by an empty one.

    Raises:
        InvalidInputError: A text of the filter or cursor that no report has.
    """
    for text in (which.kind, which.subject, before and before.id):
        measure(text or "")
    items: list[ReportMetaRow] = []
    place = before or ReportCursor(END, ReportId(""))
    while rows := _batch(reader, which, place):
        for row in rows:
            place = ReportCursor(row.created_at, row.id)
            if may is None or may(row):
                items.append(row)
                if len(items) == limit:
                    return ReportPage(items, place)
    return ReportPage(items, None)


def mark_read(tx: OwnerTransactor, report_id: str, reader_user_id: UserId) -> ReadMarkRow:
    """Mark a report as read, unless somebody did before.

    Returns:
        The mark as it stands: the first reader's.

    Raises:
        NotFoundError: There is no such report.
    """
    if not is_uuid(report_id):
        raise NotFoundError
    marks = tx.run(statements.SET_REPORT_READ, id=report_id, reader=reader_user_id, now=tx.now_ms)
    if marks:
        return marks[0]
    report = find_report(tx, report_id)
    if report is None or report.read_at is None or report.read_by is None:
        raise NotFoundError
    return ReadMarkRow(report.read_at, report.read_by)


def remove_report(tx: OwnerTransactor, report_id: str) -> None:
    """Remove a report, and what hangs on it.

    Raises:
        NotFoundError: There is no such report.
    """
    if not is_uuid(report_id):
        raise NotFoundError
    tx.run(statements.REMOVE_BLOBS_OF_REPORT, report_id=report_id)
    if not tx.run(statements.REMOVE_REPORT, id=report_id):
        raise NotFoundError


def _batch(reader: OwnerReader, which: ReportFilter, place: ReportCursor) -> list[ReportMetaRow]:
    return reader.all(
        statements.LIST_REPORTS,
        before_at=place_before(place.created_at),
        before_id=place.id,
        since=which.since or 0,
        kind=which.kind,
        subject=which.subject,
        unread=which.unread,
        limit=_BATCH,
    )


def _json(counters: Mapping[str, int | float]) -> str:
    try:
        return json.dumps(dict(counters), allow_nan=False)
    except ValueError as error:
        raise InvalidInputError(field="counters") from error
