"""Approvals: `/api/approvals`, what the caller's agents asked to write where others read.

Such a write is answered 202 and waits, its text in the member's own store and nowhere else.
The member decides in a session of their own, their password checked within minutes; a token
never can. Approved, it is done once, if what the agent saw stands there still; else it is a
conflict, and nothing is written. An agent may ask how its own request stands.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from fastapi.responses import JSONResponse

from app.bridge.content import approvals
from app.bridge.content.approvals import Entry
from app.bridge.content.asking import Waiting
from app.owner import pending_writes
from app.registry.approvals import Approval, Status
from app.web import cursors
from app.web.answers import OBJECT, as_json
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import PageQuery, page, time_or_none

T = TypeVar("T")
router = APIRouter(route_class=StrictRoute, prefix="/api/approvals")

WAITS: Final[dict[int | str, dict[str, Any]]] = {
    202: {
        "description": "Nothing is written: an agent asked, and its member decides first.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["approval"],
                    "properties": {
                        "approval": {
                            "type": "object",
                            "required": ["id", "expires_at"],
                            "properties": {
                                "id": {"type": "string"},
                                "expires_at": {"type": "string", "format": "date-time"},
                            },
                        }
                    },
                }
            }
        },
    }
}
"""What a route says of writes that wait."""


def or_waiting(render: Callable[[T], Response]) -> Callable[[T | Waiting], Response]:
    """The answer of a write, or 202 where its member decides first."""

    def answer(result: T | Waiting) -> Response:
        if not isinstance(result, Waiting):
            return render(result)
        said = {"id": result.approval_id, "expires_at": time_or_none(result.expires_at)}
        return JSONResponse({"approval": said}, status_code=202)

    return answer


class ApprovalsQuery(PageQuery):
    """A page of approvals; of one status alone, or of all."""

    status: Status | None = None


def notice(row: Approval) -> dict[str, Any]:
    """What of an approval is no secret of its member."""
    return {
        "id": row.id,
        "status": row.status,
        "tool": row.tool,
        "target_root": row.target_root,
        "size_bytes": row.size_bytes,
        "agent_id": row.agent_id,
        "requested_at": time_or_none(row.created_at),
        "expires_at": time_or_none(row.expires_at),
        "decided_at": time_or_none(row.decided_at),
    }


def _entry(entry: Entry) -> dict[str, Any]:
    asked = entry.asked
    if asked is None:
        return {**notice(entry.approval), "path": None, "text": None, "arguments": None}
    wanted = pending_writes.wanted_of(asked)
    return {
        **notice(entry.approval),
        "path": asked.path,
        "text": asked.content,
        "arguments": pending_writes.arguments_of(wanted),
    }


@router.get("")
async def list_approvals(
    query: Annotated[ApprovalsQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """What my agents asked for, newest first; path, text and arguments while it waits.

    A page can end before its limit, where texts are large. `arguments` has what was asked
    beside path and text, named as the calls name it: `edits`, `to`, `version`, `recursive`,
    `purge`.
    """  # noqa: DOC201 - the words are OpenAPI's
    [before] = cursors.ids_of(query.cursor, 1)
    found, has_more = await approvals.list_own(
        ask.room, ask.caller, ask.call, query.status, before or None, query.limit
    )
    following = cursors.encode(found[-1].approval.id) if has_more else None
    return page([_entry(each) for each in found], following)


@router.get("/{approval_id}")
async def get_approval(approval_id: str, ask: AskDep) -> dict[str, Any]:
    """One of them; for the agent that asked how it stands, without path and text."""
    found = await approvals.get(ask.room, ask.caller, ask.call, approval_id)
    return _entry(found) if ask.caller.is_human else notice(found.approval)


def _status(status: Status) -> dict[str, Any]:
    return {"status": status}


@router.post("/{approval_id}/approve", response_model=OBJECT)
async def approve(approval_id: str, ask: AskDep) -> Response:
    """Have it done: `done`, or `conflict` when what the agent saw has changed since."""
    return await ask.once(
        lambda call: approvals.approve(ask.room, ask.caller, call, approval_id), as_json(_status)
    )


@router.post("/{approval_id}/reject", response_model=OBJECT)
async def reject(approval_id: str, ask: AskDep) -> Response:
    """Refuse it; what was asked is removed."""
    return await ask.once(
        lambda call: approvals.reject(ask.room, ask.caller, call, approval_id), as_json(_status)
    )
