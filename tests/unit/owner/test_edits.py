"""Edits of a text: placed in the text as it was, all or none."""

import contextlib
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors.conflicts import ManyMatchesError, NoMatchError
from app.errors.inputs import InvalidInputError, OverlappingEditsError
from app.owner.edits import (
    MAX_EDITS,
    MAX_REPORTED_LINES,
    Edit,
    InsertLines,
    ReplaceLines,
    ReplaceText,
    apply_edits,
    count_lines,
)

MIB = 2**20


@pytest.mark.parametrize(
    ("text", "edits", "expected"),
    [
        pytest.param("a\nb\n", [], "a\nb\n", id="no edits"),
        pytest.param("one two", [ReplaceText("two", "2")], "one 2", id="replace text"),
        pytest.param("one two", [ReplaceText(" two", "")], "one", id="delete text"),
        pytest.param("a\nb\nc", [ReplaceText("a\nb", "x")], "x\nc", id="replace over lines"),
        pytest.param("a", [ReplaceText("a", "aa")], "aa", id="new may hold old"),
        pytest.param(
            "one two", [ReplaceText("two", "one"), ReplaceText("one", "two")], "two one", id="swap"
        ),
        pytest.param("a\nb\n", [InsertLines(1, "x")], "x\na\nb\n", id="insert first"),
        pytest.param("a\nb\n", [InsertLines(2, "x\n")], "a\nx\nb\n", id="insert with newline"),
        pytest.param("a\nb\n", [InsertLines(2, "\n")], "a\n\nb\n", id="insert empty line"),
        pytest.param("a\nb\n", [InsertLines(2, "")], "a\nb\n", id="insert nothing"),
        pytest.param("a\nb\n", [InsertLines(3, "x")], "a\nb\nx", id="insert at the end"),
        pytest.param("a\nb", [InsertLines(3, "x")], "a\nb\nx", id="insert at an open end"),
        pytest.param("a", [InsertLines(2, "")], "a", id="insert nothing at an open end"),
        pytest.param("", [InsertLines(1, "x")], "x", id="insert into nothing"),
        pytest.param(
            "a\n", [InsertLines(1, "x"), InsertLines(1, "y")], "x\ny\na\n", id="same place in order"
        ),
        pytest.param(
            "a", [InsertLines(2, "x"), InsertLines(2, "y")], "a\nx\ny", id="same end in order"
        ),
        pytest.param(
            "", [InsertLines(1, "x"), InsertLines(1, "y")], "x\ny", id="both into nothing"
        ),
        pytest.param("a\nb\nc\n", [ReplaceLines(2, 2, "x")], "a\nx\nc\n", id="replace a line"),
        pytest.param("a\nb\nc\n", [ReplaceLines(1, 3, "x\n")], "x\n", id="replace all lines"),
        pytest.param("a\nb\nc", [ReplaceLines(2, 3, "x")], "a\nx", id="replace the last lines"),
        pytest.param("a\nb\nc\n", [ReplaceLines(1, 2, "")], "c\n", id="delete lines"),
        pytest.param("a\nb", [ReplaceLines(2, 2, "")], "a\n", id="delete the last line"),
        pytest.param(
            "a\nb\nc\n",
            [ReplaceLines(2, 3, "x"), InsertLines(2, "i"), InsertLines(4, "j")],
            "a\ni\nx\nj",
            id="inserts at both ends of a replacement",
        ),
        pytest.param(
            "a\nb", [ReplaceLines(1, 2, ""), InsertLines(3, "x")], "x", id="all out, one in"
        ),
        pytest.param(
            "a\nb\nc\nd\n",
            [
                InsertLines(5, "5"),
                ReplaceLines(3, 3, "3"),
                InsertLines(1, "1"),
                ReplaceText("a", "A"),
            ],
            "1\nA\nb\n3\nd\n5",
            id="positions are those of the old text",
        ),
        pytest.param(
            "a\nb", [ReplaceText("a\n", "a"), InsertLines(2, "x")], "a\nx\nb", id="newline taken"
        ),
        pytest.param("a\r\nb\r\n", [InsertLines(2, "x")], "a\r\nx\nb\r\n", id="carriage returns"),
        pytest.param(
            "a\u2028b\x0bc\nd", [ReplaceLines(1, 1, "x")], "x\nd", id="only newlines part"
        ),
    ],
)
def test_edits_give_the_text_they_say(text: str, edits: Sequence[Edit], expected: str) -> None:
    """Each edit falls on the text as it was, and lines put in never fuse with others."""
    assert apply_edits(text, edits) == expected


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(InsertLines(0, "x"), id="insert before the first"),
        pytest.param(InsertLines(-1, "x"), id="insert counting back"),
        pytest.param(InsertLines(4, "x"), id="insert beyond the end"),
        pytest.param(ReplaceLines(0, 1, "x"), id="from before the first"),
        pytest.param(ReplaceLines(2, 3, "x"), id="to beyond the last"),
        pytest.param(ReplaceLines(2, 1, "x"), id="backwards"),
        pytest.param(ReplaceText("", "x"), id="empty old"),
    ],
)
def test_an_edit_of_what_is_not_there_is_refused(edit: Edit) -> None:
    """A line outside the text and an empty `old` are bad input."""
    with pytest.raises(InvalidInputError) as caught:
        apply_edits("a\nb\n", [edit])
    assert caught.type is InvalidInputError


def test_an_empty_text_has_no_line_to_replace() -> None:
    """No line is line 1 of nothing."""
    with pytest.raises(InvalidInputError):
        apply_edits("", [ReplaceLines(1, 1, "x")])


def test_too_many_edits_are_refused() -> None:
    """One call does a bounded amount of work."""
    edits = [InsertLines(1, "x")] * MAX_EDITS
    assert count_lines(apply_edits("", edits)) == MAX_EDITS
    with pytest.raises(InvalidInputError):
        apply_edits("", [*edits, InsertLines(1, "x")])


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([ReplaceText("bc", "x"), ReplaceText("cd", "y")], id="texts"),
        pytest.param([ReplaceText("bcd", "x"), ReplaceText("c", "y")], id="text in text"),
        pytest.param([ReplaceText("bcd", "x"), ReplaceText("bcd", "y")], id="the same text"),
        pytest.param([ReplaceLines(1, 2, "x"), ReplaceLines(2, 3, "y")], id="lines"),
        pytest.param([ReplaceLines(1, 3, "x"), ReplaceLines(2, 2, "y")], id="lines in lines"),
        pytest.param([ReplaceLines(1, 1, "x"), ReplaceText("bcd", "y")], id="text in lines"),
        pytest.param([InsertLines(2, "x"), ReplaceLines(1, 2, "y")], id="insert inside lines"),
        pytest.param([InsertLines(2, "x"), ReplaceText("e\nf", "y")], id="insert inside text"),
    ],
)
def test_edits_of_the_same_text_are_refused(edits: list[Edit]) -> None:
    """No character is edited twice, in whatever order the edits come."""
    for given_order in (edits, edits[::-1]):
        with pytest.raises(OverlappingEditsError):
            apply_edits("abcde\nf\ng\n", given_order)


def test_an_absent_old_text_is_no_match() -> None:
    """`old` must be there as it is written, case and all."""
    with pytest.raises(NoMatchError):
        apply_edits("Abc", [ReplaceText("abc", "x")])


@pytest.mark.parametrize(
    ("text", "old", "lines"),
    [
        pytest.param("a\nb\na\n", "a", [1, 3], id="two lines"),
        pytest.param("b\naXa\na", "a", [2, 3], id="a line once"),
        pytest.param("aaa", "aa", [1], id="overlapping"),
        pytest.param("x\na\na\na\n", "a\na\n", [2, 3], id="overlapping over lines"),
        pytest.param("a\n" * 50, "a", list(range(1, MAX_REPORTED_LINES + 1)), id="capped"),
    ],
)
def test_an_ambiguous_old_text_tells_its_lines(text: str, old: str, lines: list[int]) -> None:
    """Of several matches each line is named once, the first twenty."""
    with pytest.raises(ManyMatchesError) as caught:
        apply_edits(text, [ReplaceText(old, "x")])
    assert caught.value.lines == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param("a", 1, id="open line"),
        pytest.param("a\n", 1, id="closed line"),
        pytest.param("\n", 1, id="empty line"),
        pytest.param("a\n\nb", 3, id="three"),
        pytest.param("a\rb\u2028c\x0bd", 1, id="only newlines part"),
    ],
)
def test_lines_are_counted_by_newlines(text: str, lines: int) -> None:
    """A final newline ends its line and starts no further one."""
    assert count_lines(text) == lines


@given(
    lines=st.lists(st.text("ab\r", max_size=3), max_size=6),
    is_closed=st.booleans(),
    data=st.data(),
)
def test_line_edits_agree_with_a_list_of_lines(
    lines: list[str], data: st.DataObject, *, is_closed: bool
) -> None:
    """Edits by line do what the same edits do to a list of lines."""
    text = "\n".join(lines) + ("\n" if is_closed and lines else "")
    total = count_lines(text)
    model = [[line] for line in text.split("\n")[:total]]
    inserted: list[list[str]] = [[] for _ in range(total + 1)]
    edits: list[Edit] = []
    for number in range(1, total + 1):
        if data.draw(st.booleans()):
            new = data.draw(st.text("xy", max_size=2))
            edits.append(ReplaceLines(number, number, new))
            model[number - 1] = [new] if new else []
    for place in data.draw(st.lists(st.integers(1, total + 1), max_size=4)):
        edits.append(InsertLines(place, "new"))
        inserted[place - 1].append("new")
    model.append([])
    expected = [line for new, old in zip(inserted, model, strict=True) for line in [*new, *old]]
    result = apply_edits(text, data.draw(st.permutations(edits)))
    assert result.split("\n")[: count_lines(result)] == expected


@given(st.text("ab\n", max_size=30), st.text("ab\n", min_size=1, max_size=3), st.text(max_size=3))
def test_replacing_text_agrees_with_counting_matches(text: str, old: str, new: str) -> None:
    """None, one or several places, overlapping ones counted, decide what happens."""
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    if len(places) == 1:
        assert apply_edits(text, [ReplaceText(old, new)]) == text.replace(old, new)
        return
    with pytest.raises(ManyMatchesError if places else NoMatchError) as caught:
        apply_edits(text, [ReplaceText(old, new)])
    if isinstance(caught.value, ManyMatchesError):
        lines = dict.fromkeys(text.count("\n", 0, at) + 1 for at in places)
        assert caught.value.lines == list(lines)[:MAX_REPORTED_LINES]


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        pytest.param("a" * 4 * MIB, ReplaceText("a" * 1000, ""), id="one long line"),
        pytest.param("word\n" * MIB, ReplaceText("word", ""), id="a million matches"),
        pytest.param("\n" * 4 * MIB, InsertLines(4 * MIB + 1, "x"), id="four million lines"),
    ],
)
def test_the_largest_notes_are_edited_soon(text: str, edit: Edit) -> None:
    """The worst texts of 4 MiB take well under seconds; a quadratic walk would take minutes."""
    started = time.process_time()
    with contextlib.suppress(ManyMatchesError):
        apply_edits(text, [edit])
    assert time.process_time() - started < 5
