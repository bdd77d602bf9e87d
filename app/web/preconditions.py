"""ETags, and the headers that make a call depend on them (RFC 9110, 8.8.3 and 13.1)."""

import re
from collections.abc import Iterator
from typing import Final

from fastapi import Request

from app.errors import InvalidInputError, VersionConflictError
from app.owner.notes import Condition

_TAG: Final = re.compile(r'[ \t,]*(W/)?("[!#-~\x80-\xff]*")[ \t]*(?=,|$)')
_REST: Final = re.compile(r"[ \t,]*")
_OURS: Final = re.compile(r'"([1-9][0-9]{0,17})"')
_ANY: Final = "*"


def etag(version: int) -> str:
    """The ETag of a version."""
    return f'"{version}"'


def _header(request: Request, name: str) -> str | None:
    values = request.headers.getlist(name)
    return ", ".join(values).strip(" \t") if values else None


def _read_tags(text: str) -> Iterator[tuple[bool, str]]:
    """Whether each tag of a list is weak, and the tag with its quotes.

    Yields:
        One pair a tag, in their order.

    Raises:
        InvalidInputError: It is no list of tags.
    """
    at, count = 0, 0
    while found := _TAG.match(text, at):
        at, count = found.end(), count + 1
        yield found[1] is not None, found[2]
    if not count or not _REST.fullmatch(text, at):
        raise InvalidInputError


def condition_of(request: Request) -> Condition:
    """What `If-Match` and `If-None-Match` ask of a write.

    A weak tag, and one that this service never gave, matches nothing.

    Returns:
        The condition; an empty one when neither header is there.

    Raises:
        InvalidInputError: A header that cannot be read, or both, or a list of tags that must
            not match: they are refused, not passed over.
    """
    match, none = _header(request, "if-match"), _header(request, "if-none-match")
    if none is not None:
        if none != _ANY or match is not None:
            raise InvalidInputError
        return Condition(must_not_exist=True)
    if match is None:
        return Condition()
    if match == _ANY:
        return Condition(must_exist=True)
    return Condition(match=_versions(match))


def _versions(tags: str) -> frozenset[int]:
    strong = [tag for is_weak, tag in _read_tags(tags) if not is_weak]
    return frozenset(int(ours[1]) for tag in strong if (ours := _OURS.fullmatch(tag)))


def require_match(request: Request, version: int) -> None:
    """Refuse a read whose `If-Match` asks for another version than stands.

    Raises:
        VersionConflictError: It does.
        InvalidInputError: The header cannot be read.
    """
    match = _header(request, "if-match")
    if match is not None and match != _ANY and version not in _versions(match):
        raise VersionConflictError(version)


def is_known(request: Request, version: int) -> bool:
    """Whether the caller has this version, by `If-None-Match`; one that cannot be read says no."""
    text = _header(request, "if-none-match")
    if text is None:
        return False
    if text == _ANY:
        return True
    try:
        return any(tag == etag(version) for _, tag in _read_tags(text))
    except InvalidInputError:
        return False


def match_of(request: Request) -> frozenset[int] | None:
    """What `If-Match` asks of a thing that is always there.

    Returns:
        The versions of which one must stand; None for any.

    Raises:
        InvalidInputError: A header that cannot be read, or `If-None-Match`.
    """
    condition = condition_of(request)
    if condition.must_not_exist:
        raise InvalidInputError
    return condition.match
