"""Flags: `/api/admin/flags`."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field, StrictBool, StrictInt, StrictStr

from app.bridge import flags as bridge
from app.registry import flags
from app.registry.flags import FlagChange, State
from app.web import cursors
from app.web.answers import OBJECT, as_json
from app.web.preconditions import match_of
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import Body, PageQuery, time_or_none

router = APIRouter(route_class=StrictRoute, prefix="/api/admin/flags")


class FlagBody(Body):
    """What a flag is to be, of the type that its default has."""

    value: (
        StrictBool
        | Annotated[StrictInt, Field(gt=-(2**53), lt=2**53)]
        | Annotated[StrictStr, Field(max_length=flags.TEXT_MAX)]
    )


def _flag(state: State) -> dict[str, Any]:
    return {
        "name": state.flag.name,
        "value": state.value,
        "default": state.flag.default,
        "is_default": state.is_default,
        "about": state.flag.about,
        "changed_at": time_or_none(state.changed_at),
        "version": state.version,
    }


def _change(row: FlagChange) -> dict[str, Any]:
    return {
        "id": row.id,
        "before": None if row.before is None else json.loads(row.before),
        "after": None if row.after is None else json.loads(row.after),
        "changed_by": row.changed_by,
        "changed_at": time_or_none(row.changed_at),
    }


_render = as_json(_flag, version_of=lambda state: state.version)


@router.get("")
async def list_flags(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Every flag, by name."""
    found = await ask.room.stores.registry.read(flags.list_all)
    return cursors.page_of_all(found, query, _flag, lambda state: state.flag.name)


@router.put("/{name}", response_model=OBJECT)
async def set_flag(name: str, body: FlagBody, ask: AskDep) -> Response:
    """Set a flag; it holds at once, in every process."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.set_value(ask.room, ask.caller, call, name, body.value, match),
        _render,
    )


@router.delete("/{name}", response_model=OBJECT)
async def unset_flag(name: str, ask: AskDep) -> Response:
    """Have a flag be its default again."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.unset(ask.room, ask.caller, call, name, match), _render
    )


@router.get("/{name}/changes")
async def list_changes(
    name: str, query: Annotated[PageQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """Who changed a flag, when and how, newest first; null is the default."""
    [before] = cursors.ids_of(query.cursor, 1)
    rows = await ask.room.stores.registry.read(
        lambda reader: flags.list_changes(reader, name, before or None, query.limit + 1)
    )
    return cursors.page_of(rows, query.limit, _change, lambda row: cursors.encode(row.id))
