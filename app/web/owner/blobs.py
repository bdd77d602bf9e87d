"""Files of any kind: `/api/blobs`."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi import Query as FromQuery
from fastapi.responses import JSONResponse, StreamingResponse

from app.bridge.content import blobs as bridge
from app.bridge.content import uploads
from app.bridge.content.blobs import Home
from app.errors.inputs import InvalidInputError
from app.owner import blobs, paths
from app.owner.blobs import Blob, NewBlob, Put, Which
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


def limits_below(settings: Settings) -> dict[str, int]:
    """Most bytes of a body, by the beginning of its path."""
    return {"/api/blobs/": settings.blob_bytes_max}


def _placed(what: PutQuery | ListQuery | ListBody) -> tuple[Home, str | None]:
    """Whose store a call is about, and the note's key in it.

    Returns:
        Both; None for no note.

    Raises:
        InvalidInputError: The path lies in the other store than it says, or is one of two
            things it would hang on.
    """
    if what.path is None:
        return what.home or "own", None
    ref = paths.clean(what.path)
    home: Home = "group" if ref.root == SHARED_MEMORY else "own"
    if what.report is not None or what.home not in {None, home}:
        raise InvalidInputError
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
    wherever that is moved, and stays when it is deleted until it is purged.
    """  # noqa: D205, DOC201 - the words are OpenAPI's
    request = ask.request
    require_uncompressed(request)
    home, note_key = _placed(query)
    condition = blob_condition_of(request)
    new = NewBlob(blob_id, _media_type(request), query.name, note_key, query.report)
    length = request.headers.get("content-length")

    def render(put: Put) -> Response:
        return JSONResponse(
            _json(home, put.blob),
            status_code=201 if put.created else 200,
            headers={"ETag": etag(blobs.tag_of(put.blob))},
        )

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


@router.get("/api/blobs/{blob_id}", response_class=Response, responses=_CONTENT)
async def get_blob(blob_id: str, query: Annotated[HomeQuery, FromQuery()], ask: AskDep) -> Response:
    """A file's bytes, or with `Range` one part of them; several ranges get the whole."""
    held = await bridge.get(ask.room, ask.caller, ask.call, query.home, blob_id)
    tag = blobs.tag_of(held.blob)
    require_tag(ask.request, tag)
    headers = {"ETag": etag(tag), "Accept-Ranges": "bytes"}
    if is_known(ask.request, tag):
        return Response(status_code=304, headers=headers)
    size = held.blob.size_bytes
    part = ranges.part_of(ask.request, size, etag(tag))
    start, end = part or (0, size)
    headers |= {
        "Content-Length": str(end - start),
        "Content-Type": held.blob.media_type,
        "Content-Disposition": _disposition(held.blob),
    }
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    content = bridge.pieces(ask.room, ask.caller, held, start, end)
    # Read before the head is sent, so that a damaged file can still be told as such.
    first = await anext(content)
    return StreamingResponse(
        _after(first, content), status_code=200 if part is None else 206, headers=headers
    )


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
