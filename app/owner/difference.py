"""What differs between two texts, line by line, at a cost that no input can drive up.

Equal beginnings and endings are cut off first; then lines that stand once in both texts
anchor the rest (as in patience diff), and between two anchors the shortest script is looked
for (Myers 1986, the greedy algorithm). That search is quadratic at worst, so it has an
allowance of steps: what it cannot settle within is told as replaced whole. The standard
library's own comparison has no such bound: on repeated lines it is cubic.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

CONTEXT_LINES: Final = 3
"""Equal lines shown on each side of a change."""
STEPS_MAX: Final = 200_000
"""Steps of all searches of one comparison: a fraction of a second."""
LINES_MAX: Final = 50_000
"""Lines between the equal beginning and ending; of more it is told that they are replaced."""
_NO_NEWLINE: Final = "\\ No newline at end of file"
_CHUNK: Final = 4096


class Hunk(NamedTuple):
    """One place where the texts differ, as a unified diff shows it."""

    old_start: int
    """Its first line in the old text, from 1; where it has none, the line before."""
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]
    """Each behind a space, `-` or `+`, without its newline; a text's end without one is told.
    Empty when they are more than a comparison tells."""


class Difference(NamedTuple):
    """What differs."""

    hunks: list[Hunk]
    is_coarse: bool
    """Whether some part is told as replaced although less of it may differ."""


class _Change(NamedTuple):
    """Lines of the one text in the place of lines of the other, without the ends."""

    old: int
    old_end: int
    new: int
    new_end: int


@dataclass(slots=True)
class _Search:
    """What is left of the allowance."""

    steps: int
    is_coarse: bool = False


def compare(old: str, new: str, steps_max: int = STEPS_MAX) -> Difference:
    """Compare two texts.

    Args:
        old: The one that was.
        new: The one that is.
        steps_max: The allowance.

    Returns:
        What differs; no hunks for equal texts.
    """
    if old == new:
        return Difference([], is_coarse=False)
    start = _equal_start(old, new)
    end = _equal_end(old[start:], new[start:])
    middles = old[start : len(old) - end], new[start : len(new) - end]
    if max(text.count("\n") for text in middles) > LINES_MAX:
        return Difference([_replaced(old.count("\n", 0, start), *middles)], is_coarse=True)
    olds, news = _lines(middles[0]), _lines(middles[1])
    search = _Search(steps_max)
    changes = list(_changes(olds, news, search))
    before = _lines(_last_lines(old[:start]))
    after = _lines(_first_lines(old[len(old) - end :]))
    frame = _Frame(before, after, old.count("\n", 0, start) - len(before))
    return Difference(_hunks(olds, news, changes, frame), search.is_coarse)


def _replaced(offset: int, old: str, new: str) -> Hunk:
    """One hunk for all that differs, without the lines: they are as many as the texts have."""
    olds, news = (
        text.count("\n") + (bool(text) and not text.endswith("\n")) for text in (old, new)
    )
    return Hunk(offset + bool(olds), olds, offset + bool(news), news, [])


def _lines(text: str) -> list[str]:
    """Lines with their newlines; no other character ends one."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _equal_start(old: str, new: str) -> int:
    """How many characters of whole lines both begin with."""
    at, most = 0, min(len(old), len(new))
    while at < most and old[at : at + _CHUNK] == new[at : at + _CHUNK]:
        at += _CHUNK
    at = min(at, most)
    while at < most and old[at] == new[at]:
        at += 1
    return old.rfind("\n", 0, at) + 1


def _equal_end(old: str, new: str) -> int:
    """How many characters of whole lines both end with."""
    at, most = 0, min(len(old), len(new))
    while at + _CHUNK <= most and _piece(old, at) == _piece(new, at):
        at += _CHUNK
    while at < most and old[len(old) - at - 1] == new[len(new) - at - 1]:
        at += 1
    if _begins_line(old, len(old) - at) and _begins_line(new, len(new) - at):
        return at
    begin = old.find("\n", len(old) - at) + 1
    return len(old) - begin if begin else 0


def _begins_line(text: str, at: int) -> bool:
    return not at or text[at - 1] == "\n"


def _piece(text: str, at: int) -> str:
    return text[len(text) - at - _CHUNK : len(text) - at]


def _last_lines(text: str) -> str:
    at = len(text) - 1
    for _ in range(CONTEXT_LINES):
        at = text.rfind("\n", 0, max(at, 0))
        if at < 0:
            return text
    return text[at + 1 :]


def _first_lines(text: str) -> str:
    at = 0
    for _ in range(CONTEXT_LINES):
        at = text.find("\n", at) + 1
        if not at:
            return text
    return text[:at]


def _changes(old: Sequence[str], new: Sequence[str], search: _Search) -> Iterator[_Change]:
    """Every change, in order."""
    i = j = 0
    for anchor_i, anchor_j in [*_anchors(old, new), (len(old), len(new))]:
        if anchor_i > i or anchor_j > j:
            for change in _between(old[i:anchor_i], new[j:anchor_j], search):
                yield _Change(
                    change.old + i, change.old_end + i, change.new + j, change.new_end + j
                )
        i, j = anchor_i + 1, anchor_j + 1


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that stand once in both, the longest chain of them that keeps its order."""
    olds, news = Counter(old), Counter(new)
    place = {line: j for j, line in enumerate(new) if news[line] == 1}
    pairs = [(i, place[line]) for i, line in enumerate(old) if olds[line] == 1 and line in place]
    # The longest increasing subsequence: the smallest end of each length, and who came before.
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [j]
        ends[at : at + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _between(old: Sequence[str], new: Sequence[str], search: _Search) -> Iterator[_Change]:
    """The changes between two anchors."""
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    i, j = start, start
    old_end, new_end = len(old) - end, len(new) - end
    script = _script(old[start:old_end], new[start:new_end], search)
    for equal_i, equal_j in [*script, (old_end - start, new_end - start)]:
        if equal_i + start > i or equal_j + start > j:
            yield _Change(i, equal_i + start, j, equal_j + start)
        i, j = equal_i + start + 1, equal_j + start + 1


def _script(old: Sequence[str], new: Sequence[str], search: _Search) -> list[tuple[int, int]]:
    """Places of lines that stay, by the shortest script; none when it takes too long to find."""
    if not old or not new:
        return []
    front = {1: 0}  # of each diagonal, how much of the old text is used up
    fronts: list[dict[int, int]] = []
    for d in range(len(old) + len(new) + 1):
        fronts.append(dict(front))
        search.steps -= d
        for k in range(-d, d + 1, 2):
            i = _furthest(front, k, d)
            j, begun = i - k, i
            while i < len(old) and j < len(new) and old[i] == new[j]:
                i, j = i + 1, j + 1
            front[k] = i
            if i >= len(old) and j >= len(new):
                return _walk_back(fronts, i, j)
            search.steps -= 1 + i - begun
            if search.steps < 0:
                search.is_coarse = True
                return []
    return []


def _furthest(front: dict[int, int], k: int, d: int) -> int:
    """Where a diagonal goes on: by a new line from the one above, or an old line from below."""
    return front[k + 1] if _is_down(front, k, d) else front[k - 1] + 1


def _is_down(front: dict[int, int], k: int, d: int) -> bool:
    return k == -d or (k != d and front[k - 1] < front[k + 1])


def _walk_back(fronts: list[dict[int, int]], i: int, j: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for d in range(len(fronts) - 1, -1, -1):
        front, k = fronts[d], i - j
        before_k = k + 1 if _is_down(front, k, d) else k - 1
        before_i = front[before_k]
        before_j = before_i - before_k
        while i > before_i and j > before_j:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        i, j = before_i, before_j
    return pairs[::-1]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands around the lines that were compared, the same in both texts."""

    before: list[str]
    after: list[str]
    offset: int
    """Lines ahead of `before`."""


def _hunks(
    old: Sequence[str], new: Sequence[str], changes: Sequence[_Change], frame: _Frame
) -> list[Hunk]:
    """Changes with the lines around them; those whose surroundings touch are one hunk."""
    shift = len(frame.before)
    olds, news = [*frame.before, *old, *frame.after], [*frame.before, *new, *frame.after]
    groups: list[list[_Change]] = []
    for change in changes:
        moved = _Change(*(place + shift for place in change))
        if groups and moved.old - groups[-1][-1].old_end <= 2 * CONTEXT_LINES:
            groups[-1].append(moved)
        else:
            groups.append([moved])
    return [_hunk(olds, news, group, frame.offset) for group in groups]


def _hunk(olds: list[str], news: list[str], group: list[_Change], offset: int) -> Hunk:
    first, last = group[0], group[-1]
    old_start = max(0, first.old - CONTEXT_LINES)
    new_start = first.new - (first.old - old_start)
    old_end = min(len(olds), last.old_end + CONTEXT_LINES)
    new_end = last.new_end + old_end - last.old_end
    lines: list[str] = []
    at = old_start
    for change in group:
        lines += _marked(" ", olds[at : change.old])
        lines += _marked("-", olds[change.old : change.old_end])
        lines += _marked("+", news[change.new : change.new_end])
        at = change.old_end
    lines += _marked(" ", olds[at:old_end])
    old_lines, new_lines = old_end - old_start, new_end - new_start
    return Hunk(
        offset + old_start + bool(old_lines),
        old_lines,
        offset + new_start + bool(new_lines),
        new_lines,
        lines,
    )


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_NEWLINE
