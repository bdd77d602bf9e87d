"""Files of any kind: `/api/blobs`."""

import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi import Query as FromQuery
from fastapi.responses import JSONResponse, StreamingResponse

from app.bridge.content import blobs as bridge
from app.bridge.content import uploads
from app.bridge.content.blobs import Held, Home
from app.errors.inputs import InvalidInputError
from app.owner import blobs, paths
from app.owner.blob_list import Which
from app.owner.blobs import Blob, NewBlob, Placing, Put
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from app.settings import Settings
from app.web import cursors, ranges
from app.web.answers import OBJECT, no_content
from app.web.preconditions import blob_condition_of, etag, is_known, require_tag
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.shapes import (
    LIMIT_DEFAULT,
    Body,
    Identifier,
    Limit,
    Name,
    PageQuery,
    Path,
    Query,
    time_or_none,
)
from app.web.strict_json import require_uncompressed

router = APIRouter(route_class=StrictRoute)

_ROOTS: Final[dict[Home, str]] = {"own": USER_MEMORY, "group": SHARED_MEMORY}
_DEFAULT_TYPE: Final = "application/octet-stream"
_TYPE_CHARS_MAX: Final = 255
_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE: Final = re.compile(
    rf'{_WORD}/{_WORD}(?: *; *{_WORD}=(?:{_WORD}|"(?:[ !#-\[\]-~]|\\[ -~])*"))*'
)
"""RFC 9110, 8.3.1."""
_RAW: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_BYTES: Final[dict[str, Any]] = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "All of it.", "content": _BYTES},
    206: {"description": "The part that was asked for.", "content": _BYTES},
    304: {"description": "The caller has this content."},
}
_HEAD: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "It is there."},
    304: {"description": "The caller has this content."},
}
_CREATED: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "description": "It is new.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


class HomeQuery(Query):
    """Whose store."""

    home: Home = "own"


class PutQuery(Query):
    """Whose store, and what the file is called and hangs on."""

    home: Home | None = None
    name: Name | None = None
    path: Path | None = None
    report: Identifier | None = None


class PlaceBody(Body):
    """Whose store, and what a file that is there is called and hangs on."""

    home: Home | None = None
    name: Name | None = None
    path: Path | None = None
    report: Identifier | None = None


class ListQuery(PageQuery):
    """Whose store, and the note or report that they hang on."""

    home: Home | None = None
    path: Path | None = None
    report: Identifier | None = None


class ListBody(Body):
    """The same, as JSON."""

    home: Home | None = None
    path: Path | None = None
    report: Identifier | None = None
    cursor: str | None = None
    limit: Limit = LIMIT_DEFAULT


def limits_below(settings: Settings) -> dict[tuple[str, str], int]:
    """Most bytes of a body, by its method and the beginning of its path."""
    return {("PUT", "/api/blobs/"): settings.blob_bytes_max}


def _placed(what: PutQuery | PlaceBody | ListQuery | ListBody) -> tuple[Home, str | None]:
    """Whose store a call is about, and the note's key in it.

    Returns:
        Both; None for no note.

    Raises:
        InvalidInputError: The path lies in the other store than it says or in none, or is one
            of two things it would hang on.
    """
    if what.path is None:
        return what.home or "own", None
    ref = paths.clean(what.path)
    home: Home = "group" if ref.root == SHARED_MEMORY else "own"
    if what.report is not None or what.home not in {None, home} or ref.is_on_disk:
        raise InvalidInputError(field="path")
    return home, ref.key


def _json(home: Home, blob: Blob) -> dict[str, Any]:
    note = blob.note_path
    return {
        "id": blob.id,
        "home": home,
        "name": blob.name,
        "media_type": blob.media_type,
        "size_bytes": blob.size_bytes,
        "etag": blobs.tag_of(blob),
        "path": None if note is None else PathRef(_ROOTS[home], note).display,
        "report_id": blob.report_id,
        "author": blob.author,
        "created_at": time_or_none(blob.created_at),
    }


def _media_type(request: Request) -> str:
    sent = request.headers.getlist("content-type")
    if not sent:
        return _DEFAULT_TYPE
    [text] = sent if len(sent) == 1 else [""]
    if len(text) > _TYPE_CHARS_MAX or not _MEDIA_TYPE.fullmatch(text):
        raise InvalidInputError
    return text


@router.get("/api/blobs")
async def list_blobs(query: Annotated[ListQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Files of one store in the order of their ids; with `path` or `report` what hangs on that.

    A deleted note's are listed until it is purged.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _list(ask, query)


@router.post("/api/blobs/list")
async def list_blobs_by_body(body: ListBody, ask: AskDep) -> dict[str, Any]:
    """As `GET /api/blobs`."""
    return await _list(ask, body)


@router.put("/api/blobs/{blob_id}", openapi_extra=_RAW, responses=_CREATED, response_model=OBJECT)
async def put_blob(blob_id: str, query: Annotated[PutQuery, FromQuery()], ask: AskDep) -> Response:
    """Store a file, of any media type, under a UUID of one's own; `?path=` or `?report=` hangs it
    on a note or report.

    201 when it is new. The same again is 200 and changes nothing; anything else under the same
    id, other bytes, another name, type or place, is 409 `blob_differs`. A file hangs on its note
    wherever that is moved, and stays when it is deleted until it is purged. What may stand in no
    URL is said afterwards, by `POST /api/blobs/{blob_id}/place`.
    """  # noqa: D205, DOC201 - the words are OpenAPI's
    request = ask.request
    require_uncompressed(request)
    home, note_key = _placed(query)
    condition = blob_condition_of(request)
    new = NewBlob(blob_id, _media_type(request), query.name, note_key, query.report)
    length = request.headers.get("content-length")

    def render(put: Put) -> Response:
        return _stored(home, put.blob, 201 if put.created else 200)

    async with uploads.arriving(
        ask.room,
        ask.caller,
        ask.call,
        home,
        new,
        request.stream(),
        None if length is None else int(length),
    ) as arrival:
        return await ask.once(
            lambda call: uploads.keep(ask.room, ask.caller, call, home, new, arrival, condition),
            render,
        )


def _stored(home: Home, blob: Blob, status: int = 200) -> Response:
    tag = etag(blobs.tag_of(blob))
    return JSONResponse(_json(home, blob), status_code=status, headers={"ETag": tag})


@router.post("/api/blobs/{blob_id}/place", response_model=OBJECT)
async def place_blob(blob_id: str, body: PlaceBody, ask: AskDep) -> Response:
    """Name a file that is there, and hang it on a note by `path` or on a report, as
    `PUT /api/blobs/{blob_id}` does by its query; what is left out stays as it is.

    Each is said once: the same again changes nothing, and another name or place is 409
    `blob_differs`.
    """  # noqa: D205, DOC201 - the words are OpenAPI's
    if body.name is None and body.path is None and body.report is None:
        raise InvalidInputError
    home, note_key = _placed(body)
    placing = Placing(body.name, note_key, body.report)
    condition = blob_condition_of(ask.request)
    return await ask.once(
        lambda call: bridge.place(ask.room, ask.caller, call, home, blob_id, placing, condition),
        partial(_stored, home),
    )


@router.get("/api/blobs/{blob_id}", response_class=Response, responses=_CONTENT)
async def get_blob(blob_id: str, query: Annotated[HomeQuery, FromQuery()], ask: AskDep) -> Response:
    """A file's bytes, or with `Range` one part of them; several ranges get the whole."""
    held, headers = await _found(ask, query.home, blob_id)
    size = held.blob.size_bytes
    if is_known(ask.request, blobs.tag_of(held.blob)):
        return Response(status_code=304, headers=headers)
    part = ranges.part_of(ask.request, size, headers["ETag"])
    start, end = part or (0, size)
    headers |= _particulars(held.blob, end - start)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    content = bridge.pieces(ask.room, ask.caller, held, start, end)
    # Read before the head is sent, so that a damaged file can still be told as such.
    first = await anext(content)
    return StreamingResponse(
        _after(first, content), status_code=200 if part is None else 206, headers=headers
    )


@router.head("/api/blobs/{blob_id}", response_class=Response, responses=_HEAD)
async def head_blob(
    blob_id: str, query: Annotated[HomeQuery, FromQuery()], ask: AskDep
) -> Response:
    """What `GET` would say of the whole file, without its bytes; `Range` is passed over."""
    held, headers = await _found(ask, query.home, blob_id)
    if is_known(ask.request, blobs.tag_of(held.blob)):
        return Response(status_code=304, headers=headers)
    return Response(headers=headers | _particulars(held.blob, held.blob.size_bytes))


async def _found(ask: Ask, home: Home, blob_id: str) -> tuple[Held, dict[str, str]]:
    """A file that the caller may read as it asks, and the headers that go with every answer."""
    held = await bridge.get(ask.room, ask.caller, ask.call, home, blob_id)
    tag = blobs.tag_of(held.blob)
    require_tag(ask.request, tag)
    return held, {"ETag": etag(tag), "Accept-Ranges": "bytes"}


def _particulars(blob: Blob, size_bytes: int) -> dict[str, str]:
    return {
        "Content-Length": str(size_bytes),
        "Content-Type": blob.media_type,
        "Content-Disposition": _disposition(blob),
    }


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _disposition(blob: Blob) -> str:
    """A browser saves it and never shows it: it is whatever somebody sent (RFC 6266)."""
    if blob.name is None:
        return "attachment"
    return f"attachment; filename*=UTF-8''{quote(blob.name, safe='')}"


@router.delete("/api/blobs/{blob_id}", status_code=204)
async def delete_blob(
    blob_id: str, query: Annotated[HomeQuery, FromQuery()], ask: AskDep
) -> Response:
    """Take a file away; its bytes leave the disk a day later, unless another holds the same."""
    condition = blob_condition_of(ask.request)
    return await ask.once(
        lambda call: bridge.remove(ask.room, ask.caller, call, query.home, blob_id, condition),
        no_content,
    )


async def _list(ask: Ask, what: ListQuery | ListBody) -> dict[str, Any]:
    home, note_key = _placed(what)
    [after] = cursors.ids_of(what.cursor, 1)
    rows = await bridge.list_page(
        ask.room, ask.caller, ask.call, home, Which(note_key, what.report), after, what.limit + 1
    )
    return cursors.page_of(
        rows, what.limit, lambda row: _json(home, row), lambda row: cursors.encode(row.id)
    )
