"""Search: any text is a query, and the best notes come first."""

from typing import NamedTuple

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
    """BM25, the better the higher; comparable inside one store alone."""
    updated_at: int


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
    found = reader.all(statements.SEARCH_NOTES, match=match, limit=limit)
    return [_shown(reader, row, words) for row in found]


def _shown(reader: OwnerReader, row: MatchRow, words: list[str]) -> HitRow:
    # One at a time and its beginning alone: two hundred whole notes would fill the memory.
    [beginning] = reader.all(statements.FIND_NOTE_BEGINNING, path=row.path, length=MAX_SEARCHED)
    cut = snippet(beginning.value, words)
    return HitRow(row.path, cut.line, cut.text, row.score, row.updated_at)
