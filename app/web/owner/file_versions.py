"""The history of notes: `/api/file/versions`, `/api/file/restore`."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Path as FromPath
from fastapi import Query as FromQuery

from app.bridge.content import files
from app.bridge.content import notes as bridge
from app.owner import difference, paths, versions
from app.web import cursors
from app.web.owner.approvals import WAITS, or_waiting
from app.web.owner.note_shapes import (
    DiffBody,
    DiffQuery,
    PathQuery,
    RestoreBody,
    VersionsBody,
    VersionsQuery,
    version_json,
)
from app.web.owner.note_text import written_response
from app.web.preconditions import condition_of, etag, require_match
from app.web.routes import Ask, AskDep, StrictRoute

router = APIRouter(route_class=StrictRoute)


async def _list(ask: Ask, what: VersionsQuery | VersionsBody) -> dict[str, Any]:
    ref, before = paths.clean(what.path), cursors.number_of(what.cursor)
    rows = await bridge.read(
        ask.room,
        ask.caller,
        ask.call,
        ref,
        lambda reader: versions.list_versions(reader, ref.key, before, what.limit + 1),
    )
    return cursors.page_of(
        rows,
        what.limit,
        lambda row: version_json(ref.display, row),
        lambda row: cursors.encode(row.version),
    )


async def _get(ask: Ask, path: str, version: int, response: Response) -> dict[str, Any]:
    ref = paths.clean(path)
    row = await bridge.read(
        ask.room,
        ask.caller,
        ask.call,
        ref,
        lambda reader: versions.get_version(reader, ref.key, version),
    )
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return {**version_json(ref.display, row), "content": row.content}


@router.get("/api/file/versions")
async def list_versions(
    query: Annotated[VersionsQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """A path's history, newest first, also of a deleted note.

    Files of shared folders and projects have none: 409 `not_versioned`, as for each such call.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _list(ask, query)


@router.get("/api/file/versions/{version}")
async def get_version(
    version: Annotated[int, FromPath(ge=1, lt=1 << 62)],
    query: Annotated[PathQuery, FromQuery()],
    ask: AskDep,
    response: Response,
) -> dict[str, Any]:
    """One version with its text; null there for a deletion."""
    return await _get(ask, query.path, version, response)


@router.post("/api/file/versions")
async def versions_by_body(body: VersionsBody, ask: AskDep, response: Response) -> dict[str, Any]:
    """As the two calls for versions: a page, or with `version` that one."""
    if body.version is not None:
        return await _get(ask, body.path, body.version, response)
    return await _list(ask, body)


async def _diff(ask: Ask, path: str, old: int, new: int | None) -> dict[str, Any]:
    ref = paths.clean(path)
    pair = await bridge.read(
        ask.room,
        ask.caller,
        ask.call,
        ref,
        lambda reader: (
            versions.get_version(reader, ref.key, old),
            versions.get_version(reader, ref.key, new or versions.newest(reader, ref.key)),
        ),
    )
    was, is_now = (row.content or "" for row in pair)
    # Off the loop, and with no snapshot of the store held.
    found = await ask.room.stores.on_thread(lambda: difference.compare(was, is_now))
    return {
        "path": ref.display,
        "from": version_json(ref.display, pair[0]),
        "to": version_json(ref.display, pair[1]),
        "is_coarse": found.is_coarse,
        "hunks": [hunk._asdict() for hunk in found.hunks],
    }


@router.get("/api/file/diff")
async def diff_versions(query: Annotated[DiffQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """What differs between two versions of a note, as the hunks of a unified diff.

    Without `to` the newest is compared; a deletion is an empty text. Where a comparison would
    take too long `is_coarse` is true, and a hunk may tell more lines as replaced than differ;
    of very many it gives the counts and no lines.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _diff(ask, query.path, query.old, query.new)


@router.post("/api/file/diff")
async def diff_by_body(body: DiffBody, ask: AskDep) -> dict[str, Any]:
    """As `GET /api/file/diff`."""
    return await _diff(ask, body.path, body.old, body.new)


@router.post("/api/file/restore", responses=WAITS)
async def restore_file(body: RestoreBody, ask: AskDep) -> Response:
    """Put an old version back as the newest; also of a deleted note."""
    ref, condition = paths.clean(body.path), condition_of(ask.request)
    return await ask.once(
        lambda call: files.restore(ask.room, ask.caller, call, ref, body.version, condition),
        or_waiting(partial(written_response, ref.display)),
    )
