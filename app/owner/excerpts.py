"""The beginnings of notes: as much of several as there is room for, in one snapshot."""

from collections.abc import Sequence
from typing import NamedTuple

from app.db.owner import statements
from app.db.owner.rows import NoteMetaRow
from app.db.owner.store import OwnerReader


class Excerpt(NamedTuple):
    """A text, or its beginning."""

    content: str
    """Whole lines where it is cut inside of one; empty when there was no room for any."""
    version: int | str
    """What its ETag is."""
    size_bytes: int
    """Of UTF-8, of the whole text."""
    updated_at: int
    """Unix milliseconds."""

    @property
    def is_cut(self) -> bool:
        """Whether the text goes on."""
        return len(self.content.encode()) < self.size_bytes

    def within(self, bytes_max: int) -> "Excerpt":
        """The same, with no more than so many bytes of content."""
        return self._replace(content=beginning(self.content, bytes_max))


def beginning(text: str, bytes_max: int) -> str:
    """The beginning of a text: whole lines, or where the first is too long whole characters.

    Args:
        text: The text.
        bytes_max: Most bytes of UTF-8.

    Returns:
        The text itself when it is no longer.
    """
    raw = text.encode()
    if len(raw) <= bytes_max:
        return text
    cut = raw[:bytes_max].decode("utf-8", "ignore")
    end = cut.rfind("\n") + 1
    return cut[:end] if end else cut


def read_beginnings(
    reader: OwnerReader, keys: Sequence[str], bytes_max: int
) -> list[Excerpt | None]:
    """Read several notes, as far as the room for all of them goes.

    Args:
        reader: The store.
        keys: Which; what comes first has the room first.
        bytes_max: Most bytes of UTF-8 in all; never more than that is read.

    Returns:
        One for each key; None where there is no note.
    """
    found: list[Excerpt | None] = []
    left = bytes_max
    for key in keys:
        note = reader.one(statements.FIND_NOTE_META, path=key)
        excerpt = None if note is None else _read(reader, note, left)
        left -= 0 if excerpt is None else len(excerpt.content.encode())
        found.append(excerpt)
    return found


def _read(reader: OwnerReader, note: NoteMetaRow, bytes_max: int) -> Excerpt:
    # A character has one byte at least, so this is all that could find room.
    row = reader.one(statements.FIND_NOTE_BEGINNING, path=note.path, length=bytes_max)
    text = "" if row is None else row.value
    return Excerpt(beginning(text, bytes_max), note.version, note.size_bytes, note.updated_at)
