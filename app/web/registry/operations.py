"""Operations that are not over: `/api/admin/operations`."""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery

from app.bridge.maintenance import half_done
from app.web import cursors
from app.web.answers import OBJECT, as_json
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import PageQuery

router = APIRouter(route_class=StrictRoute, prefix="/api/admin/operations")


@router.get("")
async def list_operations(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Operations under way, left by a crash, or left to a person, the oldest first."""
    return cursors.page_of_all(
        await half_done.list_all(ask.room),
        query,
        half_done.describe,
        lambda record: record.started_at,
        lambda record: record.key,
    )


@router.post("/{key}/release", response_model=OBJECT)
async def release_operation(key: str, ask: AskDep) -> Response:
    """Have this program finish or undo an operation that it left to a person; that is recorded."""
    return await ask.once(
        lambda call: half_done.release_by(ask.room, ask.caller, call, key),
        as_json(half_done.describe),
    )
