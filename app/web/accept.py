"""Which of two forms a caller would rather have (RFC 9110, 12.5.1)."""

import re
from typing import Final, Literal

from fastapi import Request

from app.web.errors import Problem

Form = Literal["text", "json"]
_QUALITY: Final = re.compile(r"q=([01](?:\.[0-9]{0,3})?)")
_RANGES: Final[dict[Form, tuple[str, ...]]] = {
    "text": ("text/markdown", "text/plain", "text/*", "*/*"),
    "json": ("application/json", "application/*", "*/*"),
}
"""What each form answers to, the most specific first. Markdown is plain text as well."""


def chosen_form(request: Request) -> Form:
    """Choose the form with the highest quality.

    Returns:
        Of equal ones the first named; text when the caller does not mind.

    Raises:
        Problem: 406, the caller takes neither.
    """
    sent = ",".join(request.headers.getlist("accept")).lower()
    if not sent.strip(" \t,"):
        return "text"
    ranges = [_read_range(part) for part in sent.split(",") if part.strip()]
    best: tuple[float, int] | None = None
    form: Form = "text"
    for candidate, names in _RANGES.items():
        wish = _wish(ranges, names)
        if wish and (best is None or wish > best):
            best, form = wish, candidate
    if best is None:
        raise Problem(406)
    return form


def _read_range(text: str) -> tuple[str, float]:
    name, *parameters = [part.strip() for part in text.split(";")]
    for parameter in parameters:
        if found := _QUALITY.fullmatch(parameter):
            return name, float(found[1])
    return name, 1.0


def _wish(ranges: list[tuple[str, float]], names: tuple[str, ...]) -> tuple[float, int] | None:
    """Quality and, the earlier the greater, place of the range that fits best; None for no."""
    for name in names:
        for place, (sent, quality) in enumerate(ranges):
            if sent == name:
                return (quality, -place) if quality else None
    return None
