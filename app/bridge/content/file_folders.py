"""Folders of files beside the stores, compared with who there is and with the stores' rows."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from app import telemetry
from app.bridge import layout
from app.bridge.strongroom import Strongroom
from app.db import blobs as disk
from app.db.context import Actor
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.ids import UserId, is_uuid
from app.owner import blobs
from app.runtime import files
from app.settings import Settings

SWEEP_BATCH: Final = 500
"""Rows that one call of `sweep` removes at most."""
_HOUR_MS: Final = 3_600_000


def owners(settings: Settings) -> set[UserId]:
    """Members whose folder is there, whether or not they are."""
    try:
        names = [path.name for path in settings.files_root.iterdir()]
    except FileNotFoundError:
        return set()
    return {UserId(name) for name in names if is_uuid(name)}


def unlike_rows(folder: Path, rows: dict[str, int]) -> int:
    """How many files that rows name are missing, or not as long as their row says.

    Args:
        folder: Of one store's files.
        rows: Name to bytes of content.

    Returns:
        The count; what has no row is no fault, for the sweep takes it.
    """
    found = {each.name: each.size_bytes for each in disk.list_folder(folder) if not each.is_new}
    return sum(found.get(name) != disk.sealed_size(size) for name, size in rows.items())


def remove_left_over(settings: Settings, known: Collection[str], before_ms: int) -> int:
    """Take away what was never finished; nothing else can tell whether a row needs it.

    Args:
        settings: Where.
        known: Who there is, or is about to be.
        before_ms: Unix milliseconds; what is younger may be under way.

    Returns:
        How many files went.
    """
    count = 0
    for owner_id in [layout.GROUP, *owners(settings)]:
        folder = settings.files_folder(owner_id)
        found = disk.list_folder(folder)
        old = [each.name for each in found if each.is_new and each.changed_at <= before_ms]
        disk.remove_new(folder, old)
        count += len(old)
        if owner_id not in known and len(old) == len(found):
            disk.remove_empty(folder)
    return count


async def sweep(
    room: Strongroom, owner_id: UserId, store: OwnerStore, actor: Actor, limit: int = SWEEP_BATCH
) -> int:
    """Take away the bytes that nobody needs beside one store; for housekeeping.

    One call is one batch: rows that nothing has held for the grace time go first, in one
    transaction, and then their files. Once there are none the folder is compared with the
    rows: what has no row, or was never finished, goes when it is older than the grace time;
    a row without its file is told to the operator.

    Args:
        room: The service.
        owner_id: Whose store; `layout.GROUP` for the group's.
        store: It, open.
        actor: Who does it.
        limit: Most rows of one call.

    Returns:
        How many files were taken away; as many as `limit` when there may be more.
    """
    grace_ms = room.settings.file_grace_hours * _HOUR_MS
    folder = room.settings.files_folder(owner_id)

    def forget(tx: OwnerTransactor) -> list[str]:
        blobs.remove_forgotten(tx)
        return [row.name for row in files.remove_unreferenced(tx, grace_ms, limit)]

    names = await store.write(forget, actor, is_watch=True)
    room.reach("sweep.rows_removed")
    if names:
        await room.stores.on_thread(lambda: disk.remove(folder, names))
    if len(names) == limit:
        return limit
    return len(names) + await _compare(room, folder, store, grace_ms)


async def _compare(room: Strongroom, folder: Path, store: OwnerStore, grace_ms: int) -> int:
    """Files without rows, rows without files."""
    # Files first: one that is made meanwhile is too young to go.
    found = await room.stores.on_thread(lambda: disk.list_folder(folder))
    rows = await store.watch(files.list_all)
    before = room.clock() - grace_ms
    old = [each for each in found if each.changed_at <= before]
    new = [each.name for each in old if each.is_new]
    lost = [each.name for each in old if not each.is_new and each.name not in rows]

    def unlink() -> None:
        disk.remove_new(folder, new)
        disk.remove(folder, lost)

    await room.stores.on_thread(unlink)
    if new or lost:
        telemetry.janitor_repaired("file_without_row", len(new) + len(lost))
    present = {each.name for each in found if not each.is_new}
    missing = sum(not (folder / name).exists() for name in rows.keys() - present)
    if missing:
        telemetry.janitor_found("row_without_file", missing)
    return len(new) + len(lost)
