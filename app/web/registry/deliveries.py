"""The operators' view of what the group's store tells: `/api/admin/deliveries`, `.../breakers`."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge.notifications import delivery_acts as bridge
from app.bridge.notifications.delivery_acts import Act
from app.runtime.breakers import Breaker
from app.runtime.delivery_list import LAST_ID, Delivery
from app.web import cursors
from app.web.answers import OBJECT, as_json
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import AskDep, StrictRoute
from app.web.runtime.webhooks import delivery_item
from app.web.shapes import Body, Line, PageQuery, time_or_none

router = APIRouter(route_class=StrictRoute, prefix="/api/admin")

Status = Literal["pending", "running", "retry", "held", "succeeded", "dead", "cancelled"]


class DeliveriesQuery(PageQuery):
    """Which deliveries."""

    status: Status | None = None


class ConnectionBody(Body):
    """Whose breaker."""

    connection: Annotated[Line, Field(min_length=1)]


def _item(row: Delivery) -> dict[str, Any]:
    return {
        **delivery_item(row),
        "subscription_id": row.subscription_id,
        "kind": row.kind,
        "name": row.name,
        "connection": row.connection,
    }


def _breaker(row: Breaker) -> dict[str, Any]:
    return {
        "connection": row.connection,
        "state": row.state,
        "failures": row.failures,
        "opened_at": time_or_none(row.opened_at),
        "next_probe_at": time_or_none(row.next_probe_at),
        "alerted_at": time_or_none(row.alerted_at),
    }


_render = as_json(_item, version_of=lambda row: row.version)


@router.get("/deliveries")
async def list_deliveries(
    query: Annotated[DeliveriesQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """What the group's store owes and has told, newest first."""
    [before] = cursors.ids_of(query.cursor, 1)
    rows = await bridge.list_page(
        ask.room.stores.group, before or LAST_ID, query.limit + 1, query.status
    )
    return cursors.page_of(rows, query.limit, _item, lambda row: cursors.encode(row.id))


@router.get("/deliveries/{delivery_id}")
async def get_delivery(delivery_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One of them."""
    row = await bridge.get(ask.room.stores.group, delivery_id)
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return _item(row)


async def _act(ask: AskDep, name: Act, delivery_id: str) -> Response:
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.act_of(ask.room, ask.caller, call, name, delivery_id, match), _render
    )


@router.post("/deliveries/{delivery_id}/retry", response_model=OBJECT)
async def retry_delivery(delivery_id: str, ask: AskDep) -> Response:
    """Have a delivery tried again now, from the start: one that failed, is held, or has ended."""
    return await _act(ask, "retry", delivery_id)


@router.post("/deliveries/{delivery_id}/cancel", response_model=OBJECT)
async def cancel_delivery(delivery_id: str, ask: AskDep) -> Response:
    """End a delivery for good. A try under way may still arrive."""
    return await _act(ask, "cancel", delivery_id)


@router.post("/deliveries/{delivery_id}/release", response_model=OBJECT)
async def release_delivery(delivery_id: str, ask: AskDep) -> Response:
    """Let a held delivery go now, as the probe of its connection."""
    return await _act(ask, "release", delivery_id)


@router.get("/breakers")
async def list_breakers(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Every connection of the group's store that failed of late."""
    rows = await bridge.list_breakers(ask.room.stores.group)
    return cursors.page_of_all(rows, query, _breaker, lambda row: row.connection)


@router.post("/breakers/reset", response_model=OBJECT)
async def reset_breaker(body: ConnectionBody, ask: AskDep) -> Response:
    """Close a breaker, and let go on what it held; answers it as it was."""
    return await ask.once(
        lambda call: bridge.reset_of(ask.room, ask.caller, call, body.connection),
        as_json(_breaker),
    )
