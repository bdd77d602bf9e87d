"""Notes read: `/api/file`, `/api/files`, and the POST forms that keep paths out of URLs."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery

from app.bridge.content import files
from app.owner import paths
from app.settings import Settings
from app.web.owner.note_shapes import ListBody, ListQuery, PathQuery, ReadBody, entry
from app.web.owner.note_text import note_response
from app.web.routes import Ask, AskDep, StrictRoute

router = APIRouter(route_class=StrictRoute)

_ESCAPED_MAX: Final = 2
"""JSON may escape a text; a body of twice the note's size is taken."""
_NOTE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "content": {
            "text/markdown": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
        }
    },
    304: {"description": "The caller has this version."},
}


def body_limits(settings: Settings) -> dict[str, int]:
    """Most bytes of a body by exact path, where it is not the common limit."""
    return dict.fromkeys(
        ("/api/file", "/api/file/append", "/api/file/write", "/api/file/edit"),
        escaped_note_bytes(settings),
    )


def escaped_note_bytes(settings: Settings) -> int:
    """Most bytes of a body that carries a note's text as JSON."""
    return _ESCAPED_MAX * settings.note_bytes_max + settings.json_bytes_max


async def _read(ask: Ask, path: str) -> Response:
    ref = paths.clean(path)
    note = await files.get(ask.room, ask.caller, ask.call, ref)
    return note_response(ask.request, ref.display, note)


@router.get("/api/file", response_class=Response, responses=_NOTE)
async def get_file(query: Annotated[PathQuery, FromQuery()], ask: AskDep) -> Response:
    """One note: as Markdown, or as JSON with its particulars when that is accepted.

    Under `shared/{folder}` and `projects/{owner}/{slug}` it is a file on the service's disk, in
    clear and without versions; its ETag is made of its content. So for every call on files.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _read(ask, query.path)


@router.post("/api/file/read", response_class=Response, responses=_NOTE)
async def read_file(body: ReadBody, ask: AskDep) -> Response:
    """As `GET /api/file`."""
    return await _read(ask, body.path)


async def _list(ask: Ask, what: ListQuery | ListBody) -> dict[str, Any]:
    ref = paths.clean(what.path)
    found = await files.list_folder(ask.room, ask.caller, ask.call, ref, what.depth)
    return {"items": [entry(ref.root, row) for row in found]}


@router.get("/api/files")
async def list_files(query: Annotated[ListQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """What lies in a folder; folders are implied by paths.

    `shared` and `projects` list the folders on the disk that the caller is in. Of files there
    neither lines nor versions are told, for that would mean to read each of them.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _list(ask, query)


@router.post("/api/file/list")
async def list_files_by_body(body: ListBody, ask: AskDep) -> dict[str, Any]:
    """As `GET /api/files`."""
    return await _list(ask, body)
