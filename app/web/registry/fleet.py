"""Versions and sizes of all stores, for the operator: `/api/admin/fleet`, `/api/admin/stores`."""

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as FromQuery

from app.bridge.maintenance import fleet
from app.bridge.strongroom import Strongroom
from app.registry.fleet import Store
from app.web import cursors
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import PageQuery, time_or_none

router = APIRouter(route_class=StrictRoute, prefix="/api/admin")


@router.get("/fleet")
async def count_stores(ask: AskDep) -> dict[str, Any]:
    """How many members' stores are at which version, and which each is brought to when opened."""
    return {"present": fleet.present(), **dataclasses.asdict(await fleet.count(ask.room))}


@router.get("/stores")
async def list_stores(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Members' stores in the order of their making, and the group's: never content.

    Returns:
        A page: state, version, size, and whether any process has the store open now; of one
        under a key, that is whether it is unlocked. `group` is the group's own store, the same on
        each page.
    """
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await fleet.list_page(ask.room, after, query.limit + 1)
    answer = cursors.page_of(
        rows, query.limit, lambda row: _store(ask.room, row), lambda row: cursors.encode(row.id)
    )
    group = {
        "encrypted": False,
        "open": True,
        "schema_version": fleet.group_version(),
        "store_bytes": await fleet.group_bytes(ask.room),
    }
    return {**answer, "group": group}


def _store(room: Strongroom, row: Store) -> dict[str, Any]:
    return {
        "user_id": row.id,
        "username": row.username,
        "encrypted": bool(row.encrypted),
        "active": bool(row.active),
        "store_state": row.store_state,
        "open": fleet.is_open(room, row),
        "schema_version": row.schema_version,
        "schema_check": row.schema_check,
        "migration_failed": row.migration_failed is not None,
        "store_bytes": row.store_bytes,
        "last_unlocked_at": time_or_none(row.last_unlocked_at),
    }
