"""Projects, as their owners keep them: made, described, given to members, removed."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.bridge.callers import Call, Caller
from app.bridge.content import disk_sweep
from app.bridge.strongroom import Strongroom, uncut
from app.registry import projects
from app.registry.projects import Project
from app.runtime.versions import Match


class NewProject(NamedTuple):
    """A project as its owner says it."""

    slug: str
    name: str
    description: str
    run_context: Mapping[str, Any]


async def add(room: Strongroom, caller: Caller, call: Call, new: NewProject) -> Project:
    """Make a project of the caller's.

    Returns:
        It.

    Raises:
        InvalidNameError: It is no slug.
        NameTakenError: They have one of this slug.
        ConflictError: They have as many as one may.
    """
    context = json.dumps(new.run_context, ensure_ascii=False)
    return await room.stores.registry.write(
        lambda tx: projects.add(tx, caller.user_id, new.slug, new.name, new.description, context),
        caller.actor(call),
        once=call.once,
    )


async def change(  # noqa: PLR0913, PLR0917 - who, which, what, if
    room: Strongroom,
    caller: Caller,
    call: Call,
    project_id: str,
    changes: Mapping[str, Any],
    match: Match,
) -> Project:
    """Change the name, description or run context of one's own project.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none of this id, or the caller is not in it.
        NotPermittedError: It is another's.
        VersionConflictError: Another version stands.
    """
    call = call.judged(lambda reader: projects.require_own(reader, project_id, caller.user_id))
    return await room.stores.registry.write(
        lambda tx: projects.change(tx, project_id, caller.user_id, changes, match),
        caller.actor(call),
        once=call.once,
    )


@uncut
async def remove(
    room: Strongroom, caller: Caller, call: Call, project_id: str, match: Match
) -> None:
    """Take one's own project away for everybody, and then its files.

    Raises:
        NotFoundError: There is none of this id, or the caller is not in it.
        NotPermittedError: It is another's.
        VersionConflictError: Another version stands.
    """
    await room.stores.registry.write(
        lambda tx: projects.remove(tx, project_id, caller.user_id, match),
        caller.actor(call),
        once=call.once,
    )
    room.reach("root.row_removed")
    await disk_sweep.remove_gone(room.settings, room.stores)


async def set_member(  # noqa: PLR0913 - who, which, whom, what
    room: Strongroom, caller: Caller, call: Call, project_id: str, user_id: str, *, can_write: bool
) -> None:
    """Let a member into one's own project, or change what they may, from the next request on.

    Raises:
        NotFoundError: There is no such project, or nobody has this id.
        NotPermittedError: It is another's.
        ConflictError: The owner always writes.
    """
    own = caller.user_id
    call = call.judged(lambda reader: projects.require_both(reader, project_id, own, user_id))
    await room.stores.registry.write(
        lambda tx: projects.set_member(tx, project_id, own, user_id, can_write=can_write),
        caller.actor(call),
        once=call.once,
    )


async def remove_member(
    room: Strongroom, caller: Caller, call: Call, project_id: str, user_id: str
) -> None:
    """Take a member out of one's own project, or oneself out of another's.

    Raises:
        NotFoundError: There is no such project, or they are not in it.
        NotPermittedError: It is another's, and it is about somebody else.
        ConflictError: The owner always is in it.
    """
    await room.stores.registry.write(
        lambda tx: projects.remove_member(tx, project_id, caller.user_id, user_id),
        caller.actor(call),
        once=call.once,
    )
