"""A few words of a note round the place that a search found.

Cut by the program: FTS5's own `snippet()` takes time quadratic in a term's repetitions, 512 s
on a note of 4 MiB, in one step that nothing interrupts.
"""

import re
from typing import Final, NamedTuple

from app.db.owner.search_text import CJK, fold

MAX_SEARCHED: Final = 256 * 1024
"""Characters of a note that are searched; a first place beyond them is not found."""

_SEARCHED = (512, 4096, MAX_SEARCHED)  # most first places lie near the start: little is folded
_ELLIPSIS = "…"
_CJK_START = re.compile(CJK)
_IN_WORD = re.compile(r"[^\W_]")
_WORD_END = re.compile(r"[\W_]")
_SPACE = re.compile(r"\s")


class Snippet(NamedTuple):
    """A cut of a note, white space collapsed."""

    text: str
    """At most the asked width, and an ellipsis at each end that was cut."""

    line: int
    """The line of the place found, from 1."""


def snippet(content: str, terms: list[str], width: int = 160) -> Snippet:
    """Cut the surroundings of the first place where one of the terms stands.

    A term stands where a word begins with it, case and accents aside; one that begins with
    a CJK character may stand anywhere.

    Args:
        content: The note. Its first 262,144 characters are searched, so that the time does
            not grow with the note.
        terms: Words folded by `fold`, as `search_query.terms` gives them.
        width: Characters to cut, at least 1.

    Returns:
        The cut, and its line. The beginning and line 1 when no term is found, as for a note
        found by its path.
    """
    at = _first_place(content, terms)
    start = _cut_start(content, at, width // 3)
    # Twice the width is read, since white space will collapse.
    stop = start + 2 * width
    cut = _collapsed(content[start:stop])
    is_cut = len(cut) > width or stop < len(content)
    if len(cut) > width:
        space = cut.rfind(" ", width * 2 // 3, width + 1)
        cut = cut[: space if space > 0 else width]
    text = (_ELLIPSIS if start else "") + cut + (_ELLIPSIS if is_cut else "")
    return Snippet(text, content.count("\n", 0, at) + 1)


def _collapsed(text: str) -> str:
    """Text with single spaces for all its white space, and none at its ends."""
    # Of white space only the space itself is printable; most cuts are a line of prose.
    if text.isprintable() and "  " not in text:
        return text.strip(" ")
    return " ".join(text.split())


def _first_place(content: str, terms: list[str]) -> int:
    """Where the first term stands; 0 when none does."""
    for size in _SEARCHED:
        searched = content[:size]
        folded = fold(searched)
        place = _first_of(folded, terms)
        if place is not None:
            return _unfolded_place(searched, place)
        if len(content) <= size:
            break
    return 0


def _first_of(folded: str, terms: list[str]) -> int | None:
    """Where the first of the terms stands in folded text; None when none does."""
    first = None
    for term in terms:
        # Whatever does not begin before the first one so far needs no looking at.
        stop = len(folded) if first is None else first + len(term) - 1
        place = _place(folded, term, stop)
        first = place if place >= 0 else first
    return first


def _place(folded: str, term: str, stop: int) -> int:
    """Where a term first stands in folded text, before `stop`; -1 when nowhere."""
    at = folded.find(term, 0, stop)
    if _CJK_START.match(term):
        return at
    while at > 0 and _IN_WORD.match(folded, at - 1):
        # Inside of a word, so not before the next one: no text is compared over and over.
        end = _WORD_END.search(folded, at)
        at = folded.find(term, end.end(), stop) if end else -1
    return at


def _unfolded_place(text: str, folded_place: int) -> int:
    """The character of a text whose folding reaches a place of the folded text."""
    if text.isascii():
        return folded_place
    # Halving costs, all together, no more than folding the text once.
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        length = len(fold(text[low:middle]))
        if length <= folded_place:
            low, folded_place = middle, folded_place - length
        else:
            high = middle
    return low


def _cut_start(content: str, at: int, before: int) -> int:
    """Where to begin so that a place has some text before it, if possible at a word."""
    start = max(0, at - before)
    if start:
        space = _SPACE.search(content, start - 1, at)
        start = space.end() if space else start
    return start
