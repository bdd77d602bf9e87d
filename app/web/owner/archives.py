"""A member's own notes as one archive: `/api/memory/export`, `/api/memory/import`."""

from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from app.bridge.content import archives
from app.bridge.content.archives import Export
from app.owner.copies import TakenIn
from app.settings import Settings
from app.web.answers import OBJECT, as_json
from app.web.routes import AskDep, StrictRoute
from app.web.strict_json import require_media_type

router = APIRouter(route_class=StrictRoute)

ZIP: Final = "application/zip"
_BYTES: Final[dict[str, Any]] = {ZIP: {"schema": {"type": "string", "format": "binary"}}}
_ARCHIVE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The archive.", "content": _BYTES}
}
_RAW: Final[dict[str, Any]] = {"requestBody": {"required": True, "content": _BYTES}}


def body_limits(settings: Settings) -> dict[str, int]:
    """Most bytes of a body by exact path, where it is not the common limit."""
    return {"/api/memory/import": settings.archive_bytes_max}


@router.get("/api/memory/export", response_class=Response, responses=_ARCHIVE)
async def export_memory(ask: AskDep) -> Response:
    """All of the caller's own notes as a ZIP file, as they are at one moment.

    Each is a file under `user-memory/`, in the folders of its path, by a name that every system
    takes; `manifest.jsonl` says the exact path, version, author, times and SHA-256 of each.
    History, files beside notes and reports are not in it.
    """  # noqa: DOC201 - the words are OpenAPI's
    content = archives.pieces(ask.room, ask.caller, ask.call)
    # Made before the head is sent, so that what stands in its way can still be told.
    export = await anext(content)
    size_bytes = export.size_bytes if isinstance(export, Export) else 0
    headers = {
        "Content-Length": str(size_bytes),
        "Content-Disposition": 'attachment; filename="strongroom-memory.zip"',
    }
    return StreamingResponse(_bytes_of(content), media_type=ZIP, headers=headers)


async def _bytes_of(content: AsyncIterator[bytes | Export]) -> AsyncIterator[bytes]:
    async for piece in content:
        if isinstance(piece, bytes):
            yield piece


@router.post("/api/memory/import", openapi_extra=_RAW, response_model=OBJECT)
async def import_memory(ask: AskDep) -> Response:
    """Take in an archive of notes, all or nothing: `{written, unchanged}`.

    One that was exported, or any ZIP file of texts in UTF-8, whose names are then the paths. What
    stands at a path is replaced and stays in its history. An archive that any part of says
    something else than another, or that could lead elsewhere, is refused, by a code that says why.
    """  # noqa: DOC201 - the words are OpenAPI's
    require_media_type(ask.request, frozenset({ZIP}))
    async with archives.arriving(ask.room, ask.caller, ask.request.stream()) as spool:
        return await ask.once(
            lambda call: archives.take_in(ask.room, ask.caller, call, spool), as_json(_taken_in)
        )


def _taken_in(done: TakenIn) -> dict[str, int]:
    return {"written": done.written, "unchanged": done.unchanged}
