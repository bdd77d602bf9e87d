"""A part of something: the `Range` header (RFC 9110, 14.2), of one range of bytes."""

import re
from typing import Final

from fastapi import Request

from app.errors.inputs import RangeNotSatisfiableError

_ONE: Final = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))", re.IGNORECASE)


def part_of(request: Request, size_bytes: int, etag: str) -> tuple[int, int] | None:
    """Which part a request asks for.

    Several ranges, another unit, or what cannot be read are passed over: the whole is given,
    as the standard allows. So it is when `If-Range` names something else than this tag.

    Args:
        request: As it came.
        size_bytes: Of the whole.
        etag: Of the whole, with its quotes.

    Returns:
        From where up to where, without the end; None for the whole.

    Raises:
        RangeNotSatisfiableError: The part lies outside of the whole.
    """
    given = request.headers.getlist("range")
    condition = request.headers.get("if-range")
    if len(given) != 1 or (condition is not None and condition.strip() != etag):
        return None
    found = _ONE.fullmatch(given[0].replace(" ", ""))
    if found is None:
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        start, end = max(0, size_bytes - int(suffix)), size_bytes
    else:
        start = int(first)
        end = size_bytes if last is None else min(size_bytes, int(last) + 1)
        if last is not None and int(last) < start:
            return None
    if start >= end:
        raise RangeNotSatisfiableError(size_bytes)
    return start, end
