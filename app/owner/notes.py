"""Notes: their texts, read and written.

A path inside a root is a key, canonical as `app.owner.paths` makes it. Each function reads,
judges and writes inside the caller's one transaction: nothing comes between, and an error
leaves everything as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.db.owner import statements
from app.db.owner.rows import NoteMetaRow, NoteRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotANoteError, NotFoundError
from app.errors.conflicts import AlreadyExistsError, VersionConflictError
from app.errors.inputs import InvalidPathError, PayloadTooLargeError
from app.ids import NoteId
from app.owner.edits import Edit, apply_edits, count_lines
from app.owner.folders import is_folder, require_free
from app.owner.text import measure
from app.owner.versions import Origin, get_version, keep_append, keep_text, next_version


@dataclass(frozen=True, slots=True)
class Condition:
    """What a caller requires of the note that stands; nothing by default."""

    match: frozenset[int] | None = None
    """`If-Match` with versions: one of these must stand. None for any or no note."""
    must_exist: bool = False
    """`If-Match: *`."""
    must_not_exist: bool = False
    """`If-None-Match: *`."""

    def require(self, version: int | None) -> None:
        """Judge the version that stands; None when there is no note.

        Raises:
            AlreadyExistsError: There is a note and must be none.
            VersionConflictError: There is none and must be one, or it has another version.
        """
        if version is None:
            holds = self.match is None and not self.must_exist
        elif self.must_not_exist:
            raise AlreadyExistsError(version)
        else:
            holds = self.match is None or version in self.match
        if not holds:
            raise VersionConflictError(version)


class Written(NamedTuple):
    """The outcome of a write."""

    note: NoteMetaRow
    """The note as it stands now."""
    created: bool
    """Whether it is new."""
    replaced_version: int | None = None
    """The version that it took the place of, which can be brought back; None when it is new,
    nothing was changed, or it goes on from an append that is one version with it."""


def find_note(reader: OwnerReader, key: str) -> NoteRow | None:
    """The note at a key with its content; None when there is none."""
    return reader.one(statements.FIND_NOTE, path=key)


def get_note(reader: OwnerReader, key: str) -> NoteRow:
    """Read a note that must be there.

    Returns:
        The note with its content.

    Raises:
        NotANoteError: A folder stands there.
        NotFoundError: Nothing stands there.
    """
    note = find_note(reader, key)
    if note is None:
        raise NotANoteError if is_folder(reader, key) else NotFoundError
    return note


def put_note(
    tx: OwnerTransactor, key: str, content: str, author: str, condition: Condition
) -> Written:
    """Make a note, or replace its content; the same content again changes nothing.

    Returns:
        The note as it stands now.

    Raises:
        InvalidPathError: The key is the root.
        InvalidInputError: The content cannot be stored.
        AlreadyExistsError: The condition does not hold.
        VersionConflictError: The condition does not hold.
        PathConflictError: A folder stands there, or a note where it needs a folder.
    """
    present = find_judged(tx, key, condition)
    return _write(tx, key, present, content, Origin(author, "put"))


def append_note(  # noqa: PLR0913, PLR0917 - the write's six facts, all of the caller's
    tx: OwnerTransactor, key: str, text: str, author: str, condition: Condition, size_max: int
) -> Written:
    """Add text to a note, on a line of its own; make the note when there is none.

    Args:
        tx: The store's transaction.
        key: The note.
        text: What to add; nothing changes nothing.
        author: User id, or `user id/agent id`.
        condition: What must stand.
        size_max: Most bytes of UTF-8 that the note may have afterwards.

    Returns:
        The note as it stands now.

    Raises:
        InvalidPathError: The key is the root.
        InvalidInputError: The text cannot be stored.
        PayloadTooLargeError: The note would be larger than `size_max`.
        AlreadyExistsError: The condition does not hold.
        VersionConflictError: The condition does not hold.
        PathConflictError: A folder stands there, or a note where it needs a folder.
    """
    present = find_judged(tx, key, condition)
    size_bytes = measure(text)
    if present is None:
        _require_size(size_bytes, size_max)
        return _write(tx, key, None, text, Origin(author, "append"))
    if not text:
        return Written(present, created=False)
    [line_start] = tx.all(statements.FIND_LINE_START, path=key)
    added = text if line_start.value else f"\n{text}"
    size_bytes = present.size_bytes + measure(added)
    _require_size(size_bytes, size_max)
    note = only_row(
        tx.run(
            statements.APPEND_TO_NOTE,
            id=present.id,
            read_version=present.version,
            added=added,
            size_bytes=size_bytes,
            lines=present.lines + count_lines(text),
            version=next_version(tx, key, present.version),
            author=author,
            now=tx.now_ms,
        )
    )
    is_kept = keep_append(tx, note, present.version)
    return Written(note, created=False, replaced_version=present.version if is_kept else None)


def edit_note(  # noqa: PLR0913, PLR0917 - the write's six facts, all of the caller's
    tx: OwnerTransactor,
    key: str,
    edits: Sequence[Edit],
    author: str,
    condition: Condition,
    size_max: int,
) -> Written:
    """Apply edits to a note, all or none.

    Args:
        tx: The store's transaction.
        key: The note.
        edits: As for `apply_edits`.
        author: User id, or `user id/agent id`.
        condition: What must stand.
        size_max: Most bytes of UTF-8 that the note may have afterwards.

    Returns:
        The note as it stands now.

    Raises:
        InvalidPathError: The key is the root.
        NotFoundError: No note stands there.
        InvalidInputError: An edit names no place, or its text cannot be stored.
        ConflictError: The condition does not hold, or an edit's old text is not there once.
        PayloadTooLargeError: The note would be larger than `size_max`.
    """
    present = find_judged(tx, key, condition)
    content = apply_edits(get_note(tx, key).content, edits)
    _require_size(measure(content), size_max)
    return _write(tx, key, present, content, Origin(author, "edit"))


def restore_note(
    tx: OwnerTransactor, key: str, version: int, author: str, condition: Condition
) -> Written:
    """Give a note the text of one of its versions again, also when it was deleted.

    Returns:
        The note as it stands now.

    Raises:
        InvalidPathError: The key is the root.
        NotFoundError: The version is not kept, or was a deletion.
        ConflictError: The condition does not hold, or the path is taken by now.
    """
    present = find_judged(tx, key, condition)
    kept = get_version(tx, key, version)
    if kept.content is None:
        raise NotFoundError
    origin = Origin(author, "restore")
    return _write(tx, key, present, kept.content, origin, _id_again(tx, kept.doc_id))


def find_judged(reader: OwnerReader, key: str, condition: Condition) -> NoteMetaRow | None:
    """Find the note that is about to change, if the condition holds for it.

    Returns:
        The note without its content; None when there is none.

    Raises:
        InvalidPathError: The key is the root, which is no note and never changes.
        AlreadyExistsError: The condition does not hold.
        VersionConflictError: The condition does not hold.
    """
    if not key:
        raise InvalidPathError
    present = reader.one(statements.FIND_NOTE_META, path=key)
    condition.require(present.version if present else None)
    return present


def only_row(rows: Sequence[NoteMetaRow]) -> NoteMetaRow:
    """Require that a guarded change changed its note.

    Returns:
        The one row that it gave.

    Raises:
        VersionConflictError: It gave none: another version stands there.
    """
    if len(rows) != 1:
        raise VersionConflictError
    return rows[0]


def _id_again(tx: OwnerTransactor, doc_id: NoteId) -> str | None:
    """The id of a note that comes back, and with it what hangs on it; None if it never left."""
    there = tx.one(statements.IS_NOTE_THERE, id=doc_id)
    return None if there is not None and there.value else doc_id


def _write(  # noqa: PLR0913, PLR0917 - one write's facts
    tx: OwnerTransactor,
    key: str,
    present: NoteMetaRow | None,
    content: str,
    origin: Origin,
    new_id: str | None = None,
) -> Written:
    fields: dict[str, str | int] = {
        "size_bytes": measure(content),
        "lines": count_lines(content),
        "content": content,
        "author": origin.author,
        "now": tx.now_ms,
    }
    if present is None:
        require_free(tx, key)
        version = next_version(tx, key, 0)
        rows = tx.run(
            statements.ADD_NOTE, id=new_id or tx.new_id(), path=key, version=version, **fields
        )
    elif present.size_bytes == fields["size_bytes"] and get_note(tx, key).content == content:
        return Written(present, created=False)
    else:
        rows = tx.run(
            statements.SET_NOTE_CONTENT,
            id=present.id,
            read_version=present.version,
            version=next_version(tx, key, present.version),
            **fields,
        )
    note = only_row(rows)
    keep_text(tx, note, origin.via)
    replaced = None if present is None else present.version
    return Written(note, created=present is None, replaced_version=replaced)


def _require_size(size_bytes: int, size_max: int) -> None:
    if size_bytes > size_max:
        raise PayloadTooLargeError
