"""Reports: `/api/reports`."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge.content import reports as bridge
from app.bridge.content.reports import Home
from app.clock import Millis
from app.ids import ReportId, UserId
from app.owner import reports
from app.owner.reports import (
    NewReport,
    ReadMark,
    Report,
    ReportCursor,
    ReportFilter,
    ReportSummary,
)
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import (
    Body,
    Identifier,
    Line,
    Name,
    PageQuery,
    Text,
    Time,
    page,
    time_or_none,
)

router = APIRouter(route_class=StrictRoute)

Severity = Literal["info", "notice", "alert"]
_WHOLE_MAX = 2**53
Counter = (
    Annotated[int, Field(ge=-_WHOLE_MAX, le=_WHOLE_MAX)]
    | Annotated[float, Field(ge=-_WHOLE_MAX, le=_WHOLE_MAX, allow_inf_nan=False)]
)


class ReportBody(Body):
    """A report to be written."""

    kind: Name
    title: Annotated[Line, Field(min_length=1)]
    body: Text
    produced_by: Name
    summary: Text | None = None
    severity: Severity = "info"
    audience: Literal["owner", "admins", "supervisors"] = "owner"
    subject_user_id: Identifier | None = None
    period_start: Time | None = None
    period_end: Time | None = None
    run_id: Identifier | None = None
    metadata: Annotated[dict[Name, Counter], Field(max_length=100)] = Field(default={})


class ReportsQuery(PageQuery):
    """Which reports."""

    home: Home = "own"
    kind: Name | None = None
    unread: bool = False
    since: Time | None = None
    subject: Identifier | None = None


def _summary(home: str, row: ReportSummary | Report) -> dict[str, Any]:
    return {
        "id": row.id,
        "home": home,
        "kind": row.kind,
        "title": row.title,
        "summary": row.summary,
        "severity": row.severity,
        "subject_user_id": row.subject_user_id,
        "audience": row.audience,
        "period_start": time_or_none(row.period_start),
        "period_end": time_or_none(row.period_end),
        "produced_by": row.produced_by,
        "producer_user_id": row.producer_user_id,
        "run_id": row.run_id,
        "metadata": json.loads(row.metadata),
        "read_at": time_or_none(row.read_at),
        "read_by": row.read_by,
        "created_at": time_or_none(row.created_at),
    }


def _whole(home: str, row: Report) -> dict[str, Any]:
    return {**_summary(home, row), "body": row.body}


@router.post("/api/reports", status_code=201, response_model=OBJECT)
async def add_report(body: ReportBody, ask: AskDep) -> Response:
    """Write a report; its audience decides whether it lands in one's own store or the group's."""
    new = NewReport(
        kind=body.kind,
        title=body.title,
        body=body.body,
        produced_by=body.produced_by,
        summary=body.summary,
        severity=body.severity,
        audience=body.audience,
        subject_user_id=None if body.subject_user_id is None else UserId(body.subject_user_id),
        period_start=None if body.period_start is None else Millis(body.period_start),
        period_end=None if body.period_end is None else Millis(body.period_end),
        run_id=body.run_id,
        metadata=body.metadata,
    )
    return await ask.once(
        lambda call: bridge.add(ask.room, ask.caller, call, new),
        as_json(lambda made: _summary(*made), 201),
    )


@router.get("/api/reports")
async def list_reports(query: Annotated[ReportsQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Reports of one home that the caller may read, newest first, without bodies."""
    place = cursors.place_of(query.cursor)
    before = ReportCursor(place[0], ReportId(place[1])) if place else None
    which = ReportFilter(
        kind=query.kind,
        unread=query.unread,
        since=None if query.since is None else Millis(query.since),
        subject=None if query.subject is None else UserId(query.subject),
    )
    may = await bridge.visible(ask.room, ask.caller, query.home)
    found = await bridge.read(
        ask.room,
        ask.caller,
        ask.call,
        query.home,
        lambda reader: reports.list_reports(reader, which, before, query.limit, may),
    )
    following = cursors.encode(*found.next) if found.next else None
    return page([_summary(query.home, row) for row in found.items], following)


@router.get("/api/reports/{home}/{report_id}")
async def get_report(home: Home, report_id: str, ask: AskDep) -> dict[str, Any]:
    """One report with its body."""
    may = await bridge.visible(ask.room, ask.caller, home)
    row = await bridge.read(
        ask.room, ask.caller, ask.call, home, lambda reader: bridge.get(reader, report_id, may)
    )
    return _whole(home, row)


def _mark(mark: ReadMark) -> dict[str, Any]:
    return {"read_at": time_or_none(mark.read_at), "read_by": mark.read_by}


@router.post("/api/reports/{home}/{report_id}/read", response_model=OBJECT)
async def mark_read(home: Home, report_id: str, ask: AskDep) -> Response:
    """Mark a report read; the first reader wins."""
    bridge.require_may_change(ask.caller, home)
    may = await bridge.visible(ask.room, ask.caller, home)
    return await ask.once(
        lambda call: bridge.write(
            ask.room,
            ask.caller,
            call,
            home,
            lambda tx: reports.mark_read(tx, bridge.get(tx, report_id, may).id, ask.caller.user_id),
            judge=lambda reader: bridge.get(reader, report_id, may),
        ),
        as_json(_mark),
    )


@router.delete("/api/reports/{home}/{report_id}", status_code=204)
async def delete_report(home: Home, report_id: str, ask: AskDep) -> Response:
    """Take a report away: its producer, or whoever may read it."""
    bridge.require_may_change(ask.caller, home)
    may = await bridge.visible(ask.room, ask.caller, home)
    return await ask.once(
        lambda call: bridge.write(
            ask.room,
            ask.caller,
            call,
            home,
            lambda tx: reports.remove_report(tx, bridge.get(tx, report_id, may).id),
        ),
        no_content,
    )
