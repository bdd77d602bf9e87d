"""Shared folders and projects: texts in clear on the disk, for whoever is in them.

They have no history, and search does not know them. A text's version is made of its content
and its file, so `If-Match` holds also against what was changed beside the service.
"""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from app.bridge.callers import Call, Caller
from app.bridge.content import disk_desk
from app.bridge.content.disk_desk import Desk
from app.bridge.content.disk_texts import whole_note_of
from app.bridge.strongroom import Strongroom, uncut
from app.db import disk_steps, disk_tree
from app.db.context import system_actor
from app.db.disk_tree import Entry
from app.db.owner.rows import NoteRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotANoteError, NotFoundError
from app.errors.conflicts import PathConflictError
from app.errors.inputs import InvalidPathError
from app.errors.stores import StoreError
from app.owner.folders import EntryRow
from app.owner.paths import PathRef
from app.registry import disk_roots
from app.registry.disk_roots import Root
from app.runtime.idempotency import Replayed

T = TypeVar("T")
R = TypeVar("R")
_ACTOR = system_actor("disk")


async def get(room: Strongroom, caller: Caller, ref: PathRef) -> NoteRow:
    """Read a text that must be there.

    Returns:
        It, with what is known of it.

    Raises:
        NotANoteError: A folder stands there.
        NotFoundError: Nothing stands there, or the caller is not in that folder.
        NotTextError: What stands there is no text.
    """
    if ref.is_above_roots:
        await _places(room, caller, ref)
        raise NotANoteError
    root = await _root(room, caller, ref)
    if not ref.key:
        raise NotANoteError
    path, size_max = _path_of(room, root), room.settings.note_bytes_max

    def read() -> disk_tree.Text:
        with disk_tree.opened(path) as descriptor:
            return disk_tree.read(descriptor, ref.key, size_max)

    text = await room.stores.on_thread(read)
    return await room.stores.registry.read(
        lambda reader: whole_note_of(reader, root.id, ref.key, text)
    )


async def list_folder(
    room: Strongroom, caller: Caller, ref: PathRef, depth: int
) -> Sequence[EntryRow]:
    """What lies in a folder, down to a depth; above them all, the folders the caller is in.

    Returns:
        The entries, lines and versions unknown, for that would mean to read every file.

    Raises:
        NotFoundError: There is no such folder, or the caller is not in it.
    """
    if ref.is_above_roots:
        return _implied(ref, await _places(room, caller, ref), depth)
    root = await _root(room, caller, ref)
    path = _path_of(room, root)

    def read() -> list[Entry]:
        try:
            with disk_tree.opened(path) as descriptor:
                return disk_tree.listing(descriptor, ref.key, depth)
        except NotFoundError:
            if ref.key:
                raise
            return []  # nobody has written there yet

    found = await room.stores.on_thread(read)
    return [_entry(entry) for entry in found if PathRef(ref.root, entry.key).is_canonical]


@uncut
async def write(  # noqa: PLR0913, PLR0917 - the parts of one write
    room: Strongroom,
    caller: Caller,
    call: Call,
    ref: PathRef,
    work: Callable[[Desk], T],
    judge: Callable[[Desk], object] | None = None,
    author: str | None = None,
) -> T:
    """Write in the folder that a path names: decided in one transaction, then done.

    Args:
        room: The service.
        caller: Who writes; judged by their scopes already.
        call: The request.
        ref: Where.
        work: Decides it.
        judge: Refuses to give a kept answer again; None when membership alone decides that.
        author: Whose text it is, where that is not the caller.

    Returns:
        What the work returned.

    Raises:
        NotFoundError: There is no such folder, or the caller is not in it.
        NotPermittedError: They only read there.
        InvalidPathError: The path is a root.
        PathConflictError: The folder was changed beside the service, just then.
        StoreError: The disk is in trouble; decided, the write takes place as soon as it can.
    """
    registry = room.stores.registry

    def find(reader: RegistryReader) -> Root:
        return disk_roots.require_writable(reader, ref.root, caller.user_id)

    # The name may come to be another folder's at any time: in each transaction it is read anew.
    roots = [await registry.read(find)]
    if not ref.key:
        raise InvalidPathError

    def at_desk(tx: RegistryTransactor, work: Callable[[Desk], R]) -> R:
        root = roots[-1] = find(tx)
        with disk_tree.opened(_path_of(room, root), make=True) as descriptor:
            return work(Desk(tx, room.settings, root, descriptor, author or caller.author))

    def decide(tx: RegistryTransactor) -> T:
        # What a crash, or another process, left to be done comes first.
        root = find(tx)
        disk_desk.settle(tx, _path_of(room, root), root.id)
        return at_desk(tx, work)

    once = call.judged(lambda tx: at_desk(tx, judge or _nothing)).once
    # One at a time: what `settle` meets in its own transaction is committed.
    async with room.stores.disk_turn:
        try:
            result = await registry.write(decide, caller.actor(call), once=once)
        except Replayed:
            # A crash may have come between the commit and its taking place.
            await _settle(room, roots[-1])
            raise
        room.reach("disk.decided")
        if not await _settle(room, roots[-1]):
            raise PathConflictError
    room.reach("disk.done")
    return result


async def _settle(room: Strongroom, root: Root) -> bool:
    path, registry = _path_of(room, root), room.stores.registry
    pending = await registry.read(lambda reader: disk_roots.list_pending(reader, root.id))
    if not pending:
        return True
    is_done = await registry.write(lambda tx: disk_desk.settle(tx, path, root.id), _ACTOR)

    def clear() -> None:
        # What stays here goes with the janitor; and somebody may have removed the whole folder.
        with contextlib.suppress(NotFoundError, StoreError), disk_tree.opened(path) as descriptor:
            disk_steps.clear_gone(descriptor)

    if any(disk_steps.GONE in each.pending for each in pending):
        await room.stores.on_thread(clear)
    return is_done


def _nothing(_desk: Desk) -> None:
    """Of a kept answer that membership alone decides about."""


def _path_of(room: Strongroom, root: Root) -> Path:
    return room.settings.disk_root(root.kind, root.id)


async def _root(room: Strongroom, caller: Caller, ref: PathRef) -> Root:
    return await room.stores.registry.read(
        lambda reader: disk_roots.get(reader, ref.root, caller.user_id)
    )


async def _places(room: Strongroom, caller: Caller, ref: PathRef) -> list[str]:
    """Where the folders lie that the caller is in, below a path above them all.

    Returns:
        Canonical paths.

    Raises:
        NotFoundError: It names an owner of whom the caller is in no project.
    """
    places = await room.stores.registry.read(
        lambda reader: disk_roots.list_places(reader, caller.user_id, ref.kind)
    )
    found = [place for place in places if place.startswith(f"{ref.root}/")]
    if not found and ref.root != ref.kind:
        raise NotFoundError
    return found


def _implied(ref: PathRef, places: Sequence[str], depth: int) -> list[EntryRow]:
    """Folders as far as they are above what is in them."""
    keys: dict[str, None] = {}
    for place in places:
        names = place.removeprefix(f"{ref.root}/").split("/")
        for level in range(1, min(len(names), depth) + 1):
            keys.setdefault("/".join(names[:level]))
    return [EntryRow(key, key.rpartition("/")[2], is_dir=True) for key in keys]


def _entry(entry: Entry) -> EntryRow:
    name = entry.key.rpartition("/")[2]
    if entry.is_dir:
        return EntryRow(entry.key, name, is_dir=True)
    return EntryRow(
        path=entry.key,
        name=name,
        is_dir=False,
        size_bytes=entry.size_bytes,
        updated_at=entry.changed_at,
    )
