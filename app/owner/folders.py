"""Folders: implied by the paths of notes, never rows of their own."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from app.db.owner import statements
from app.db.owner.rows import NoteMetaRow
from app.db.owner.store import OwnerReader
from app.errors.callers import NotFoundError
from app.errors.conflicts import PathConflictError
from app.errors.inputs import InvalidInputError
from app.owner.paths import parents

ENTRIES_MAX: Final = 10_000
"""Entries of one listing. One that has so many may have lost its end."""

_BATCH = 100
_ALL = -1


class Span(NamedTuple):
    """A range of paths by their bytes: from `low`, up to but without `high`."""

    low: str
    high: str | bytes


class EntryRow(NamedTuple):
    """A note or a folder, as a listing shows it."""

    path: str
    """Its key inside the root."""
    name: str
    is_dir: bool
    lines: int | None = None
    """None for a folder, as all that follows: sums would mean to read all that is below."""
    size_bytes: int | None = None
    version: int | None = None
    updated_at: int | None = None


def span_below(key: str) -> Span:
    """The range of all paths in a folder, at any depth."""
    # "0" is the character after "/"; and in SQLite every text sorts before every blob.
    return Span(f"{key}/", f"{key}0") if key else Span("", b"")


def is_folder(reader: OwnerReader, key: str) -> bool:
    """Whether there is a folder: any note below, or the root."""
    span = span_below(key)
    return not key or (
        reader.one(statements.FIND_NOTE_BELOW, low=span.low, high=span.high) is not None
    )


def require_folders_above(reader: OwnerReader, key: str) -> None:
    """Require that a note may have this key as far as its folders go.

    Raises:
        PathConflictError: A note stands where one of them would be.
    """
    for folder in parents(key):
        if reader.one(statements.FIND_NOTE_META, path=folder) is not None:
            raise PathConflictError


def require_free(reader: OwnerReader, key: str) -> None:
    """Require that a note may come to stand where none is.

    Raises:
        PathConflictError: A folder stands there, or a note where it needs a folder.
    """
    if is_folder(reader, key):
        raise PathConflictError
    require_folders_above(reader, key)


def list_below(reader: OwnerReader, key: str) -> list[NoteMetaRow]:
    """Every note in a folder, at any depth, in the order of their paths."""
    span = span_below(key)
    return reader.all(statements.LIST_NOTES, low=span.low, high=span.high, limit=_ALL)


def list_files(reader: OwnerReader, key: str, depth: int) -> list[EntryRow]:
    """The notes and folders in a folder.

    Costs about what it shows: most of what lies below the last level is skipped, not read.

    Args:
        reader: The store.
        key: The folder; "" for the root.
        depth: How many levels to show, at least 1.

    Returns:
        At most 10,000 entries, each folder right before what is in it.

    Raises:
        InvalidInputError: A depth below 1.
        NotFoundError: No such folder; the root always exists.
    """
    if depth < 1:
        raise InvalidInputError(field="depth")
    if not is_folder(reader, key):
        raise NotFoundError
    entries: dict[str, EntryRow] = {}
    above = f"{key}/" if key else ""
    for note in _notes_within(reader, key, above, depth):
        names = note.path.removeprefix(above).split("/")
        for level in range(1, min(len(names), depth + 1)):
            folder = _folder_entry(above + "/".join(names[:level]))
            entries.setdefault(folder.path, folder)
        if len(names) <= depth:
            entries[note.path] = _note_entry(note)
        if len(entries) >= ENTRIES_MAX:
            break
    # Bytes put "a-b" between "a" and "a/b"; names compared one by one do not.
    return sorted(entries.values(), key=lambda entry: entry.path.split("/"))[:ENTRIES_MAX]


def _note_entry(note: NoteMetaRow) -> EntryRow:
    return EntryRow(
        path=note.path,
        name=note.path.rpartition("/")[2],
        is_dir=False,
        lines=note.lines,
        size_bytes=note.size_bytes,
        version=note.version,
        updated_at=note.updated_at,
    )


def _folder_entry(path: str) -> EntryRow:
    return EntryRow(path, path.rpartition("/")[2], is_dir=True)


def _notes_within(reader: OwnerReader, key: str, above: str, depth: int) -> Iterator[NoteMetaRow]:
    """The notes of a folder down to a depth, and at least one of each folder below it."""
    span = span_below(key)
    while True:
        rows = reader.all(statements.LIST_NOTES, low=span.low, high=span.high, limit=_BATCH)
        yield from rows
        if len(rows) < _BATCH:
            return
        last = rows[-1].path
        names = last.removeprefix(above).split("/")
        if len(names) > depth:
            skipped = above + "/".join(names[:depth])
            span = span._replace(low=f"{skipped}0")
        else:
            # No path has a control character: nothing lies between the two.
            span = span._replace(low=f"{last}\x00")
