"""What agents ask to write in shared folders and projects: looked at first, done when approved.

What stands there is told by its version, of a folder by all that is in it. Approved, the write
is decided in one transaction with the mark that it was done, as every write there is.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from app.bridge.callers import Call, Caller
from app.bridge.content import disk
from app.bridge.content.disk_desk import Desk
from app.bridge.content.disk_texts import version_at, version_of
from app.bridge.strongroom import Strongroom
from app.db import disk_tree
from app.db.disk_tree import Entry
from app.db.registry.store import RegistryReader
from app.db.runtime.store import RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import (
    AlreadyExistsError,
    NotTextError,
    PathConflictError,
    VersionConflictError,
)
from app.errors.inputs import InvalidPathError, PayloadTooLargeError, RecursiveRequiredError
from app.owner.edits import apply_edits
from app.owner.notes import Condition
from app.owner.paths import MAX_DEPTH
from app.owner.pending_writes import FOLDER, Wanted
from app.owner.text import measure
from app.registry import disk_roots
from app.registry.disk_roots import LastWrite, Root
from app.runtime.idempotency import Once

T = TypeVar("T")
_NO_CONDITION: Final = Condition()


async def paths_of(room: Strongroom, caller: Caller, wanted: Wanted) -> list[str]:
    """Every path that a write changes: of a folder, each file's in it.

    Args:
        room: The service.
        caller: Who asks.
        wanted: The write.

    Returns:
        Canonical paths; of a move those where it ends, too.

    Raises:
        NotFoundError: There is no such folder on the disk, or the caller is not in it.
    """
    refs = [wanted.ref] if wanted.to is None else [wanted.ref, wanted.to]
    found = [ref.display for ref in refs]
    if wanted.recursive:
        rests = await _look(
            room, caller, wanted, lambda sight: _names_below(sight.descriptor, wanted.ref.key)
        )
        found += [f"{ref.display}{rest}" for rest in rests for ref in refs]
    return found


def _names_below(root: int, key: str) -> list[str]:
    if not key or disk_tree.kind_of(root, key) != "folder":
        return []
    entries = disk_tree.listing(root, key, MAX_DEPTH, limit=None)
    return [entry.key[len(key) :] for entry in entries]


async def rehearse(
    room: Strongroom, caller: Caller, once: Once | None, wanted: Wanted, condition: Condition
) -> str:
    """Find out what stands against a write, and write nothing.

    Returns:
        Which folder it is and what stands there, as one word that changes with either.

    Raises:
        StrongroomError: What the write itself would raise.
    """
    if once is not None:
        # Asked when the rules allowed it, it is done.
        await room.stores.registry.read(once.require_new)
    if not wanted.ref.key:
        raise InvalidPathError
    size_max = room.settings.note_bytes_max

    def judge(sight: _Sight) -> str:
        if wanted.tool in {"move_file", "delete_file"}:
            _judge_place(sight, wanted, condition, size_max)
        else:
            _judge_text(sight, wanted, condition, size_max)
        return _base_of(sight.root, sight.descriptor, wanted.ref.key, size_max)

    return await _look(room, caller, wanted, judge)


@dataclass(frozen=True, slots=True)
class _Sight:
    """A folder as it is looked at, and the last writes to the paths that are asked for."""

    root: Root
    descriptor: int
    last: LastWrite | None
    last_at_end: LastWrite | None
    """To where a move ends."""


async def _look(room: Strongroom, caller: Caller, wanted: Wanted, work: Callable[[_Sight], T]) -> T:
    """Read in the folder that a path names, for somebody who writes there."""

    def find(reader: RegistryReader) -> tuple[Root, LastWrite | None, LastWrite | None]:
        root = disk_roots.require_writable(reader, wanted.ref.root, caller.user_id)
        last = disk_roots.find_last_write(reader, root.id, wanted.ref.key)
        end = wanted.to
        at_end = disk_roots.find_last_write(reader, root.id, end.key) if end else None
        return root, last, at_end

    root, last, last_at_end = await room.stores.registry.read(find)
    path = room.settings.disk_root(root.kind, root.id)

    def read() -> T:
        with disk_tree.opened(path, make=True) as descriptor:
            return work(_Sight(root, descriptor, last, last_at_end))

    return await room.stores.on_thread(read)


def _base_of(root: Root, descriptor: int, key: str, size_max: int) -> str:
    # A name may be another folder's by the time of the decision.
    return f"{root.id} {_standing(descriptor, key, size_max)}"


def _standing(descriptor: int, key: str, size_max: int) -> str:
    """What tells a text from any other, or all in a folder; empty where nothing stands."""
    kind = disk_tree.kind_of(descriptor, key)
    if kind == "folder":
        entries = disk_tree.listing(descriptor, key, MAX_DEPTH, limit=None)
        told = "\n".join(map(_word_of, entries))
        # What was put there beside the service may have a name that is not UTF-8.
        raw = told.encode("utf-8", "surrogateescape")
        return FOLDER + hashlib.sha256(raw).hexdigest()
    if kind == "other":
        raise NotTextError
    found = disk_tree.find(descriptor, key, size_max)
    return "" if found is None else f"{found.digest}.{found.mark}"


def _word_of(entry: Entry) -> str:
    # A folder's own time changes with what the service stages in it.
    size_and_mark = "" if entry.is_dir else f"{entry.size_bytes} {entry.mark}"
    return f"{entry.key}\t{size_and_mark}"


def _judge_text(sight: _Sight, wanted: Wanted, condition: Condition, size_max: int) -> None:
    root, key = sight.descriptor, wanted.ref.key
    if disk_tree.kind_of(root, key) == "folder":
        condition.require(None)
        raise PathConflictError
    present = disk_tree.find(root, key, size_max)
    condition.require(None if present is None else version_of(sight.last, present))
    if present is None:
        disk_tree.require_folders_above(root, key)
    was = "" if present is None else present.content
    if wanted.tool == "edit_file":
        if present is None:
            raise NotFoundError
        size_bytes = measure(apply_edits(was, wanted.edits))
    else:
        size_bytes = measure(wanted.content or "")
        size_bytes += measure(was) if wanted.tool == "append_file" else 0
    if size_bytes > size_max:
        raise PayloadTooLargeError


def _judge_place(sight: _Sight, wanted: Wanted, condition: Condition, size_max: int) -> None:
    root = sight.descriptor
    kind = disk_tree.kind_of(root, wanted.ref.key)
    present = disk_tree.find(root, wanted.ref.key, size_max) if kind == "file" else None
    condition.require(None if present is None else version_of(sight.last, present))
    if kind is None:
        raise NotFoundError
    if kind == "folder" and not wanted.recursive:
        raise RecursiveRequiredError
    if wanted.to is None:
        return
    if not wanted.to.key:
        raise InvalidPathError
    if disk_tree.kind_of(root, wanted.to.key) is not None:
        raise AlreadyExistsError(version_at(sight.last_at_end, root, wanted.to.key, size_max))
    disk_tree.require_folders_above(root, wanted.to.key)


async def carry_out(  # noqa: PLR0913, PLR0917 - the parts of one write
    room: Strongroom,
    caller: Caller,
    call: Call,
    wanted: Wanted,
    base: str | None,
    author: str,
    mark: Callable[[RuntimeTransactor], bool],
) -> None:
    """Do what was approved, if what was seen stands there still.

    Args:
        room: The service.
        caller: Who approved it, and writes there.
        call: The request.
        wanted: What was asked.
        base: As `rehearse` told when it was asked.
        author: Who asked.
        mark: Notes in the write's own transaction that it is done; whether it was before.

    Raises:
        VersionConflictError: Something else stands there.
        StrongroomError: What the write raises.
    """
    size_max = room.settings.note_bytes_max

    def work(desk: Desk) -> None:
        if mark(desk.tx):
            return
        if _base_of(desk.root, desk.descriptor, wanted.ref.key, size_max) != base:
            raise VersionConflictError
        _perform(desk, wanted)

    await disk.write(room, caller, call, wanted.ref, work, author=author)


def _perform(desk: Desk, wanted: Wanted) -> None:
    key, content, recursive = wanted.ref.key, wanted.content or "", wanted.recursive
    if wanted.tool == "write_file":
        desk.put(key, content, _NO_CONDITION)
    elif wanted.tool == "append_file":
        desk.append(key, content, _NO_CONDITION)
    elif wanted.tool == "edit_file":
        desk.edit(key, wanted.edits, _NO_CONDITION)
    elif wanted.tool == "move_file" and wanted.to is not None:
        desk.move(key, wanted.to.key, _NO_CONDITION, recursive=recursive)
    else:
        desk.delete(key, _NO_CONDITION, recursive=recursive)
