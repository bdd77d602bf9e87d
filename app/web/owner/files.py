"""Notes: `/api/file`, `/api/files`, and the POST forms that keep paths out of URLs."""

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request, Response
from fastapi import Query as FromQuery
from fastapi.responses import JSONResponse
from pydantic import Field

from app.bridge import notes as bridge
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.errors import InvalidInputError, PayloadTooLargeError
from app.owner import folders, notes, paths, tree, versions
from app.owner.notes import Condition, Written
from app.settings import Settings
from app.web.deps import CallDep, CallerDep, RoomDep, StrictRoute
from app.web.errors import Problem
from app.web.owner.note_shapes import (
    AppendBody,
    DeleteBody,
    EditBody,
    EditsBody,
    ListBody,
    MoveBody,
    Note,
    EditFileBody,
    ReadBody,
    RestoreBody,
    VersionsBody,
    WriteBody,
    edits_of,
    entry,
    note_json,
    version_json,
    written_json,
)
from app.web.shapes import LIMIT_DEFAULT, Limit, Path, Query, decode_number, encode_cursor, page
from app.web.strict_json import body_of

router = APIRouter(route_class=StrictRoute)

MARKDOWN: Final = "text/markdown; charset=utf-8"
_TEXT_TYPES: Final = frozenset({"text/markdown", "text/plain", "application/octet-stream", ""})
_ETAG: Final = re.compile(r'^(?:W/)?"(\d{1,18})"$')
_ESCAPED_MAX: Final = 2
"""JSON may escape a text; a body of twice the note's size is taken."""


def body_limits(settings: Settings) -> dict[str, int]:
    """Most bytes of a body by exact path, where it is not the common limit."""
    escaped = _ESCAPED_MAX * settings.note_bytes_max + settings.json_bytes_max
    return {
        "/api/file": max(settings.note_bytes_max, settings.json_bytes_max),
        "/api/file/append": escaped,
        "/api/file/write": escaped,
        "/api/file/edit": escaped,
    }


class PathQuery(Query):
    """One path."""

    path: Path


class ListQuery(Query):
    """A folder and how deep to look; no path is the caller's own root."""

    path: Path = paths.USER_MEMORY
    depth: Annotated[int, Field(ge=1, le=paths.MAX_DEPTH)] = 1


class DeleteQuery(PathQuery):
    """What to take away, and how thoroughly."""

    purge: bool = False
    recursive: bool = False


class VersionsQuery(PathQuery):
    """A page of a path's history."""

    cursor: str | None = None
    limit: Limit = LIMIT_DEFAULT


def condition_of(request: Request) -> Condition:
    """What `If-Match` and `If-None-Match` ask of a write.

    Raises:
        InvalidInputError: A header that cannot be read is refused, not passed over.
    """
    match = request.headers.get("if-match")
    none = request.headers.get("if-none-match")
    if none is not None and none.strip() != "*":
        raise InvalidInputError
    if match is not None and none is not None:
        raise InvalidInputError
    if match is None:
        return Condition(must_not_exist=none is not None)
    if match.strip() == "*":
        return Condition(must_exist=True)
    found = [_ETAG.match(part.strip()) for part in match.split(",")]
    if not all(found):
        raise InvalidInputError
    return Condition(match=frozenset(int(item[1]) for item in found if item))


def wants_json(request: Request) -> bool:
    """Whether the answer is to be JSON rather than the note's text.

    Raises:
        Problem: 406, the caller takes neither.
    """
    accept = request.headers.get("accept", "*/*").lower()
    kinds = {part.split(";")[0].strip() for part in accept.split(",")}
    if "application/json" in kinds:
        return True
    if kinds & {"text/markdown", "text/plain", "text/*", "*/*", ""}:
        return False
    raise Problem(406)


async def text_of(request: Request, size_max: int) -> str:
    """The raw body as text.

    Raises:
        Problem: 415, another kind of body.
        PayloadTooLargeError: It is larger than a note may be.
        InvalidInputError: It is not UTF-8, or holds a NUL.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in _TEXT_TYPES:
        raise Problem(415)
    raw = await request.body()
    return checked_text(raw, size_max)


def checked_text(raw: bytes, size_max: int) -> str:
    """Bytes as a note's text.

    Raises:
        PayloadTooLargeError: More than a note may hold.
        InvalidInputError: Not UTF-8, or a NUL in it.
    """
    if len(raw) > size_max:
        raise PayloadTooLargeError
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError from error
    if "\0" in text:
        raise InvalidInputError
    return text


def etag(version: int) -> str:
    """The ETag of a version."""
    return f'"{version}"'


def note_response(request: Request, path: str, note: Note) -> Response:
    """A note as text or JSON, or 304 when the caller has this version."""
    headers = {"ETag": etag(note.version), "Vary": "Accept"}
    as_json = wants_json(request)
    known = request.headers.get("if-none-match")
    if known is not None and (known.strip() == "*" or etag(note.version) in known):
        return Response(status_code=304, headers=headers)
    if as_json:
        return JSONResponse(note_json(path, note), headers=headers)
    return Response(note.content, media_type=MARKDOWN, headers=headers)


def written_response(path: str, written: Written) -> JSONResponse:
    """The outcome of a write, without the text."""
    return JSONResponse(
        written_json(path, written.note),
        status_code=201 if written.created else 200,
        headers={"ETag": etag(written.note.version)},
    )


async def read_note(
    request: Request, room: Strongroom, caller: Caller, call: Call, path: str
) -> Response:
    """Read one note."""
    ref = paths.clean(path)
    note = await bridge.read(room, caller, call, ref, lambda r: notes.get_note(r, ref.key))
    return note_response(request, ref.display, note)


async def write_note(  # noqa: PLR0913, PLR0917 - the parts of one write
    request: Request, room: Strongroom, caller: Caller, call: Call, path: str, text: str
) -> Response:
    """Make or replace one note."""
    ref, condition = paths.clean(path), condition_of(request)
    size = len(text.encode())
    if size > room.settings.note_bytes_max:
        raise PayloadTooLargeError
    written = await bridge.write(
        room,
        caller,
        call,
        ref,
        lambda tx: notes.put_note(tx, ref.key, text, caller.author, condition),
        adds_bytes=size,
    )
    return written_response(ref.display, written)


async def append_to_note(  # noqa: PLR0913, PLR0917 - the parts of one write
    request: Request, room: Strongroom, caller: Caller, call: Call, path: str, text: str
) -> Response:
    """Add to the end of one note, in one step."""
    ref, condition = paths.clean(path), condition_of(request)
    size_max = room.settings.note_bytes_max
    written = await bridge.write(
        room,
        caller,
        call,
        ref,
        lambda tx: notes.append_note(tx, ref.key, text, caller.author, condition, size_max),
        adds_bytes=len(text.encode()),
    )
    return written_response(ref.display, written)


@router.get("/api/file", response_class=Response)
async def get_file(
    query: Annotated[PathQuery, FromQuery()],
    request: Request,
    caller: CallerDep,
    room: RoomDep,
    call: CallDep,
) -> Response:
    """One note: as Markdown, or as JSON with its particulars when that is accepted."""
    return await read_note(request, room, caller, call, query.path)


@router.put("/api/file", openapi_extra=body_of("text/markdown"))
async def put_file(
    query: Annotated[PathQuery, FromQuery()],
    request: Request,
    caller: CallerDep,
    room: RoomDep,
    call: CallDep,
) -> Response:
    """Make a note or replace it; `If-Match` guards against a lost update."""
    text = await text_of(request, room.settings.note_bytes_max)
    return await write_note(request, room, caller, call, query.path, text)


@router.post("/api/file/append", openapi_extra=body_of("text/markdown", "application/json"))
async def append_file(
    request: Request,
    caller: CallerDep,
    room: RoomDep,
    call: CallDep,
    path: Annotated[Path | None, FromQuery()] = None,
) -> Response:
    """Add a line to a note, making it when it is missing: raw on `?path=`, or as JSON."""
    if path is not None:
        text = await text_of(request, room.settings.note_bytes_max)
    else:
        body = await AppendBody.read(request)
        path, text = body.path, body.content
    return await append_to_note(request, room, caller, call, path, text)


@router.post("/api/file/read")
async def read_file(
    body: ReadBody, request: Request, caller: CallerDep, room: RoomDep, call: CallDep
) -> Response:
    """As `GET /api/file`."""
    return await read_note(request, room, caller, call, body.path)


@router.post("/api/file/write")
async def write_file(
    body: WriteBody, request: Request, caller: CallerDep, room: RoomDep, call: CallDep
) -> Response:
    """As `PUT /api/file`."""
    return await write_note(request, room, caller, call, body.path, body.content)


async def _edit(  # noqa: PLR0913, PLR0917 - the parts of one write
    request: Request,
    room: Strongroom,
    caller: Caller,
    call: Call,
    path: str,
    edits: list[EditBody],
) -> Response:
    ref, condition = paths.clean(path), condition_of(request)
    size_max = room.settings.note_bytes_max
    wanted = edits_of(edits)
    written = await bridge.write(
        room,
        caller,
        call,
        ref,
        lambda tx: notes.edit_note(tx, ref.key, wanted, caller.author, condition, size_max),
        adds_bytes=sum(edit.added_bytes for edit in edits),
    )
    return written_response(ref.display, written)


@router.patch("/api/file")
async def patch_file(  # noqa: PLR0913, PLR0917 - the parts of the request
    query: Annotated[PathQuery, FromQuery()],
    body: EditsBody,
    request: Request,
    caller: CallerDep,
    room: RoomDep,
    call: CallDep,
) -> Response:
    """Edit a note: all edits or none, each placed in the text as it was."""
    return await _edit(request, room, caller, call, query.path, body.edits)


@router.post("/api/file/edit")
async def edit_file(
    body: EditFileBody, request: Request, caller: CallerDep, room: RoomDep, call: CallDep
) -> Response:
    """As `PATCH /api/file`."""
    return await _edit(request, room, caller, call, body.path, body.edits)


async def _delete(
    request: Request, room: Strongroom, caller: Caller, call: Call, what: DeleteBody | DeleteQuery
) -> None:
    ref, condition = paths.clean(what.path), condition_of(request)
    await bridge.write(
        room,
        caller,
        call,
        ref,
        lambda tx: tree.delete_note(
            tx,
            ref.key,
            condition=condition,
            purge=what.purge,
            recursive=what.recursive,
            author=caller.author,
        ),
    )


@router.delete("/api/file", status_code=204)
async def delete_file(
    query: Annotated[DeleteQuery, FromQuery()],
    request: Request,
    caller: CallerDep,
    room: RoomDep,
    call: CallDep,
) -> None:
    """Delete a note, or with `recursive` a folder; with `purge` every version goes too."""
    await _delete(request, room, caller, call, query)


@router.post("/api/file/delete", status_code=204)
async def delete_file_by_body(
    body: DeleteBody, request: Request, caller: CallerDep, room: RoomDep, call: CallDep
) -> None:
    """As `DELETE /api/file`."""
    await _delete(request, room, caller, call, body)


@router.post("/api/file/move")
async def move_file(
    body: MoveBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Move a note, or with `recursive` a folder, to where nothing stands, inside one root."""
    source, target = paths.clean(body.source), paths.clean(body.to)
    bridge.require_may_write(caller, source)
    bridge.require_one_root(source, target)
    moved = await bridge.write(
        room,
        caller,
        call,
        source,
        lambda tx: tree.move_note(
            tx, source.key, target.key, recursive=body.recursive, author=caller.author
        ),
    )
    root = source.root
    return {"items": [written_json(paths.PathRef(root, n.path).display, n) for n in moved]}


async def _list(
    room: Strongroom, caller: Caller, call: Call, path: str, depth: int
) -> dict[str, Any]:
    ref = paths.clean(path)
    found = await bridge.read(
        room, caller, call, ref, lambda reader: folders.list_files(reader, ref.key, depth)
    )
    return {"items": [entry(ref.root, row) for row in found]}


@router.get("/api/files")
async def list_files(
    query: Annotated[ListQuery, FromQuery()], caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """What lies in a folder; folders are implied by paths."""
    return await _list(room, caller, call, query.path, query.depth)


@router.post("/api/file/list")
async def list_files_by_body(
    body: ListBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """As `GET /api/files`."""
    return await _list(room, caller, call, body.path, body.depth)


async def _versions(  # noqa: PLR0913, PLR0917 - the parts of the request
    room: Strongroom, caller: Caller, call: Call, path: str, cursor: str | None, limit: int
) -> dict[str, Any]:
    ref, before = paths.clean(path), decode_number(cursor)
    rows = await bridge.read(
        room,
        caller,
        call,
        ref,
        lambda reader: versions.list_versions(reader, ref.key, before, limit + 1),
    )
    shown = rows[:limit]
    following = encode_cursor(shown[-1].version) if len(rows) > limit else None
    return page([version_json(ref.display, row) for row in shown], following)


async def _version(
    room: Strongroom, caller: Caller, call: Call, path: str, version: int
) -> dict[str, Any]:
    ref = paths.clean(path)
    row = await bridge.read(
        room, caller, call, ref, lambda reader: versions.get_version(reader, ref.key, version)
    )
    return {**version_json(ref.display, row), "content": row.content}


@router.get("/api/file/versions")
async def list_versions(
    query: Annotated[VersionsQuery, FromQuery()],
    caller: CallerDep,
    room: RoomDep,
    call: CallDep,
) -> dict[str, Any]:
    """A path's history, newest first, also of a deleted note."""
    return await _versions(room, caller, call, query.path, query.cursor, query.limit)


@router.get("/api/file/versions/{version}")
async def get_version(
    version: Annotated[int, Field(ge=1, lt=1 << 62)],
    query: Annotated[PathQuery, FromQuery()],
    caller: CallerDep,
    room: RoomDep,
    call: CallDep,
) -> dict[str, Any]:
    """One version with its text; null there for a deletion."""
    return await _version(room, caller, call, query.path, version)


@router.post("/api/file/versions")
async def versions_by_body(
    body: VersionsBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """As the two calls for versions: a page, or with `version` that one."""
    if body.version is not None:
        return await _version(room, caller, call, body.path, body.version)
    return await _versions(room, caller, call, body.path, body.cursor, body.limit)


@router.post("/api/file/restore")
async def restore_file(
    body: RestoreBody, request: Request, caller: CallerDep, room: RoomDep, call: CallDep
) -> Response:
    """Put an old version back as the newest; also of a deleted note."""
    ref, condition = paths.clean(body.path), condition_of(request)
    written = await bridge.write(
        room,
        caller,
        call,
        ref,
        lambda tx: notes.restore_note(tx, ref.key, body.version, caller.author, condition),
    )
    return written_response(ref.display, written)


