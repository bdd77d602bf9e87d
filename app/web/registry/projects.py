"""Projects: `/api/projects`."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field, JsonValue, model_validator

from app.bridge.content import projects as bridge
from app.bridge.content.projects import NewProject
from app.registry import projects
from app.registry.disk_roots import PROJECTS
from app.registry.projects import Project
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.preconditions import etag, match_of, require_match
from app.web.registry.shared_folders import MemberBody, member_json
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import Body, Identifier, Line, Name, PageQuery, refused, time_or_none

router = APIRouter(route_class=StrictRoute, prefix="/api/projects")
_CONTEXT_BYTES_MAX = 65_536
Context = Annotated[dict[str, JsonValue], Field(default_factory=dict)]


class ProjectPatch(Body):
    """What may change; a field left out stays."""

    name: Name = ""
    description: Line = ""
    run_context: Context

    @model_validator(mode="after")
    def _bounded(self) -> "ProjectPatch":
        if len(json.dumps(self.run_context).encode()) > _CONTEXT_BYTES_MAX:
            kind = "too_long"
            raise refused(kind)
        return self


class ProjectBody(ProjectPatch):
    """A project to be made."""

    slug: Identifier
    name: Name


def _project(row: Project) -> dict[str, Any]:
    return {
        "id": row.id,
        "path": f"{PROJECTS}/{row.owner_key}/{row.slug}",
        "owner_user_id": row.owner_user_id,
        "owner": row.owner,
        "name": row.name,
        "slug": row.slug,
        "description": row.description,
        "run_context": json.loads(row.run_context),
        "can_write": bool(row.can_write),
        "created_at": time_or_none(row.created_at),
        "updated_at": time_or_none(row.updated_at),
        "version": row.version,
    }


_render = as_json(_project, version_of=lambda row: row.version)


@router.get("")
async def list_projects(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """The projects that the caller is in: files on disk, in clear and without versions."""
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await ask.room.stores.registry.read(
        lambda reader: projects.list_of(reader, ask.caller.user_id, after, query.limit + 1)
    )
    return cursors.page_of(rows, query.limit, _project, lambda row: cursors.encode(row.id))


@router.post("", status_code=201, response_model=OBJECT)
async def add_project(body: ProjectBody, ask: AskDep) -> Response:
    """Make a project of one's own; its slug never changes."""
    new = NewProject(body.slug, body.name, body.description, body.run_context)
    return await ask.once(
        lambda call: bridge.add(ask.room, ask.caller, call, new),
        as_json(_project, 201, version_of=lambda row: row.version),
    )


@router.get("/{project_id}")
async def get_project(project_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One project, for who is in it."""
    row = await ask.room.stores.registry.read(
        lambda reader: projects.get(reader, project_id, ask.caller.user_id)
    )
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return _project(row)


@router.patch("/{project_id}", response_model=OBJECT)
async def patch_project(project_id: str, body: ProjectPatch, ask: AskDep) -> Response:
    """Change one's own project."""
    changes, match = body.model_dump(exclude_unset=True), match_of(ask.request)
    return await ask.once(
        lambda call: bridge.change(ask.room, ask.caller, call, project_id, changes, match),
        _render,
    )


@router.delete("/{project_id}", status_code=204)
async def remove_project(project_id: str, ask: AskDep) -> Response:
    """Remove one's own project with all its files, for ever."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.remove(ask.room, ask.caller, call, project_id, match), no_content
    )


@router.get("/{project_id}/members")
async def list_members(
    project_id: str, query: Annotated[PageQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """Who is in a project, for who is in it; its owner always is."""
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await ask.room.stores.registry.read(
        lambda reader: projects.list_members(
            reader, project_id, ask.caller.user_id, after, query.limit + 1
        )
    )
    return cursors.page_of(rows, query.limit, member_json, lambda row: cursors.encode(row.user_id))


@router.put("/{project_id}/members/{user_id}", status_code=204)
async def set_member(project_id: str, user_id: str, body: MemberBody, ask: AskDep) -> Response:
    """Let a member into one's own project, or change what they may."""
    return await ask.once(
        lambda call: bridge.set_member(
            ask.room, ask.caller, call, project_id, user_id, can_write=body.can_write
        ),
        no_content,
    )


@router.delete("/{project_id}/members/{user_id}", status_code=204)
async def remove_member(project_id: str, user_id: str, ask: AskDep) -> Response:
    """Take a member out of one's own project, or oneself out of another's."""
    return await ask.once(
        lambda call: bridge.remove_member(ask.room, ask.caller, call, project_id, user_id),
        no_content,
    )
