"""A note's text as requests carry it and answers give it."""

from typing import Final

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from app.errors.inputs import InvalidInputError, PayloadTooLargeError
from app.owner.notes import Written
from app.web.accept import chosen_form
from app.web.owner.note_shapes import Note, note_json, written_json
from app.web.preconditions import etag, is_known, require_match
from app.web.strict_json import require_media_type

MARKDOWN: Final = "text/markdown; charset=utf-8"
_KINDS: Final = frozenset({"text/markdown", "text/plain", "application/octet-stream", ""})


async def text_of(request: Request, size_max: int) -> str:
    """The raw body as text; a larger one is not read to its end.

    Returns:
        The text.

    Raises:
        Problem: 415, another kind of body.
        PayloadTooLargeError: It is larger than a note may be.
        InvalidInputError: It is not UTF-8, or holds a NUL.
    """
    require_media_type(request, _KINDS)
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > size_max:
            raise PayloadTooLargeError
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError from None
    if "\0" in text:
        raise InvalidInputError
    return text


def note_response(request: Request, path: str, note: Note) -> Response:
    """A note as text or JSON, or 304 when the caller has this version."""
    require_match(request, note.version)
    headers = {"ETag": etag(note.version), "Vary": "Accept"}
    form = chosen_form(request)
    if is_known(request, note.version):
        return Response(status_code=304, headers=headers)
    if form == "json":
        return JSONResponse(note_json(path, note), headers=headers)
    return Response(note.content, media_type=MARKDOWN, headers=headers)


def written_response(path: str, written: Written) -> JSONResponse:
    """The outcome of a write, without the text."""
    return JSONResponse(
        {**written_json(path, written.note), "replaced_version": written.replaced_version},
        status_code=201 if written.created else 200,
        headers={"ETag": etag(written.note.version)},
    )
