"""Shared folders: `/api/admin/shared-folders`, and `/api/shared-folders` for who is in them."""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery

from app.bridge.content import shared_folders as bridge
from app.registry import shared_folders
from app.registry.disk_roots import SHARED
from app.registry.shared_folders import JoinedFolder, Member, SharedFolder
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import Body, FolderName, Line, PageQuery, time_or_none

router = APIRouter(route_class=StrictRoute)


class FolderBody(Body):
    """A folder to be made."""

    folder_name: FolderName
    description: Line = ""


class FolderPatch(Body):
    """What may change; a field left out stays."""

    folder_name: FolderName | None = None
    description: Line | None = None


class MemberBody(Body):
    """What a member may do in a folder."""

    can_write: bool = False


def _folder(row: SharedFolder) -> dict[str, Any]:
    return {
        "id": row.id,
        "folder_name": row.folder_name,
        "path": f"{SHARED}/{row.folder_key}",
        "description": row.description,
        "created_at": time_or_none(row.created_at),
        "updated_at": time_or_none(row.updated_at),
        "version": row.version,
    }


def member_json(row: Member) -> dict[str, Any]:
    """Who is in a folder, or in a project."""
    return {
        "user_id": row.user_id,
        "username": row.username,
        "can_write": bool(row.can_write),
        "created_at": time_or_none(row.created_at),
    }


@router.get("/api/shared-folders")
async def list_joined(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """The shared folders that the caller is in: files on disk, in clear and without versions."""
    rows = await ask.room.stores.registry.read(
        lambda reader: shared_folders.list_of(reader, ask.caller.user_id)
    )
    return cursors.page_of_all(rows, query, _joined, lambda row: row.folder_key)


def _joined(row: JoinedFolder) -> dict[str, Any]:
    return {
        "id": row.id,
        "folder_name": row.folder_name,
        "path": f"{SHARED}/{row.folder_key}",
        "description": row.description,
        "can_write": bool(row.can_write),
    }


@router.get("/api/admin/shared-folders")
async def list_folders(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Every shared folder, in the order of their making; none of its files."""
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await ask.room.stores.registry.read(
        lambda reader: shared_folders.list_page(reader, after, query.limit + 1)
    )
    return cursors.page_of(rows, query.limit, _folder, lambda row: cursors.encode(row.id))


@router.post("/api/admin/shared-folders", status_code=201, response_model=OBJECT)
async def add_folder(body: FolderBody, ask: AskDep) -> Response:
    """Make a shared folder: its files lie on the disk, in clear and without versions."""
    return await ask.once(
        lambda call: bridge.add(ask.room, ask.caller, call, body.folder_name, body.description),
        as_json(_folder, 201, version_of=lambda row: row.version),
    )


@router.get("/api/admin/shared-folders/{folder_id}")
async def get_folder(folder_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One shared folder."""
    row = await ask.room.stores.registry.read(lambda reader: shared_folders.get(reader, folder_id))
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return _folder(row)


@router.patch("/api/admin/shared-folders/{folder_id}", response_model=OBJECT)
async def patch_folder(folder_id: str, body: FolderPatch, ask: AskDep) -> Response:
    """Give a shared folder another name or description; with the name its paths change."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.change(
            ask.room, ask.caller, call, folder_id, body.folder_name, body.description, match
        ),
        as_json(_folder, version_of=lambda row: row.version),
    )


@router.delete("/api/admin/shared-folders/{folder_id}", status_code=204)
async def remove_folder(folder_id: str, ask: AskDep) -> Response:
    """Remove a shared folder with all its files, for ever."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.remove(ask.room, ask.caller, call, folder_id, match), no_content
    )


@router.get("/api/admin/shared-folders/{folder_id}/members")
async def list_members(
    folder_id: str, query: Annotated[PageQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """Who is in a shared folder."""
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await ask.room.stores.registry.read(
        lambda reader: shared_folders.list_members(reader, folder_id, after, query.limit + 1)
    )
    return cursors.page_of(rows, query.limit, member_json, lambda row: cursors.encode(row.user_id))


@router.put("/api/admin/shared-folders/{folder_id}/members/{user_id}", status_code=204)
async def set_member(folder_id: str, user_id: str, body: MemberBody, ask: AskDep) -> Response:
    """Let a member into a shared folder, or change what they may, from the next request on."""
    return await ask.once(
        lambda call: bridge.set_member(
            ask.room, ask.caller, call, folder_id, user_id, can_write=body.can_write
        ),
        no_content,
    )


@router.delete("/api/admin/shared-folders/{folder_id}/members/{user_id}", status_code=204)
async def remove_member(folder_id: str, user_id: str, ask: AskDep) -> Response:
    """Take a member out of a shared folder, from the next request on."""
    return await ask.once(
        lambda call: bridge.remove_member(ask.room, ask.caller, call, folder_id, user_id),
        no_content,
    )
