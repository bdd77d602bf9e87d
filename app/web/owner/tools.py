"""Tools for agents over HTTP: `/api/tools`, one call a tool."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter
from fastapi import Query as FromQuery
from fastapi.responses import JSONResponse, Response

from app.bridge.tools.table import TOOLS, offered
from app.bridge.tools.toolbox import ANSWER_SCHEMA, Answer, Asking, Tool
from app.settings import Settings
from app.web import cursors
from app.web.descriptions import raw_body
from app.web.owner.files import escaped_note_bytes
from app.web.preconditions import condition_of, etag
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.shapes import PageQuery
from app.web.strict_json import read_json

router = APIRouter(route_class=StrictRoute)

PATH: Final = "/api/tools"
_PLACES: Final = {name: place for place, name in enumerate(TOOLS)}
_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"schema": ANSWER_SCHEMA}}},
    202: {
        "description": "Nothing is done yet: it waits for the approval of a person.",
        "content": {"application/json": {"schema": ANSWER_SCHEMA}},
    },
}


def body_limits(settings: Settings) -> dict[str, int]:
    """Most bytes of a body by exact path: a tool may carry a whole note."""
    return dict.fromkeys((f"{PATH}/{name}" for name in TOOLS), escaped_note_bytes(settings))


def as_json(tool: Tool) -> dict[str, Any]:
    """A tool as a list shows it; its schemas and hints by the names of the public protocols."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": ANSWER_SCHEMA,
        "annotations": tool.annotations,
    }


@router.get(PATH)
async def list_tools(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """The tools that this credential was made for, with the schema of their arguments."""
    return cursors.page_of_all(offered(ask.caller), query, as_json, lambda tool: _PLACES[tool.name])


def _answer(answer: Answer) -> Response:
    headers = {} if answer.version is None else {"ETag": etag(answer.version)}
    status = 200 if answer.approval_id is None else 202
    return JSONResponse(answer.facts(), status_code=status, headers=headers)


def _endpoint(tool: Tool) -> Callable[[Ask], Awaitable[Response]]:
    async def use(ask: AskDep) -> Response:
        given = await read_json(ask.request, tool.arguments)
        asking = Asking(ask.room, ask.caller, ask.call, condition_of(ask.request))
        deed = await tool.deed(asking, given)
        return await ask.once(deed.act, lambda result: _answer(deed.answer(result)))

    use.__name__ = f"use_{tool.name}"
    use.__doc__ = tool.description
    return use


for _tool in TOOLS.values():
    router.add_api_route(
        f"{PATH}/{_tool.name}",
        _endpoint(_tool),
        methods=["POST"],
        summary=_tool.title,
        response_class=Response,
        responses=_ANSWER,
        openapi_extra=raw_body(fields=_tool.arguments),
    )
