"""Texts of folders on the disk, as notes are told: a note's shape, made of file and record."""

from app.db.disk_tree import Text
from app.db.owner.rows import NoteMetaRow, NoteRow
from app.db.registry.store import RegistryReader
from app.ids import NoteId
from app.owner.edits import count_lines
from app.registry import disk_roots

UNKNOWN = "unknown"
"""The author of a text that was put there beside the service."""


def note_of(reader: RegistryReader, root_id: str, key: str, text: Text) -> NoteMetaRow:
    """A text without its content; who wrote it and when, if the service did."""
    last = disk_roots.find_last_write(reader, root_id, key)
    is_known = last is not None and last.content_version == text.digest
    return NoteMetaRow(
        id=NoteId(""),
        path=key,
        size_bytes=text.size_bytes,
        lines=count_lines(text.content),
        version=text.version,
        author=last.author if last is not None and is_known else UNKNOWN,
        created_at=last.created_at if last is not None and is_known else text.changed_at,
        updated_at=last.updated_at if last is not None and is_known else text.changed_at,
    )


def whole_note_of(reader: RegistryReader, root_id: str, key: str, text: Text) -> NoteRow:
    """A text with its content."""
    return NoteRow(*note_of(reader, root_id, key, text), content=text.content)
