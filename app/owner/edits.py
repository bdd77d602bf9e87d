r"""Edits of a note's text: all of them or none, each placed in the text as it was.

Lines are separated by `\n` alone and count from 1; a text with `\r\n` keeps its `\r`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from app.errors.conflicts import ManyMatchesError, NoMatchError
from app.errors.inputs import InvalidInputError, OverlappingEditsError

MAX_EDITS: Final = 256
"""Edits of one call. Each may read the whole text: this many on 4 MiB take about a second."""

MAX_REPORTED_LINES: Final = 20
"""Line numbers that a `ManyMatchesError` carries at most."""


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Put `new` in the place of `old`, which must stand in the text exactly once."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class InsertLines:
    """Put text before a line; the number of lines plus one is the end."""

    before_line: int
    text: str


@dataclass(frozen=True, slots=True)
class ReplaceLines:
    """Put text in the place of the lines first to last, both included; empty deletes them."""

    first: int
    last: int
    text: str


Edit = ReplaceText | InsertLines | ReplaceLines


@dataclass(frozen=True, slots=True)
class _Splice:
    """An edit placed: the characters start to end of the old text give way to new text."""

    start: int
    end: int
    text: str
    whole_lines: bool


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Make the text that results when every edit is done at once.

    Text put in by line never fuses with its neighbours: it begins on a line of its own and
    ends with a newline unless it becomes the end of the note, where it stays as given.
    Inserts at the same place keep the order they came in, and come before a replacement
    that begins there.

    Args:
        text: The note as it is; every position and every `old` refers to it.
        edits: At most 256, in any order; none gives the text back.

    Returns:
        The new text.

    Raises:
        InvalidInputError: A line that does not exist, an empty `old`, or too many edits.
        NoMatchError: An `old` is not in the text.
        ManyMatchesError: An `old` is there more than once, overlapping places counted.
        OverlappingEditsError: Two edits touch the same characters, or one inserts inside
            what another replaces.
    """
    if len(edits) > MAX_EDITS:
        raise InvalidInputError(field="edits")
    offsets = _line_offsets(text, _lines_named(edits, count_lines(text)))
    splices = sorted(
        (_place(text, edit, offsets) for edit in edits),
        key=lambda splice: (splice.start, splice.end),
    )
    pieces: list[str] = []
    at = 0
    for number, splice in enumerate(splices, start=1):
        if splice.start < at:
            raise OverlappingEditsError
        if splice.start > at:
            pieces.append(text[at : splice.start])
        at = splice.end
        if splice.text:
            ends_note = at == len(text) and number == len(splices)
            pieces.append(_fitted(splice, pieces[-1:], ends_note=ends_note))
    return "".join([*pieces, text[at:]])


def count_lines(text: str) -> int:
    """How many lines a text has: none when empty; a final newline starts no further one."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _lines_named(edits: Sequence[Edit], total: int) -> set[int]:
    """Check the edits' lines against the text's total; name each whose place is needed."""
    named: set[int] = set()
    for edit in edits:
        match edit:
            case InsertLines(before_line=line):
                if not 1 <= line <= total + 1:
                    raise InvalidInputError(field="edits")
                named.add(line)
            case ReplaceLines(first=first, last=last):
                if not 1 <= first <= last <= total:
                    raise InvalidInputError(field="edits")
                named.update((first, last + 1))
            case ReplaceText():
                continue
    return named


def _line_offsets(text: str, lines: set[int]) -> dict[int, int]:
    """Where lines begin; the line after the last begins at the text's end."""
    # Walks instead of splitting: 4 MiB of newlines would become a hundred MiB of list.
    newlines = re.finditer("\n", text)
    offsets = {1: 0}
    line = 1
    for wanted in sorted(lines - {1}):
        newline = next(islice(newlines, wanted - line - 1, None), None)
        offsets[wanted] = newline.end() if newline else len(text)
        line = wanted
    return offsets


def _place(text: str, edit: Edit, offsets: dict[int, int]) -> _Splice:
    match edit:
        case ReplaceText(old=old, new=new):
            start = _find_once(text, old)
            return _Splice(start, start + len(old), new, whole_lines=False)
        case InsertLines(before_line=line, text=new):
            return _Splice(offsets[line], offsets[line], new, whole_lines=True)
        case ReplaceLines(first=first, last=last, text=new):
            return _Splice(offsets[first], offsets[last + 1], new, whole_lines=True)


def _find_once(text: str, old: str) -> int:
    if not old:
        raise InvalidInputError(field="edits")
    start = text.find(old)
    if start < 0:
        raise NoMatchError
    if text.find(old, start + 1) >= 0:
        raise ManyMatchesError(_match_lines(text, old))
    return start


def _match_lines(text: str, old: str) -> list[int]:
    """The lines where `old` begins, each once, the first 20."""
    lines: list[int] = []
    line, at = 1, 0
    found = text.find(old)
    while found >= 0 and len(lines) < MAX_REPORTED_LINES:
        line += text.count("\n", at, found)
        lines.append(line)
        at = found
        # On to the next line: one long line may hold a million matches.
        newline = text.find("\n", found)
        found = text.find(old, newline + 1) if newline >= 0 else -1
    return lines


def _fitted(splice: _Splice, before: Sequence[str], *, ends_note: bool) -> str:
    """The splice's text with the newlines that keep lines apart; `before` is what precedes."""
    if not splice.whole_lines:
        return splice.text
    opening = "\n" if before and not before[-1].endswith("\n") else ""
    closing = "" if ends_note or splice.text.endswith("\n") else "\n"
    return opening + splice.text + closing
