"""Cursors of lists: opaque to clients, and refused unless this program could have made them."""

import base64
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from app.errors.inputs import InvalidInputError
from app.ids import is_uuid
from app.web.shapes import page

RowT = TypeVar("RowT")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,17}")


def encode(*parts: str | int) -> str:
    """Make a cursor of the last row's place."""
    text = "\n".join(str(part) for part in parts)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(text: str, parts: int) -> list[str]:
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split("\n")
    except ValueError:
        raise InvalidInputError(field="cursor") from None
    # The decoder passes over what it does not know: only a cursor's one spelling counts.
    if len(found) != parts or encode(*found) != text:
        raise InvalidInputError(field="cursor")
    return found


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise InvalidInputError(field="cursor")
    return int(text)


def _id(text: str) -> str:
    if not is_uuid(text):
        raise InvalidInputError(field="cursor")
    return text


def number_of(cursor: str | None) -> int | None:
    """Read a cursor.

    Returns:
        The number in a cursor; None for no cursor.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """
    return None if cursor is None else _number(_decode(cursor, 1)[0])


def numbers_of(cursor: str | None, count: int) -> list[int | None]:
    """Read a cursor.

    Returns:
        The numbers in a cursor; as many None for no cursor.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """
    if cursor is None:
        return [None] * count
    return [_number(part) for part in _decode(cursor, count)]


def ids_of(cursor: str | None, count: int) -> list[str]:
    """Read a cursor.

    Returns:
        The ids in it; for no cursor as many empty ones, before which nothing comes.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """
    return [""] * count if cursor is None else [_id(part) for part in _decode(cursor, count)]


def place_of(cursor: str | None) -> tuple[int, str] | None:
    """Read a cursor.

    Returns:
        The number and the id in a cursor; None for no cursor.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """
    if cursor is None:
        return None
    number, row_id = _decode(cursor, 2)
    return _number(number), _id(row_id)


def page_of(
    rows: Sequence[RowT],
    limit: int,
    item: Callable[[RowT], dict[str, object]],
    place: Callable[[RowT], str],
) -> dict[str, object]:
    """A page of rows of which one more than the limit was asked for, to see whether it is there.

    Args:
        rows: At most `limit + 1` of them.
        limit: How many to show.
        item: A row as the answer gives it.
        place: The cursor after a row.

    Returns:
        The page.
    """
    shown = rows[:limit]
    following = place(shown[-1]) if len(rows) > limit else None
    return page([item(row) for row in shown], following)
