"""Search: `/api/search`."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as FromQuery

from app.bridge.content import notes as bridge
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.shapes import LIMIT_DEFAULT, Body, Limit, Query, time_or_none

router = APIRouter(route_class=StrictRoute)

Scope = Literal["own", "shared", "all"]


class SearchQuery(Query):
    """What to look for, and where."""

    q: str
    scope: Scope = "all"
    limit: Limit = LIMIT_DEFAULT


class SearchBody(Body):
    """The same, out of the URL."""

    q: str
    scope: Scope = "all"
    limit: Limit = LIMIT_DEFAULT


async def _search(ask: Ask, what: SearchQuery | SearchBody) -> dict[str, Any]:
    hits = await bridge.search(ask.room, ask.caller, ask.call, what.q, what.scope, what.limit)
    return {
        "items": [
            {
                "path": hit.path,
                "line": hit.line,
                "snippet": hit.snippet,
                "score": hit.score,
                "updated_at": time_or_none(hit.updated_at),
            }
            for hit in hits
        ]
    }


@router.get("/api/search")
async def search(query: Annotated[SearchQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Notes that hold all the words, best first; quotes make a phrase.

    Of the stores alone: files of shared folders and projects are not looked through.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _search(ask, query)


@router.post("/api/search")
async def search_by_body(body: SearchBody, ask: AskDep) -> dict[str, Any]:
    """As `GET /api/search`."""
    return await _search(ask, body)
