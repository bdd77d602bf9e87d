"""Approvals as administrators see them: `/api/admin/approvals`, `/api/admin/approval-rules`.

Rules are asked at each write of an agent, the lowest priority first; the first that fits
decides. Patterns are globs, `*` across slashes too; a path is the canonical one with its
root; `@fs_read`, `@fs_write` and `@fs_any` name the tools that read texts, write them, or do
either. What no rule fits a person decides. Reads are never asked about, and what nobody else
reads needs nobody's approval: there a rule can only refuse.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge.content import approval_rules as bridge
from app.registry import approval_rules, approvals
from app.registry.approval_rules import PRIORITY_MAX, Action, NewRule, Rule, Source
from app.registry.approvals import Approval
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.owner.approvals import ApprovalsQuery, notice
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import Body, Identifier, Line, PageQuery, time_or_none

router = APIRouter(route_class=StrictRoute, prefix="/api/admin")

_Priority = Annotated[int, Field(ge=0, le=PRIORITY_MAX)]
_ToolPattern = Annotated[Line, Field(min_length=1, max_length=100)]
_PathPattern = Annotated[Line, Field(min_length=1, max_length=1_000)]


class RuleBody(Body):
    """A rule; what is left out is any."""

    tool_pattern: _ToolPattern
    action: Action
    priority: _Priority
    path_pattern: _PathPattern | None = None
    agent_id: Identifier | None = None
    source: Source | None = None
    group_id: Identifier | None = None
    note: Line = ""


class RulePatch(Body):
    """What a rule is to say; a field left out stays."""

    tool_pattern: _ToolPattern = "*"
    action: Action = "require"
    priority: _Priority = 0
    path_pattern: _PathPattern | None = None
    agent_id: Identifier | None = None
    source: Source | None = None
    group_id: Identifier | None = None
    note: Line = ""


def _rule(row: Rule) -> dict[str, Any]:
    return {
        "id": row.id,
        "priority": row.priority,
        "action": row.action,
        "tool_pattern": row.tool_pattern,
        "path_pattern": row.path_pattern,
        "agent_id": row.agent_id,
        "source": row.source,
        "group_id": row.group_id,
        "note": row.note,
        "created_at": time_or_none(row.created_at),
        "updated_at": time_or_none(row.updated_at),
        "version": row.version,
    }


def _of_anybody(row: Approval) -> dict[str, Any]:
    return {**notice(row), "requester_user_id": row.requester_user_id}


@router.get("/approvals")
async def list_all_approvals(
    query: Annotated[ApprovalsQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """Everybody's approvals, newest first: who asked for how much and what became of it."""
    [before] = cursors.ids_of(query.cursor, 1)
    rows = await ask.room.stores.registry.read(
        lambda reader: approvals.list_all(reader, query.status, before or None, query.limit + 1)
    )
    return cursors.page_of(rows, query.limit, _of_anybody, lambda row: cursors.encode(row.id))


@router.get("/approval-rules")
async def list_rules(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Every rule, in the order in which they are asked."""
    rows = await ask.room.stores.registry.read(approval_rules.list_all)
    return cursors.page_of_all(rows, query, _rule, lambda row: row.priority, lambda row: row.id)


@router.post("/approval-rules", status_code=201, response_model=OBJECT)
async def add_rule(body: RuleBody, ask: AskDep) -> Response:
    """Make a rule; it holds from the next write on."""
    new = NewRule(**body.model_dump())
    return await ask.once(
        lambda call: bridge.add(ask.room, ask.caller, call, new),
        as_json(_rule, 201, lambda row: row.version),
    )


@router.get("/approval-rules/{rule_id}")
async def get_rule(rule_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One of them."""
    row = await ask.room.stores.registry.read(lambda reader: approval_rules.get(reader, rule_id))
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return _rule(row)


@router.patch("/approval-rules/{rule_id}", response_model=OBJECT)
async def change_rule(rule_id: str, body: RulePatch, ask: AskDep) -> Response:
    """Have a rule say something else; it holds from the next write on."""
    changes, match = body.model_dump(exclude_unset=True), match_of(ask.request)
    return await ask.once(
        lambda call: bridge.change(ask.room, ask.caller, call, rule_id, changes, match),
        as_json(_rule, version_of=lambda row: row.version),
    )


@router.delete("/approval-rules/{rule_id}", status_code=204)
async def remove_rule(rule_id: str, ask: AskDep) -> Response:
    """Take a rule away; what then fits none a person decides."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.remove(ask.room, ask.caller, call, rule_id, match), no_content
    )
