"""Texts of folders on the disk, as notes are told: a note's shape, made of file and record."""

from app.db import disk_tree
from app.db.disk_tree import Text
from app.db.owner.rows import NoteMetaRow, NoteRow
from app.db.registry.store import RegistryReader
from app.errors.callers import NotANoteError
from app.errors.conflicts import NotTextError
from app.ids import NoteId
from app.owner.edits import count_lines
from app.registry import disk_roots
from app.registry.disk_roots import LastWrite

UNKNOWN = "unknown"
"""The author of a text that was put there beside the service."""


def version_of(last: LastWrite | None, text: Text) -> int:
    """The version of a text, which none had at its path before.

    Made of the text, of its file, and of the time of the last write to its path, which no two
    share: so it tells from any other what was put there by whomever, and what came back.

    Returns:
        53 bits, at least 1.
    """
    at = 0 if last is None else last.updated_at
    return disk_tree.short_digest(f"{text.digest}.{text.mark}.{at}".encode())


def version_at(last: LastWrite | None, descriptor: int, key: str, size_max: int) -> int | None:
    """The version of the text that stands at a key of a folder; None where none does."""
    try:
        text = disk_tree.find(descriptor, key, size_max)
    except (NotANoteError, NotTextError):
        return None
    return None if text is None else version_of(last, text)


def note_of(reader: RegistryReader, root_id: str, key: str, text: Text) -> NoteMetaRow:
    """A text without its content; who wrote it and when, if the service did."""
    last = disk_roots.find_last_write(reader, root_id, key)
    is_known = last is not None and last.content_version == text.digest
    return NoteMetaRow(
        id=NoteId(""),
        path=key,
        size_bytes=text.size_bytes,
        lines=count_lines(text.content),
        version=version_of(last, text),
        author=last.author if last is not None and is_known else UNKNOWN,
        created_at=last.created_at if last is not None and is_known else text.changed_at,
        updated_at=last.updated_at if last is not None and is_known else text.changed_at,
    )


def whole_note_of(reader: RegistryReader, root_id: str, key: str, text: Text) -> NoteRow:
    """A text with its content."""
    return NoteRow(*note_of(reader, root_id, key, text), content=text.content)
