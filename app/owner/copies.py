"""All notes of a store at once: gone through for a copy, or taken in from one."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from app.db.owner import statements
from app.db.owner.rows import NoteRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.owner.folders import span_below
from app.owner.notes import Condition, get_note, put_note

_BATCH: Final = 100
_ANY: Final = Condition()


class TakenIn(NamedTuple):
    """The outcome of taking notes in."""

    written: int
    """Notes that are new or have another text now."""
    unchanged: int
    """Notes whose text stood there already."""
    created: int
    """Of those written the new ones."""


def walk_notes(reader: OwnerReader) -> Iterator[NoteRow]:
    """Every note with its content, in the order of their paths' bytes; one in memory at a time.

    Yields:
        Each as it is in the reader's snapshot.
    """
    low, high = span_below("")
    while True:
        rows = reader.all(statements.LIST_NOTES, low=low, high=high, limit=_BATCH)
        for row in rows:
            yield get_note(reader, row.path)
        if len(rows) < _BATCH:
            return
        # No path has a control character: nothing lies between the two.
        low = f"{rows[-1].path}\x00"


def take_in(tx: OwnerTransactor, texts: Iterable[tuple[str, str]], author: str) -> TakenIn:
    """Write many notes, each as if it was put by itself: what it replaces is in its history.

    Args:
        tx: The store's transaction.
        texts: Keys, each once, and what is to stand there.
        author: User id, or `user id/agent id`.

    Returns:
        How many there were of each kind.

    Raises:
        InvalidInputError: A text cannot be stored.
        PathConflictError: A folder stands where a note is to stand, or the reverse.
    """
    written = unchanged = created = 0
    for key, text in texts:
        before = tx.one(statements.FIND_NOTE_META, path=key)
        note = put_note(tx, key, text, author, _ANY).note
        if before is not None and before.version == note.version:
            unchanged += 1
        else:
            written += 1
            created += before is None
    return TakenIn(written, unchanged, created)
