"""Files by their path: every read and write of a text, for whatever surface asks.

A path says where its text is kept. Whoever calls, by whichever surface, the same functions
here decide who may, measure what is added, and act.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from app.bridge.callers import Call, Caller
from app.bridge.content import asking, disk, disk_writes, notes
from app.bridge.content.asking import Waiting
from app.bridge.strongroom import Strongroom
from app.db.owner.rows import NoteRow
from app.db.owner.store import OwnerReader
from app.errors.inputs import PayloadTooLargeError
from app.owner import copies, folders, tree, versions
from app.owner import notes as owner_notes
from app.owner.copies import TakenIn
from app.owner.edits import Edit
from app.owner.folders import EntryRow
from app.owner.notes import Condition, Written
from app.owner.paths import USER_MEMORY, PathRef
from app.owner.pending_writes import Wanted
from app.owner.tree import Moved

T = TypeVar("T")
_OWN: Final = PathRef(USER_MEMORY, "")


async def get(room: Strongroom, caller: Caller, call: Call, ref: PathRef) -> NoteRow:
    """Read a text that must be there.

    Returns:
        It, with what is known of it.

    Raises:
        NotANoteError: A folder stands there.
        NotFoundError: Nothing stands there.
        StoreLockedError: It is the caller's own, and this credential cannot open it.
    """
    if ref.is_on_disk:
        return await disk.get(room, caller, ref)
    return await notes.read(
        room, caller, call, ref, lambda reader: owner_notes.get_note(reader, ref.key)
    )


async def list_folder(
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, depth: int
) -> Sequence[EntryRow]:
    """What lies in a folder, down to a depth; folders are implied by paths."""
    if ref.is_on_disk:
        return await disk.list_folder(room, caller, ref, depth)
    return await notes.read(
        room, caller, call, ref, lambda reader: folders.list_files(reader, ref.key, depth)
    )


async def put(  # noqa: PLR0913, PLR0917 - the parts of one write
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, text: str, condition: Condition
) -> Written | Waiting:
    """Make a text, or replace the one that stands there.

    Returns:
        What stands now; or what waits, for an agent whose member decides first.

    Raises:
        PayloadTooLargeError: It is larger than a note may be.
        NotPermittedError: The caller may not write there, or a rule keeps agents from it.
        TooManyApprovalsError: As much as may waits for the member's decision already.
        QuotaExceededError: There is no room for it.
        InvalidPathError: The path is a root.
        InvalidInputError: The text cannot be stored.
        ConflictError: The condition does not hold, or the place is taken.
    """
    size_bytes = len(text.encode())
    if size_bytes > room.settings.note_bytes_max:
        raise PayloadTooLargeError
    if ref.is_on_disk:
        return await disk_writes.put(room, caller, call, ref, text, condition)
    return await asking.write(
        room,
        caller,
        call,
        Wanted("write_file", ref, content=text),
        lambda tx: owner_notes.put_note(tx, ref.key, text, caller.author, condition),
        condition,
        adds_bytes=size_bytes,
    )


async def append(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, text: str, condition: Condition
) -> Written | Waiting:
    """Add a text on a line of its own, making the file when it is missing.

    Returns:
        What stands now; or what waits, for an agent whose member decides first.

    Raises:
        PayloadTooLargeError: It would be larger than a note may be.
        NotPermittedError: The caller may not write there, or a rule keeps agents from it.
        TooManyApprovalsError: As much as may waits for the member's decision already.
        QuotaExceededError: There is no room for it.
        InvalidPathError: The path is a root.
        InvalidInputError: The text cannot be stored.
        ConflictError: The condition does not hold, or the place is taken.
    """
    if ref.is_on_disk:
        return await disk_writes.append(room, caller, call, ref, text, condition)
    size_max, author = room.settings.note_bytes_max, caller.author
    return await asking.write(
        room,
        caller,
        call,
        Wanted("append_file", ref, content=text),
        lambda tx: owner_notes.append_note(tx, ref.key, text, author, condition, size_max),
        condition,
        adds_bytes=len(text.encode()),
    )


async def edit(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom,
    caller: Caller,
    call: Call,
    ref: PathRef,
    edits: Sequence[Edit],
    condition: Condition,
    *,
    adds_bytes: int,
) -> Written | Waiting:
    """Edit a text: all edits or none, each placed in the text as it was.

    Whether an edit finds its place tells of the text, so it is for who may read it, too.

    Returns:
        What stands now; or what waits, for an agent whose member decides first.

    Raises:
        NotFoundError: Nothing stands there.
        PayloadTooLargeError: It would be larger than a note may be.
        NotPermittedError: The caller may not write or read there, or a rule keeps agents from it.
        TooManyApprovalsError: As much as may waits for the member's decision already.
        QuotaExceededError: There is no room for `adds_bytes` more.
        InvalidPathError: The path is a root.
        InvalidInputError: An edit names no place, or its text cannot be stored.
        ConflictError: The condition does not hold, or an edit's old text is not there once.
    """
    notes.require_may_read(caller)
    if ref.is_on_disk:
        return await disk_writes.edit(room, caller, call, ref, edits, condition)
    size_max, author = room.settings.note_bytes_max, caller.author
    return await asking.write(
        room,
        caller,
        call,
        Wanted("edit_file", ref, edits=tuple(edits)),
        lambda tx: owner_notes.edit_note(tx, ref.key, edits, author, condition, size_max),
        condition,
        adds_bytes=adds_bytes,
        judge=lambda reader: owner_notes.get_note(reader, ref.key),
    )


async def restore(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, version: int, condition: Condition
) -> Written | Waiting:
    """Give a note the text of one of its versions again, also when it was deleted.

    Returns:
        What stands now; or what waits, for an agent whose member decides first.

    Raises:
        NotFoundError: The version is not kept, or was a deletion.
        NotPermittedError: The caller may not write there, or a rule keeps agents from it.
        TooManyApprovalsError: As much as may waits for the member's decision already.
        QuotaExceededError: There is no room for it.
        InvalidPathError: The path is a root.
        ConflictError: The condition does not hold, or the path is taken by now.
    """
    notes.require_may_write(caller, ref)
    adds_bytes = await notes.read(
        room, caller, call, ref, lambda reader: versions.size_of(reader, ref.key, version)
    )
    return await asking.write(
        room,
        caller,
        call,
        Wanted("restore_file", ref, version=version),
        lambda tx: owner_notes.restore_note(tx, ref.key, version, caller.author, condition),
        condition,
        adds_bytes=adds_bytes,
    )


async def delete(  # noqa: PLR0913 - likewise
    room: Strongroom,
    caller: Caller,
    call: Call,
    ref: PathRef,
    condition: Condition,
    *,
    purge: bool = False,
    recursive: bool = False,
) -> int | Waiting:
    """Take a file away, or with `recursive` a folder; with `purge` every version goes too.

    Returns:
        How many files went; or what waits, for an agent whose member decides first.

    Raises:
        NotFoundError: There is nothing to remove.
        NotPermittedError: The caller may not write there, or a rule keeps agents from it.
        TooManyApprovalsError: As much as may waits for the member's decision already.
        InvalidPathError: The path is a root.
        RecursiveRequiredError: It is a folder.
        ConflictError: The condition does not hold.
    """
    if ref.is_on_disk:
        return await disk_writes.delete(room, caller, call, ref, condition, recursive=recursive)
    return await asking.write(
        room,
        caller,
        call,
        Wanted("delete_file", ref, purge=purge, recursive=recursive),
        lambda tx: tree.delete_note(
            tx,
            ref.key,
            condition=condition,
            purge=purge,
            recursive=recursive,
            author=caller.author,
        ),
        condition,
        adds_bytes=None,
    )


async def move(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom,
    caller: Caller,
    call: Call,
    source: PathRef,
    target: PathRef,
    condition: Condition,
    *,
    recursive: bool = False,
) -> Sequence[Moved] | Waiting:
    """Move a file, or with `recursive` a folder, to where nothing stands, inside one root.

    Returns:
        Each file that moved, as it stands now; or what waits, for an agent whose member
        decides first.

    Raises:
        DifferentRootsError: The two paths are in different roots.
        NotFoundError: There is nothing to move.
        NotPermittedError: The caller may not write there, or a rule keeps agents from it.
        TooManyApprovalsError: As much as may waits for the member's decision already.
        InvalidPathError: A path is a root.
        RecursiveRequiredError: It is a folder.
        ConflictError: The condition does not hold, or something stands where it is to go.
    """
    notes.require_may_write(caller, source)
    notes.require_one_root(source, target)
    if source.is_on_disk:
        return await disk_writes.move(
            room, caller, call, source, target, condition, recursive=recursive
        )
    return await asking.write(
        room,
        caller,
        call,
        Wanted("move_file", source, to=target, recursive=recursive),
        lambda tx: tree.move_note(
            tx,
            source.key,
            target.key,
            recursive=recursive,
            author=caller.author,
            condition=condition,
        ),
        condition,
        # And the text once more, as a version at its new place.
        adds_bytes=len(target.key.encode()),
    )


async def copy_own(
    room: Strongroom, caller: Caller, call: Call, work: Callable[[OwnerReader], T]
) -> T:
    """Go through all of the caller's own texts, in one snapshot.

    Returns:
        What the work returned.

    Raises:
        StoreLockedError: This credential cannot open the store.
    """
    return await notes.read(room, caller, call, _OWN, work)


async def take_in(
    room: Strongroom,
    caller: Caller,
    call: Call,
    texts: Callable[[], Iterable[tuple[str, str]]],
    adds_bytes: int,
) -> TakenIn:
    """Write many of the caller's own texts, all or none.

    Returns:
        How many there were.

    Raises:
        NotPermittedError: The caller may not write there.
        QuotaExceededError: There is no room for them.
        InvalidInputError: A text cannot be stored.
        PathConflictError: A folder stands where a note is to stand, or the reverse.
    """
    author = caller.author
    return await notes.write(
        room,
        caller,
        call,
        _OWN,
        lambda tx: copies.take_in(tx, texts(), author),
        adds_bytes=adds_bytes,
    )
