"""What is left of folders on the disk: writes to be done, folders to go, folders of nobody.

Rows go first, and leave word of the folder that is to go; then the folder goes, and the word
last. A folder that no row and no word tells of is never taken away: it may be all that is
left of a registry that was lost.
"""

import json
from functools import partial
from pathlib import Path
from typing import Final

from app import telemetry
from app.bridge.content import disk_desk
from app.bridge.stores import Stores
from app.db import disk_steps, disk_tree
from app.db.context import system_actor
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.stores import StoreError
from app.registry import disk_roots
from app.registry.disk_roots import DiskRoot
from app.settings import Settings

KINDS: Final = (disk_roots.SHARED, disk_roots.PROJECTS)
_ACTOR: Final = system_actor("disk")


async def remove_gone(settings: Settings, stores: Stores) -> None:
    """Take the folders away that were removed."""
    for root in await stores.registry.read(disk_roots.list_removed):
        # Whoever began to write there before its row went has ended by now: its write was a
        # transaction before the one that removed the row.
        path = settings.disk_root(root.kind, root.id)
        await stores.on_thread(partial(disk_steps.remove_root, path))
        forget = partial(disk_roots.forget_removed, root_id=root.id)
        await stores.registry.write(forget, _ACTOR)


async def settle_all(settings: Settings, stores: Stores) -> None:
    """Have all take place that is decided, in every folder; cheap when there is nothing."""
    for root in await stores.registry.read(disk_roots.list_pending_roots):
        path = settings.disk_root(root.kind, root.id)
        async with stores.disk_turn:
            work = partial(disk_desk.settle, path=path, root_id=root.id)
            await stores.registry.write(work, _ACTOR)


async def clear_left_over(settings: Settings, stores: Stores) -> None:
    """Take away what crashes left under the program's own names."""
    count = 0
    for root in await stores.registry.read(disk_roots.list_all):
        count += await _clear_one(settings, stores, root)
    if count:
        telemetry.janitor_repaired("left_over_disk_file", count)


async def _clear_one(settings: Settings, stores: Stores, root: DiskRoot) -> int:
    path = settings.disk_root(root.kind, root.id)

    def look() -> bool:
        try:
            with disk_tree.opened(path) as descriptor:
                return bool(disk_steps.own_names(descriptor))
        except NotFoundError:
            return False

    def clear(tx: RegistryTransactor) -> int:
        # Whoever has the transaction has the turn: nobody stages anything meanwhile.
        needed = {
            json.loads(each.pending)["source"] for each in disk_roots.list_pending(tx, root.id)
        }
        with disk_tree.opened(path) as descriptor:
            return disk_steps.clear_own(descriptor, needed)

    try:
        if not await stores.on_thread(look):
            return 0
        async with stores.disk_turn:
            return await stores.registry.write(clear, _ACTOR)
    except (NotFoundError, StoreError):
        return 0


def strays(settings: Settings, reader: RegistryReader) -> list[str]:
    """Folders on the disk that no row and no removal tells of, as `shared/{id}`."""
    # Folders first: a row is there before its folder.
    found = {
        (kind, name) for kind in KINDS for name in disk_tree.names_in(settings.database / kind)
    }
    known = {(row.kind, row.id) for row in disk_roots.list_all(reader)}
    known |= {(row.kind, row.id) for row in disk_roots.list_removed(reader)}
    return sorted(f"{kind}/{name}" for kind, name in found - known)


def missing(settings: Settings, reader: RegistryReader) -> list[str]:
    """Folders in which texts are by their rows, and that are not on the disk, as `shared/{id}`."""
    written = disk_roots.list_written(reader)
    return [
        f"{row.kind}/{row.id}"
        for row in written
        if not _is_folder(settings.disk_root(row.kind, row.id))
    ]


def _is_folder(path: Path) -> bool:
    try:
        with disk_tree.opened(path):
            return True
    except NotFoundError:
        return False
