"""The record of changes, for administrators: `/api/admin/audit`."""

import json
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as FromQuery

from app.bridge.maintenance import audit as bridge
from app.clock import Millis
from app.runtime.audit import Change, ChangeFilter
from app.web import cursors
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import Name, PageQuery, Time, time_or_none

router = APIRouter(route_class=StrictRoute)


class AuditQuery(PageQuery):
    """Which changes."""

    entity: Name | None = None
    record_id: Name | None = None
    actor: Name | None = None
    since: Time | None = None


@router.get("/api/admin/audit")
async def list_audit(query: Annotated[AuditQuery, FromQuery()], ask: AskDep) -> dict[str, object]:
    """Who changed what in the registry and the group's store, newest first.

    Returns:
        A page. `fields` maps each changed field to its values before and after: of content the
        size, of secrets that they changed; times as everywhere. It is null once the fields are
        gone. Changes of reports are not among them.
    """
    which = ChangeFilter(
        entity=query.entity,
        record_id=query.record_id,
        actor=query.actor,
        since=None if query.since is None else Millis(query.since),
    )
    before = cursors.number_of(query.cursor)
    rows = await bridge.list_changes(ask.room, which, before, query.limit + 1)
    return cursors.page_of(rows, query.limit, _item, lambda row: cursors.encode(row.seq))


def _item(row: Change) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "occurred_at": time_or_none(row.occurred_at),
        "entity": row.entity,
        "record_id": row.record_id,
        "ordinal": row.ordinal,
        "kind": row.kind,
        "actor": {"kind": row.actor_kind, "sub": row.actor_sub, "acting_for": row.acting_for},
        "action": row.action,
        "request_id": row.request_id,
        "trace_id": row.trace_id,
        "fields": None if row.fields is None else _fields(json.loads(row.fields)),
    }


def _fields(recorded: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The fields as they are shown: a column `..._at` is a time, which is on record as a number."""
    return {
        name: [time_or_none(each) for each in values] if name.endswith("_at") else values
        for name, values in recorded.items()
    }
