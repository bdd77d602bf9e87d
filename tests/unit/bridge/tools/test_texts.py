"""Texts as tools show them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bridge.tools import texts
from app.owner.edits import count_lines
from app.owner.folders import ENTRIES_MAX, EntryRow

TEXTS = st.text(alphabet="ab\n\r\u2028\x0b", max_size=40)


@given(TEXTS)
def test_lines_are_those_that_edits_count(text: str) -> None:
    r"""Only `\n` ends one, and a final one begins no further."""
    lines = list(texts.lines_of(text))
    assert len(lines) == count_lines(text)
    assert "\n".join(lines) == text.removesuffix("\n")


@given(TEXTS, st.integers(1, 9), st.integers(1, 9))
def test_parts_make_the_whole(text: str, first: int, last: int) -> None:
    """Whatever lines they are cut at."""
    assert texts.part(text, 1, None) == text
    if first <= last:
        before = texts.part(text, 1, first - 1) if first > 1 else ""
        shown = texts.part(text, first, last)
        assert before + shown + texts.part(text, last + 1, None) == text
        assert texts.numbered(text, first, last) == "\n".join(
            f"{number:>6}\t{line}"
            for number, line in enumerate(texts.lines_of(text), 1)
            if first <= number <= last
        )


def test_a_number_has_six_places() -> None:
    """And the last one that has is 999,999."""
    text = "\n" * texts.LINES_MAX
    assert texts.numbered(text, texts.LINES_MAX) == "999999\t"
    assert texts.numbered("a\nb", 2) == "     2\tb"
    assert texts.numbered("") == ""


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0B"),
        (1, "1B"),
        (1_023, "1023B"),
        (1_024, "1K"),
        (1_536, "1.5K"),
        (5 * 1_024**2, "5M"),
        (3 * 1_024**3 // 2, "1.5G"),
        (5 * 1_024**4, "5120G"),
    ],
)
def test_a_size_is_for_people(size: int, shown: str) -> None:
    """In the unit that fits."""
    assert texts.size_text(size) == shown


def test_a_change_is_shown_with_what_is_around_it() -> None:
    """Two lines before and after."""
    text = "".join(f"{number}\n" for number in range(1, 10))
    at = text.index("5")
    assert texts.around(text, at, 1).split() == ["3", "3", "4", "4", "5", "5", "6", "6", "7", "7"]
    assert texts.around("a", 0, 1) == "     1\ta"
    assert texts.around("", 0, 0) == ""
    assert texts.around("a\nb\nc", 4, 0) == "     1\ta\n     2\tb\n     3\tc"
    long = texts.around("x\n" * 90, 0, 180).splitlines()
    assert (len(long), long[-1]) == (40, "    40\tx")


@given(TEXTS, st.data())
def test_what_is_around_a_place_is_part_of_the_whole(text: str, data: st.DataObject) -> None:
    """By the same numbers."""
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, len(text) - start))
    shown = texts.around(text, start, length)
    assert shown in texts.numbered(text)
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, start + length)
    assert shown == texts.numbered(text, max(1, first - 2), last + 2)


def _file(path: str, size_bytes: int = 1) -> EntryRow:
    return EntryRow(path, path.rpartition("/")[2], is_dir=False, size_bytes=size_bytes)


def test_a_tree_sums_what_it_does_not_show() -> None:
    """Two levels; a folder's size is of all below, but for what is hidden."""
    entries = [
        EntryRow("f/a", "a", is_dir=True),
        EntryRow("f/a/b", "b", is_dir=True),
        _file("f/a/b/c", 10),
        _file("f/a/b/.d", 100),
        _file("f/node_modules/x", 1_000),
        _file("f/a-b", 2),
        EntryRow("f/empty", "empty", is_dir=True),
    ]
    assert texts.tree("/memories/f", "f", entries).splitlines() == [
        "12B\t/memories/f",
        "10B\t/memories/f/a/",
        "10B\t/memories/f/a/b/",
        "2B\t/memories/f/a-b",
        "0B\t/memories/f/empty/",
    ]
    assert texts.tree("/memories", "", []) == "0B\t/memories"


def test_a_listing_that_is_cut_says_so() -> None:
    """Both forms of it."""
    entries = [_file(f"n{number}") for number in range(ENTRIES_MAX)]
    shown = [entry.path for entry in entries]
    assert texts.listing(entries, shown).splitlines()[-1].startswith("(There are more than 10,000")
    assert texts.tree("/memories", "", entries).splitlines()[-1].startswith("(There are more")


def test_matches_are_found_in_any_case_and_bounded() -> None:
    """A hundred lines, none of them longer than five hundred characters."""
    assert texts.matches("Stra\u00dfe\nnone\nSTRASSE", "strasse") == "1: Stra\u00dfe\n3: STRASSE"
    assert texts.matches("a", "b") == ""
    assert texts.matches("a\na b\n\nb A\n", "a") == "1: a\n2: a b\n4: b A"
    assert texts.matches("one\ntwo\nthree", "TWO\nt") == "2: two"
    assert texts.matches("x" * 900, "X") == f"1: {'x' * 500}"
    rows = texts.matches("hit\n" * 101, "hit").splitlines()
    assert len(rows) == 101
    assert rows[-1].startswith("(There are more than 100")
    assert len(texts.matches("hit\n" * 100, "hit").splitlines()) == 100
