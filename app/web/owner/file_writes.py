"""Notes written: made, replaced, added to, edited, moved, deleted."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from fastapi.responses import JSONResponse

from app.bridge.content import files, notes
from app.owner import paths
from app.owner.notes import Condition
from app.owner.tree import Moved
from app.web.answers import OBJECT, no_content
from app.web.descriptions import raw_body
from app.web.owner.approvals import WAITS, or_waiting
from app.web.owner.note_shapes import (
    AppendBody,
    DeleteBody,
    DeleteQuery,
    EditBody,
    EditFileBody,
    EditsBody,
    MoveBody,
    PathQuery,
    WriteBody,
    edits_of,
    written_json,
)
from app.web.owner.note_text import text_of, written_response
from app.web.preconditions import condition_of, etag
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.shapes import Path
from app.web.strict_json import read_json

router = APIRouter(route_class=StrictRoute)

_WRITTEN: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "description": "It is new.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
    **WAITS,
}
_TEXT: Final = ("text/markdown", "text/plain")


async def _put(ask: Ask, path: str, text: str) -> Response:
    ref, condition = paths.clean(path), condition_of(ask.request)
    return await ask.once(
        lambda call: files.put(ask.room, ask.caller, call, ref, text, condition),
        or_waiting(partial(written_response, ref.display)),
    )


@router.put("/api/file", openapi_extra=raw_body(*_TEXT), responses=_WRITTEN)
async def put_file(query: Annotated[PathQuery, FromQuery()], ask: AskDep) -> Response:
    """Make a note or replace it; `If-Match` guards against a lost update."""
    return await _put(ask, query.path, await text_of(ask.request, ask.room.settings.note_bytes_max))


@router.post("/api/file/write", responses=_WRITTEN)
async def write_file(body: WriteBody, ask: AskDep) -> Response:
    """As `PUT /api/file`."""
    return await _put(ask, body.path, body.content)


@router.post(
    "/api/file/append", openapi_extra=raw_body(*_TEXT, fields=AppendBody), responses=_WRITTEN
)
async def append_file(ask: AskDep, path: Annotated[Path | None, FromQuery()] = None) -> Response:
    """Add a line to a note, making it when it is missing: raw on `?path=`, or as JSON."""
    if path is not None:
        text = await text_of(ask.request, ask.room.settings.note_bytes_max)
    else:
        body = await read_json(ask.request, AppendBody)
        path, text = body.path, body.content
    ref, condition = paths.clean(path), condition_of(ask.request)
    return await ask.once(
        lambda call: files.append(ask.room, ask.caller, call, ref, text, condition),
        or_waiting(partial(written_response, ref.display)),
    )


async def _edit(ask: Ask, path: str, bodies: Sequence[EditBody]) -> Response:
    ref, condition, edits = paths.clean(path), condition_of(ask.request), edits_of(bodies)
    adds_bytes = sum(body.added_bytes for body in bodies)
    return await ask.once(
        lambda call: files.edit(
            ask.room, ask.caller, call, ref, edits, condition, adds_bytes=adds_bytes
        ),
        or_waiting(partial(written_response, ref.display)),
    )


@router.patch("/api/file", responses=WAITS)
async def patch_file(
    query: Annotated[PathQuery, FromQuery()], body: EditsBody, ask: AskDep
) -> Response:
    """Edit a note: all edits or none, each placed in the text as it was.

    A token needs `memory:read` beside the scope of the path, for the answer tells of the text.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _edit(ask, query.path, body.edits)


@router.post("/api/file/edit", responses=WAITS)
async def edit_file(body: EditFileBody, ask: AskDep) -> Response:
    """As `PATCH /api/file`."""
    return await _edit(ask, body.path, body.edits)


async def _delete(ask: Ask, what: DeleteBody | DeleteQuery) -> Response:
    ref, condition = paths.clean(what.path), condition_of(ask.request)
    return await ask.once(
        lambda call: files.delete(
            ask.room,
            ask.caller,
            call,
            ref,
            condition,
            purge=what.purge,
            recursive=what.recursive,
        ),
        or_waiting(no_content),
    )


@router.delete("/api/file", status_code=204, responses=WAITS)
async def delete_file(query: Annotated[DeleteQuery, FromQuery()], ask: AskDep) -> Response:
    """Delete a note, or with `recursive` a folder; with `purge` every version goes too."""
    return await _delete(ask, query)


@router.post("/api/file/delete", status_code=204, responses=WAITS)
async def delete_file_by_body(body: DeleteBody, ask: AskDep) -> Response:
    """As `DELETE /api/file`."""
    return await _delete(ask, body)


@router.post("/api/file/move", response_model=OBJECT, responses=WAITS)
async def move_file(body: MoveBody, ask: AskDep) -> Response:
    """Move a note, or with `recursive` a folder, to where nothing stands, inside one root.

    `If-Match` is about the note that moves; what `If-None-Match: *` asks of the other end is
    always asked. With `recursive` a token needs `memory:read`, for the answer names what moved.
    """  # noqa: DOC201 - the words are OpenAPI's
    if body.recursive:
        notes.require_may_read(ask.caller)
    source, target = paths.clean(body.source), paths.clean(body.to)
    condition = condition_of(ask.request)
    if condition.must_not_exist:
        condition = Condition()
    return await ask.once(
        lambda call: files.move(
            ask.room, ask.caller, call, source, target, condition, recursive=body.recursive
        ),
        or_waiting(partial(_moved, target)),
    )


def _moved(target: paths.PathRef, moved: Sequence[Moved]) -> Response:
    items = [written_json(paths.PathRef(target.root, n.path).display, n) for n in moved]
    # A note alone has the path that was asked for; what moved with a folder lies below it.
    alone = next((note for note in moved if note.path == target.key), None)
    headers = {} if alone is None else {"ETag": etag(alone.version)}
    return JSONResponse({"items": items}, headers=headers)
