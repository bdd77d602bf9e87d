"""What prompts are made of: `/api/context`, `/api/prompt/render`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge.content import contexts, prompts
from app.bridge.content.contexts import Injected
from app.owner import paths
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.shapes import Body, Path, Query, Text, time_or_none

router = APIRouter(route_class=StrictRoute)

FILES_MAX: Final = 64
"""Files of one context."""
VALUES_MAX: Final = 100
"""Keys that a caller may bring along."""

Paths = Annotated[list[Path], Field(min_length=1, max_length=FILES_MAX)]
Key = Annotated[str, Field(pattern=f"^(?:{prompts.KEY.pattern})$")]


class ContextQuery(Query):
    """Which files; `inject` once for each."""

    inject: Paths


class ContextBody(Body):
    """Which files."""

    inject: Paths


class RenderBody(Body):
    """A template, and what the caller's own keys stand for."""

    template: Text
    values: Annotated[dict[Key, Text], Field(default_factory=dict, max_length=VALUES_MAX)]


async def _gather(ask: Ask, asked: Sequence[str]) -> dict[str, Any]:
    refs = [paths.clean(path) for path in asked]
    found = await contexts.gather(ask.room, ask.caller, ask.call, refs)
    return {"items": [_item(each) for each in found]}


def _item(each: Injected) -> Mapping[str, Any]:
    excerpt = each.excerpt
    if excerpt is None:
        return {"path": each.ref.display, "is_missing": True, "is_cut": False, "content": None}
    return {
        "path": each.ref.display,
        "is_missing": False,
        "is_cut": excerpt.is_cut,
        "content": excerpt.content,
        "version": excerpt.version,
        "size_bytes": excerpt.size_bytes,
        "updated_at": time_or_none(excerpt.updated_at),
    }


@router.get("/api/context")
async def get_context(query: Annotated[ContextQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Several files at once, for a prompt: each with its text and version, or `is_missing`.

    In all they have no more bytes than `context_bytes_max`; what is named first has the room
    first. Where `is_cut` is true the content is the beginning, in whole lines if it can be, and
    `size_bytes` is the file's. Each store is read at one moment.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _gather(ask, query.inject)


@router.post("/api/context")
async def context_by_body(body: ContextBody, ask: AskDep) -> dict[str, Any]:
    """As `GET /api/context`."""
    return await _gather(ask, body.inject)


@router.post("/api/prompt/render")
async def render_prompt(body: RenderBody, ask: AskDep) -> dict[str, Any]:
    """Fill in the placeholders `<!-- KEY -->` of a template, in one pass.

    `USER_PROFILE` is the caller's name, date of birth with age, sex, language and notes, and
    asks for the scope `account`; `SHARED_FOLDERS` and `PROJECTS` name the folders they are a
    member of; `values` says what other keys stand for. A value is never looked through for
    placeholders. A key that stands for nothing is left and named in `unknown`; one whose scope
    the credential has not, in `withheld`.
    """  # noqa: DOC201 - the words are OpenAPI's
    rendered = await prompts.render(ask.room, ask.caller, body.template, body.values)
    return {
        "text": rendered.text,
        "unknown": rendered.unknown,
        "withheld": rendered.withheld,
    }
