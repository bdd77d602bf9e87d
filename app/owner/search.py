"""Search: any text is a query, and the best notes come first."""

from typing import Final, NamedTuple

from app.db.owner import statements
from app.db.owner.rows import MatchRow
from app.db.owner.store import OwnerReader
from app.owner.search_query import build_match, terms
from app.owner.snippets import MAX_SEARCHED, snippet


class HitRow(NamedTuple):
    """A note that was found."""

    path: str
    """Its key inside the root."""
    line: int
    """The line of the place shown, from 1."""
    snippet: str
    score: float
    """BM25 as a part of what the best of its store has: above 0, and 1 for the best.

    By itself BM25 says nothing across stores, for it counts how rare a word is in each.
    """
    updated_at: int


_BEGINNING: Final = 8 * 1024
"""Characters that a search reads of each note; most notes have no more."""


def search(reader: OwnerReader, q: str, limit: int) -> list[HitRow]:
    """Find the notes that hold all the terms of a query, in path or content.

    Args:
        reader: The store.
        q: Any text whatever; see `build_match`.
        limit: Most hits to give, at least 1.

    Returns:
        The best first; none when nothing searchable was asked.
    """
    match = build_match(q)
    if match is None:
        return []
    words = terms(q)
    found = reader.all(statements.SEARCH_NOTES, match=match, limit=limit, length=_BEGINNING)
    return [_shown(reader, row, words, found[0].score) for row in found]


def _shown(reader: OwnerReader, row: MatchRow, words: list[str], best: float) -> HitRow:
    text = row.beginning
    if len(text) == _BEGINNING:
        # One at a time: two hundred long notes would fill the memory.
        [more] = reader.all(statements.FIND_NOTE_BEGINNING, path=row.path, length=MAX_SEARCHED)
        text = more.value
    cut = snippet(text, words)
    return HitRow(row.path, cut.line, cut.text, row.score / best, row.updated_at)
