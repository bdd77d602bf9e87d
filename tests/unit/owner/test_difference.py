"""What a comparison of two texts tells, and that nothing makes it dear."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.owner import difference
from app.owner.difference import Difference, Hunk, compare

MIB: Final = 1024 * 1024
lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "", "\n", "x\r\n", "a"]), max_size=30)
texts = lines.map("".join)


def _split(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _whole(hunk: Hunk) -> list[tuple[str, str]]:
    """Each line of a hunk with its mark, and with its newline unless it has none."""
    found: list[tuple[str, str]] = []
    for line in hunk.lines:
        if line.startswith("\\"):
            mark, text = found.pop()
            found.append((mark, text.removesuffix("\n")))
        else:
            found.append((line[0], line[1:] + "\n"))
    return found


def applied(old: str, found: Difference) -> str:
    """The old text with every hunk applied where it says that it belongs."""
    olds, made, at = _split(old), list[str](), 0
    for hunk in found.hunks:
        begin = hunk.old_start - bool(hunk.old_lines)
        made += olds[at:begin]
        assert len(made) == hunk.new_start - bool(hunk.new_lines)
        whole = _whole(hunk)
        was = [text for mark, text in whole if mark in " -"]
        assert was == olds[begin : begin + hunk.old_lines]
        is_now = [text for mark, text in whole if mark in " +"]
        assert len(is_now) == hunk.new_lines
        made += is_now
        at = begin + hunk.old_lines
    return "".join(made + olds[at:])


@given(texts, texts, st.sampled_from([3, 20, difference.STEPS_MAX]))
def test_hunks_make_the_new_text_of_the_old(old: str, new: str, steps_max: int) -> None:
    """However little the search may cost; equal texts have none."""
    found = compare(old, new, steps_max)
    assert applied(old, found) == new
    assert bool(found.hunks) == (old != new)


@given(texts, texts)
def test_with_an_allowance_the_script_is_as_short_as_can_be(old: str, new: str) -> None:
    """Between the anchors no line is told as changed that need not be."""
    found = compare(old, new)
    assert not found.is_coarse
    changed = sum(line[0] in "+-" for hunk in found.hunks for line in hunk.lines)
    # A line that stands once in each text, in the same order, is never both taken and given.
    assert changed <= len(_split(old)) + len(_split(new)) - 2 * (old[:2] == new[:2] == "a\n")


@pytest.mark.parametrize(
    ("old", "new", "hunk"),
    [
        ("", "a\n", Hunk(0, 0, 1, 1, ["+a"])),
        ("a\n", "", Hunk(1, 1, 0, 0, ["-a"])),
        ("a", "a\n", Hunk(1, 1, 1, 1, ["-a", "\\ No newline at end of file", "+a"])),
        ("a\nb\n", "a\nx\nb\n", Hunk(1, 2, 1, 3, [" a", "+x", " b"])),
        (
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "1\n2\n3\n4\nV\n6\n7\n8\n9\n",
            Hunk(2, 7, 2, 7, [" 2", " 3", " 4", "-5", "+V", " 6", " 7", " 8"]),
        ),
    ],
    ids=["made", "emptied", "ended", "added", "amid"],
)
def test_a_hunk_is_a_unified_diffs(old: str, new: str, hunk: Hunk) -> None:
    """Lines count from 1; where a text has none of them, the line before is named."""
    assert compare(old, new) == Difference([hunk], is_coarse=False)


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    """And those whose surroundings touch are one."""
    old = [f"{n}\n" for n in range(40)]
    new = [line if n not in {5, 11, 30} else "other\n" for n, line in enumerate(old)]
    found = compare("".join(old), "".join(new))
    assert [hunk.old_start for hunk in found.hunks] == [3, 28]
    assert applied("".join(old), found) == "".join(new)


def test_what_is_settled_by_anchors_is_exact_in_a_large_text() -> None:
    """Many changes among lines that stand once need no search."""
    old = [f"line {n}\n" for n in range(40_000)]
    new = [line if n % 100 else f"other {n}\n" for n, line in enumerate(old)]
    found = compare("".join(old), "".join(new))
    assert not found.is_coarse
    assert len(found.hunks) == 400


@pytest.mark.parametrize(
    ("old", "new", "is_coarse"),
    [
        ("a\n" * (2 * MIB), "a\n" * (2 * MIB - 1), False),
        ("a\nb\n" * MIB, "b\na\n" * MIB, True),
        ("\n" * (4 * MIB), "x\n" * (2 * MIB), True),
        ("a" * (4 * MIB), "a" * (4 * MIB - 1) + "b", False),
        ("a\nb\n" * 20_000, "b\nb\na\n" * 14_000, True),
        ("".join(f"{n}\n" for n in range(40_000)), "y\n" * 40_000, True),
    ],
    ids=["equal lines", "turned about", "newlines", "one line", "repeated", "nothing common"],
)
def test_no_text_makes_it_dear(old: str, new: str, *, is_coarse: bool) -> None:
    """Four mebibytes of equal lines, which the common algorithms take minutes for."""
    found = compare(old, new)
    assert found.is_coarse == is_coarse
    [hunk, *_] = found.hunks
    assert hunk.old_lines - hunk.new_lines == old.count("\n") - new.count("\n")
    assert len(json.dumps(found)) < 2 * (len(old) + len(new)) + 1_000_000
