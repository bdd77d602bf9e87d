"""Cursors of lists: opaque to clients, and refused unless this program could have made them."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from app.errors.inputs import InvalidInputError
from app.ids import is_uuid
from app.web.shapes import PageQuery, page

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
    item: Callable[[RowT], Mapping[str, Any]],
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


def page_of_all(
    rows: Iterable[RowT],
    query: PageQuery,
    item: Callable[[RowT], Mapping[str, Any]],
    *order: Callable[[RowT], str | int],
    is_falling: bool = False,
) -> dict[str, object]:
    """A page of a list that is read whole, being short.

    Args:
        rows: All of them.
        query: Which page.
        item: A row as the answer gives it.
        order: What the list is ordered by, and by what next; together no two rows' are the
            same. A number is not negative.
        is_falling: Whether the last comes first.

    Returns:
        The page; it begins after the cursor's place, whether the row there still stands or not.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """

    def place(row: RowT) -> list[str]:
        parts = (part(row) for part in order)
        # As texts, numbers too: so they are compared with those of a cursor.
        return [f"{part:018}" if isinstance(part, int) else part for part in parts]

    left = sorted(rows, key=place, reverse=is_falling)
    if query.cursor is not None:
        after = _decode(query.cursor, len(order))
        left = [row for row in left if (place(row) < after if is_falling else place(row) > after)]
    return page_of(left, query.limit, item, lambda row: encode(*place(row)))
