"""ETags, and the headers that make a call depend on them (RFC 9110, 8.8.3 and 13.1)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fastapi import Request

from app.errors.conflicts import VersionConflictError
from app.errors.inputs import InvalidInputError
from app.owner.blobs import BlobCondition
from app.owner.notes import Condition

_TAG: Final = re.compile(r'[ \t,]*(W/)?("[!#-~\x80-\xff]*")[ \t]*(?=,|$)')
_REST: Final = re.compile(r"[ \t,]*")
_OURS: Final = re.compile(r'"([1-9][0-9]{0,17})"')
_ANY: Final = "*"


_SHOWS_NONE: Final = (
    "What this call is about shows no version: send it without If-Match and If-None-Match."
)


def etag(version: int | str) -> str:
    """The ETag of a version, or of a blob's content."""
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the two headers say; nothing by default."""

    tags: tuple[str, ...] | None = None
    """Strong tags of which one must stand, with their quotes; None for any."""
    must_exist: bool = False
    must_not_exist: bool = False


def _asked_of(request: Request) -> _Asked:
    """What `If-Match` and `If-None-Match` ask of a write; a weak tag matches nothing.

    Returns:
        An empty one when neither header is there.

    Raises:
        InvalidInputError: A header that cannot be read, or both, or a list of tags that must
            not match: they are refused, not passed over.
    """
    match, none = _header(request, "if-match"), _header(request, "if-none-match")
    if none is not None:
        if none != _ANY or match is not None:
            raise InvalidInputError
        return _Asked(must_not_exist=True)
    if match is None:
        return _Asked()
    if match == _ANY:
        return _Asked(must_exist=True)
    return _Asked(_strong(match))


def condition_of(request: Request) -> Condition:
    """What `If-Match` and `If-None-Match` ask of a write on a version.

    A tag that this service never gave matches nothing.

    Returns:
        The condition; an empty one when neither header is there.

    Raises:
        InvalidInputError: See `_asked_of`.
    """
    asked = _asked_of(request)
    match = None if asked.tags is None else _numbers(asked.tags)
    return Condition(match, must_exist=asked.must_exist, must_not_exist=asked.must_not_exist)


def blob_condition_of(request: Request) -> BlobCondition:
    """The same of a write on a blob, whose tag is a text.

    Returns:
        The condition; an empty one when neither header is there.

    Raises:
        InvalidInputError: See `_asked_of`.
    """
    asked = _asked_of(request)
    match = None if asked.tags is None else frozenset(tag.strip('"') for tag in asked.tags)
    return BlobCondition(match, must_exist=asked.must_exist, must_not_exist=asked.must_not_exist)


def _strong(tags: str) -> tuple[str, ...]:
    return tuple(tag for is_weak, tag in _read_tags(tags) if not is_weak)


def _numbers(tags: tuple[str, ...]) -> frozenset[int]:
    return frozenset(int(ours[1]) for tag in tags if (ours := _OURS.fullmatch(tag)))


def _versions(tags: str) -> frozenset[int]:
    return _numbers(_strong(tags))


def require_match(request: Request, version: int) -> None:
    """Refuse a read whose `If-Match` asks for another version than stands.

    Raises:
        VersionConflictError: It does.
        InvalidInputError: The header cannot be read.
    """
    match = _header(request, "if-match")
    if match is not None and match != _ANY and version not in _versions(match):
        raise VersionConflictError(version)


def require_tag(request: Request, tag: str) -> None:
    """Refuse a read whose `If-Match` asks for another content than stands.

    Raises:
        VersionConflictError: It does.
        InvalidInputError: The header cannot be read.
    """
    match = _header(request, "if-match")
    if match is not None and match != _ANY and etag(tag) not in _strong(match):
        raise VersionConflictError(tag)


def is_known(request: Request, version: int | str) -> bool:
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


def require_unconditional(request: Request) -> None:
    """Refuse a condition where no version stands that it could be held against.

    Raises:
        VersionConflictError: There is one; whatever it asks for, none such stands.
    """
    if "if-match" in request.headers or "if-none-match" in request.headers:
        raise VersionConflictError().advised(_SHOWS_NONE)


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
