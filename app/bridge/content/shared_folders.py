"""Shared folders, as administrators keep them: made, named, given to members, removed."""

from app.bridge.callers import Call, Caller
from app.bridge.content import disk_sweep
from app.bridge.strongroom import Strongroom, uncut
from app.registry import shared_folders
from app.registry.shared_folders import SharedFolder
from app.runtime.versions import Match


async def add(
    room: Strongroom, caller: Caller, call: Call, name: str, description: str
) -> SharedFolder:
    """Make a folder with nobody in it.

    Returns:
        It.

    Raises:
        InvalidNameError: The name could mislead or not be the part of a path.
        NameTakenError: There is one of this name.
    """
    return await room.stores.registry.write(
        lambda tx: shared_folders.add(tx, name, description), caller.actor(call), once=call.once
    )


async def change(  # noqa: PLR0913, PLR0917 - who, which, what, if
    room: Strongroom,
    caller: Caller,
    call: Call,
    folder_id: str,
    name: str | None,
    description: str | None,
    match: Match,
) -> SharedFolder:
    """Give a folder another name or description; its files stay where they are.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none of this id.
        InvalidNameError: The name could mislead or not be the part of a path.
        NameTakenError: Another has this name.
        VersionConflictError: Another version stands.
    """
    return await room.stores.registry.write(
        lambda tx: shared_folders.change(tx, folder_id, name, description, match),
        caller.actor(call),
        once=call.once,
    )


@uncut
async def remove(
    room: Strongroom, caller: Caller, call: Call, folder_id: str, match: Match
) -> None:
    """Take a folder away for everybody, and then its files.

    Raises:
        NotFoundError: There is none of this id.
        VersionConflictError: Another version stands.
    """
    await room.stores.registry.write(
        lambda tx: shared_folders.remove(tx, folder_id, match),
        caller.actor(call),
        once=call.once,
    )
    room.reach("root.row_removed")
    await disk_sweep.remove_gone(room.settings, room.stores)


async def set_member(  # noqa: PLR0913 - who, which, whom, what
    room: Strongroom, caller: Caller, call: Call, folder_id: str, user_id: str, *, can_write: bool
) -> None:
    """Let a member into a folder, or change what they may, from the next request on.

    Raises:
        NotFoundError: There is no such folder, or nobody has this id.
    """
    call = call.judged(lambda reader: shared_folders.require_both(reader, folder_id, user_id))
    await room.stores.registry.write(
        lambda tx: shared_folders.set_member(tx, folder_id, user_id, can_write=can_write),
        caller.actor(call),
        once=call.once,
    )


async def remove_member(
    room: Strongroom, caller: Caller, call: Call, folder_id: str, user_id: str
) -> None:
    """Take a member out of a folder, from the next request on.

    Raises:
        NotFoundError: They are not in it.
    """
    await room.stores.registry.write(
        lambda tx: shared_folders.remove_member(tx, folder_id, user_id),
        caller.actor(call),
        once=call.once,
    )
