"""Texts as tools show them: numbered lines, sizes, listings, what was changed."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from app.owner.folders import ENTRIES_MAX, EntryRow

LINES_MAX: Final = 999_999
"""Lines that numbers of six digits can name."""
_NUMBER_WIDTH: Final = 6
_UNITS: Final = "BKMG"
_THOUSAND: Final = 1_024
_AROUND: Final = 2
"""Lines shown before and after what an edit put in."""
_SHOWN_MAX: Final = 40
"""Lines shown of an edit."""
_MATCHES_MAX: Final = 100
_MATCH_CHARS_MAX: Final = 500


def lines_of(text: str) -> Iterator[str]:
    r"""The lines of a text, one after the other; a final newline begins no further one.

    Yields:
        Each without its `\n`.
    """
    start = 0
    for newline in re.finditer("\n", text):
        yield text[start : newline.start()]
        start = newline.end()
    if start < len(text):
        yield text[start:]


def numbered(text: str, first: int = 1, last: int | None = None) -> str:
    """Lines first to last, each after its number, right-aligned to six, and a tab.

    Args:
        text: All of it.
        first: From 1.
        last: None for the end; what lies behind the end is passed over.

    Returns:
        Them, joined by newlines; empty when there are none.
    """
    return _rows(islice(lines_of(text), first - 1, last), first)


def _rows(lines: Iterable[str], first: int) -> str:
    rows = (f"{at:>{_NUMBER_WIDTH}}\t{line}" for at, line in enumerate(lines, first))
    return "\n".join(rows)


def part(text: str, first: int, last: int | None) -> str:
    """Lines first to last as they stand, with their newlines; what lies behind the end is none."""
    end = len(text) if last is None else _start_of(text, last + 1)
    return text[_start_of(text, first) : end]


def _start_of(text: str, line: int) -> int:
    if line == 1:
        return 0
    newline = next(islice(re.finditer("\n", text), line - 2, None), None)
    return newline.end() if newline else len(text)


def around(text: str, start: int, length: int) -> str:
    """The numbered lines around a place in a text; costs what it shows, not what the text has.

    Args:
        text: As it stands after the change.
        start: Where what was put in begins, in characters.
        length: How many characters it has.

    Returns:
        Its lines, and two before and after them; forty at most.
    """
    first = text.count("\n", 0, start) + 1
    begin, end = text.rfind("\n", 0, start) + 1, start + length
    for _ in range(min(_AROUND, first - 1)):
        begin, first = text.rfind("\n", 0, begin - 1) + 1, first - 1
    for _ in range(_AROUND + 1):
        end = text.find("\n", end) + 1 or len(text)
    return _rows(islice(lines_of(text[begin:end]), _SHOWN_MAX), first)


def size_text(size_bytes: int) -> str:
    """A size for people, as `0B`, `512B`, `1.5K`, `2M`."""
    power = 0
    while power < len(_UNITS) - 1 and size_bytes >= _THOUSAND ** (power + 1):
        power += 1
    shown = f"{size_bytes / _THOUSAND**power:.1f}".removesuffix(".0")
    return f"{shown}{_UNITS[power]}"


def listing(entries: Sequence[EntryRow], shown: Sequence[str]) -> str:
    """A folder's entries, one a line: size, tab, path; a folder has `-` and ends with a slash.

    Args:
        entries: What lies there.
        shown: Their paths as the agent knows them, in the same order.

    Returns:
        The lines.
    """
    rows = [
        f"-\t{path}/" if entry.is_dir else f"{size_text(entry.size_bytes or 0)}\t{path}"
        for entry, path in zip(entries, shown, strict=True)
    ]
    return "\n".join([*rows, *_cut(entries)])


def tree(root: str, key: str, entries: Sequence[EntryRow]) -> str:
    """A folder two levels deep, each line a size, a tab and a path; a folder's is of all below.

    Args:
        root: The folder's path as the agent knows it.
        key: Its key, of which the entries' begin.
        entries: All that lies in it, at any depth.

    Returns:
        The folder itself first; without what is hidden and `node_modules`.
    """
    above = f"{key}/" if key else ""
    sizes: dict[str, int] = {}
    folders: set[str] = set()
    for entry in entries:
        names = entry.path.removeprefix(above).split("/")
        if any(name.startswith(".") or name == "node_modules" for name in names):
            continue
        for level in range(min(len(names), 2) + 1):
            shown = "/".join(names[:level])
            sizes[shown] = sizes.get(shown, 0) + (entry.size_bytes or 0)
            if entry.is_dir or level < len(names):
                folders.add(shown)
    lines = [f"{size_text(sizes.pop('', 0))}\t{root}"]
    for shown, size in sorted(sizes.items(), key=lambda item: item[0].split("/")):
        lines.append(f"{size_text(size)}\t{root}/{shown}{'/' * (shown in folders)}")
    return "\n".join([*lines, *_cut(entries)])


def _cut(entries: Sequence[EntryRow]) -> list[str]:
    if len(entries) < ENTRIES_MAX:
        return []
    return [f"(There are more than {ENTRIES_MAX:,} entries: look into a folder of it.)"]


def matches(text: str, words: str) -> str:
    """The lines in which some words begin, in whatever case, each after its number.

    Returns:
        A hundred at most, each cut at 500 characters; empty when there are none.
    """
    numbers = list(islice(_lines_with(text.casefold(), words.casefold()), _MATCHES_MAX + 1))
    newlines = re.finditer("\n", text)
    at, line, rows = 0, 1, []
    for number in numbers[:_MATCHES_MAX]:
        newline = next(islice(newlines, number - line - 1, None), None) if number > line else None
        at, line = newline.end() if newline else at, number
        end = text.find("\n", at, at + _MATCH_CHARS_MAX)
        rows.append(f"{number}: {text[at : end if end >= 0 else at + _MATCH_CHARS_MAX]}")
    if len(numbers) > _MATCHES_MAX:
        rows.append(f"(There are more than {_MATCHES_MAX}: search for more words.)")
    return "\n".join(rows)


def _lines_with(text: str, words: str) -> Iterator[int]:
    """Numbers of the lines in which words begin, each once."""
    line, at, found = 1, 0, text.find(words)
    while found >= 0:
        line += text.count("\n", at, found)
        yield line
        # On to the next line: one long line may hold a million matches.
        at, newline = found, text.find("\n", found)
        found = text.find(words, newline + 1) if newline >= 0 else -1
