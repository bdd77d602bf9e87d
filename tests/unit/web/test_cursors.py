"""Cursors: opaque, of one spelling, and refused when this program did not make them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors.inputs import InvalidInputError
from app.web import cursors
from app.web.shapes import PageQuery

ID = "01890000-0000-7000-8000-000000000001"
OTHER = "01890000-0000-7000-8000-000000000002"


@given(st.integers(0, 10**18 - 1))
def test_a_number_comes_back(number: int) -> None:
    """What was put in is read."""
    assert cursors.number_of(cursors.encode(number)) == number


@given(st.integers(0, 10**18 - 1))
def test_a_place_comes_back(number: int) -> None:
    """What was put in is read."""
    assert cursors.place_of(cursors.encode(number, ID)) == (number, ID)


def test_ids_come_back() -> None:
    """What was put in is read."""
    assert cursors.ids_of(cursors.encode(ID, OTHER), 2) == [ID, OTHER]


def test_no_cursor_is_the_beginning() -> None:
    """Each reading says so in the way its list takes it."""
    assert cursors.number_of(None) is None
    assert cursors.place_of(None) is None
    assert cursors.ids_of(None, 2) == ["", ""]


@given(st.text(max_size=60))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    """Nothing else can come of it; and what is taken has one spelling."""
    try:
        number = cursors.number_of(text)
    except InvalidInputError:
        return
    assert cursors.encode(number or 0) == text


GARBAGE = {
    "empty": "",
    "no base64": "!!!!",
    "spaces within": "M Q",
    "padded": "MQ==",
    "no UTF-8": "____",
    "no number": cursors.encode("one"),
    "negative": cursors.encode(-1),
    "leading zero": cursors.encode("01"),
    "too large": cursors.encode(10**18),
    "other digits": cursors.encode("\u0661"),
    "two parts": cursors.encode(1, 2),
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_refused(text: str) -> None:
    """A cursor that this program did not make is no cursor."""
    with pytest.raises(InvalidInputError):
        cursors.number_of(text)
    with pytest.raises(InvalidInputError):
        cursors.ids_of(text, 1)
    with pytest.raises(InvalidInputError):
        cursors.place_of(text)


def test_a_page_says_whether_more_follows() -> None:
    """The row beyond the limit is not shown; it makes the cursor of the last one shown."""

    def page(rows: list[int]) -> dict[str, object]:
        return cursors.page_of(rows, 2, lambda row: {"n": row}, str)

    assert page([1, 2, 3]) == {"items": [{"n": 1}, {"n": 2}], "next_cursor": "2"}
    assert page([1, 2]) == {"items": [{"n": 1}, {"n": 2}], "next_cursor": None}
    assert page([]) == {"items": [], "next_cursor": None}


def _walked(
    rows: list[tuple[int, str]], limit: int, *, is_falling: bool, goes: bool
) -> list[object]:
    """What a client gets page by page; with `goes` each row shown last is gone at the next one."""
    found: list[object] = []
    query = PageQuery(limit=limit)
    while True:
        page = cursors.page_of_all(
            rows,
            query,
            lambda row: {"row": row},
            lambda row: row[0],
            lambda row: row[1],
            is_falling=is_falling,
        )
        items = page["items"]
        assert isinstance(items, list)
        assert len(items) <= limit
        found += [item["row"] for item in items]
        if page["next_cursor"] is None:
            return found
        if goes:
            rows = [row for row in rows if row != found[-1]]
        query = PageQuery(limit=limit, cursor=str(page["next_cursor"]))


@given(
    rows=st.sets(st.tuples(st.integers(0, 1_000), st.sampled_from(["", "a", "b", "\u00e9"]))),
    limit=st.integers(1, 5),
    is_falling=st.booleans(),
    goes=st.booleans(),
)
def test_a_whole_list_comes_page_by_page(
    rows: set[tuple[int, str]], limit: int, *, is_falling: bool, goes: bool
) -> None:
    """Each row once, in the list's order, also when rows go meanwhile."""
    found = _walked(list(rows), limit, is_falling=is_falling, goes=goes)
    assert found == sorted(rows, reverse=is_falling)


@pytest.mark.parametrize("text", ["", "!!!!", "MQ==", cursors.encode("a"), cursors.encode(1, 2, 3)])
def test_a_whole_list_refuses_garbage(text: str) -> None:
    """Also where there is no row."""
    query = PageQuery(cursor=text)
    with pytest.raises(InvalidInputError):
        cursors.page_of_all([], query, dict, lambda _: 1, lambda _: "a")
