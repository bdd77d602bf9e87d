"""The tree of notes: moved and removed, a note alone or a folder with all that is below.

A folder is nothing but the paths of its notes, so all of them change, in one transaction.
"""

from typing import Final

from app.db.owner import statements
from app.db.owner.rows import NoteMetaRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import AlreadyExistsError
from app.errors.inputs import InvalidPathError, RecursiveRequiredError
from app.owner.blobs import remove_forgotten
from app.owner.folders import is_folder, list_below, require_folders_above
from app.owner.notes import Condition, find_judged, only_row
from app.owner.paths import MAX_DEPTH, MAX_PATH_BYTES, SHARED_MEMORY, is_under
from app.owner.versions import (
    Origin,
    has_versions,
    keep_removal,
    keep_text,
    next_version,
    purge_versions,
)

_NO_CONDITION: Final = Condition()
_KEY_BYTES_MAX: Final = MAX_PATH_BYTES - len(f"{SHARED_MEMORY}/")


def delete_note(  # noqa: PLR0913 - the call's six facts, four of them by name
    tx: OwnerTransactor,
    key: str,
    *,
    condition: Condition,
    purge: bool,
    recursive: bool,
    author: str,
) -> int:
    """Remove a note, or a folder with all that is below.

    Args:
        tx: The store's transaction.
        key: The note or folder.
        condition: What must stand; a folder counts as no note.
        purge: Forget every version and the words in the index as well. This also serves
            for what was deleted before; only a keyed digest of the path remains.
        recursive: Required to remove a folder.
        author: User id, or `user id/agent id`.

    Returns:
        How many notes were removed; 0 when only old versions were purged.

    Raises:
        InvalidPathError: The key is the root.
        NotFoundError: There is nothing to remove.
        RecursiveRequiredError: It is a folder.
        AlreadyExistsError: The condition does not hold.
        VersionConflictError: The condition does not hold.
    """
    notes = find_removable(tx, key, condition=condition, purge=purge, recursive=recursive)
    for note in notes:
        only_row(tx.run(statements.REMOVE_NOTE, id=note.id, read_version=note.version))
        keep_removal(tx, note, Origin(author, "delete"))
    if purge:
        purge_versions(tx, key, recursive=recursive)
        remove_forgotten(tx)
    return len(notes)


def find_removable(
    reader: OwnerReader, key: str, *, condition: Condition, purge: bool, recursive: bool
) -> list[NoteMetaRow]:
    """Find the notes that a removal takes away, and refuse what it would refuse.

    Args:
        reader: The store.
        key: As for `delete_note`, with all that follows.
        condition: Likewise.
        purge: Likewise.
        recursive: Likewise.

    Returns:
        The notes; none when only old versions would be purged.

    Raises:
        StrongroomError: As for `delete_note`.
    """
    present = find_judged(reader, key, condition)
    notes = [present] if present else list_below(reader, key)
    if notes and not present and not recursive:
        raise RecursiveRequiredError
    if not notes and not (purge and has_versions(reader, key, recursive=recursive)):
        raise NotFoundError
    return notes


Moved = NoteMetaRow
"""A note where it stands after a move."""


def move_note(  # noqa: PLR0913 - the call's six facts, three of them by name
    tx: OwnerTransactor,
    from_key: str,
    to_key: str,
    *,
    recursive: bool,
    author: str,
    condition: Condition = _NO_CONDITION,
) -> list[NoteMetaRow]:
    """Move a note, or a folder with all that is below, to where nothing stands.

    Args:
        tx: The store's transaction.
        from_key: The note or folder.
        to_key: Its new key.
        recursive: Required to move a folder.
        author: User id, or `user id/agent id`.
        condition: What must stand at the old key; a folder counts as no note.

    Returns:
        The moved notes as they stand now.

    Raises:
        InvalidPathError: One key is the root, the new one lies inside the moved folder, or a
            note would come to lie too deep or get too long a path.
        NotFoundError: There is nothing to move.
        RecursiveRequiredError: It is a folder.
        AlreadyExistsError: Something stands at the new key.
        VersionConflictError: The condition does not hold.
        PathConflictError: A note stands where the new key needs a folder.
    """
    notes = find_movable(tx, from_key, to_key, recursive=recursive, condition=condition)
    return [_move(tx, note, to_key + note.path[len(from_key) :], author) for note in notes]


def find_movable(
    reader: OwnerReader, from_key: str, to_key: str, *, recursive: bool, condition: Condition
) -> list[NoteMetaRow]:
    """Find the notes that a move takes along, and refuse what it would refuse.

    Args:
        reader: The store.
        from_key: As for `move_note`, with all that follows.
        to_key: Likewise.
        recursive: Likewise.
        condition: Likewise.

    Returns:
        The notes as they stand before it.

    Raises:
        StrongroomError: As for `move_note`.
    """
    present = find_judged(reader, from_key, condition)
    occupant = find_judged(reader, to_key, _NO_CONDITION)
    notes = [present] if present else list_below(reader, from_key)
    if not notes:
        raise NotFoundError
    if not present and not recursive:
        raise RecursiveRequiredError
    if not present and is_under(to_key, from_key):
        raise InvalidPathError
    if occupant or is_folder(reader, to_key):
        raise AlreadyExistsError(occupant.version if occupant else None)
    require_folders_above(reader, to_key)
    for note in notes:
        _require_place(to_key + note.path[len(from_key) :])
    return notes


def _require_place(key: str) -> None:
    if key.count("/") >= MAX_DEPTH or len(key.encode()) > _KEY_BYTES_MAX:
        raise InvalidPathError


def _move(tx: OwnerTransactor, note: NoteMetaRow, key: str, author: str) -> NoteMetaRow:
    moved = only_row(
        tx.run(
            statements.SET_NOTE_PATH,
            id=note.id,
            read_version=note.version,
            path=key,
            version=next_version(tx, key, note.version),
            author=author,
            now=tx.now_ms,
        )
    )
    keep_removal(tx, note, Origin(author, "move"))
    keep_text(tx, moved, "move")
    return moved
