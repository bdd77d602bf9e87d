"""Projects: a member's folders on the disk, and who is in each; the owner always is."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from app.db.registry import statements as sql
from app.db.registry.rows import ProjectRow, RootMemberRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.conflicts import ConflictError, NameTakenError, VersionConflictError
from app.errors.inputs import InvalidNameError, InvalidUsernameError
from app.ids import UserId, is_component
from app.registry import accounts
from app.runtime.versions import Match, require_version

Project = ProjectRow
Member = RootMemberRow
PROJECTS_MAX: Final = 1_000
"""Projects that one member makes at most."""
ALL: Final = -1
"""As a limit: however many there are."""
_SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


def add(  # noqa: PLR0913, PLR0917 - one row's facts
    tx: RegistryTransactor, owner: UserId, slug: str, name: str, description: str, context: str
) -> ProjectRow:
    """Make a project of a member's, with its owner in it.

    Args:
        tx: The registry.
        owner: Whose.
        slug: Lower-case letters, digits and dashes, 64 at most; it never changes.
        name: For people.
        description: For people and agents.
        context: JSON, for agents' runs.

    Returns:
        It.

    Raises:
        InvalidNameError: It is no slug.
        InvalidUsernameError: The owner has a name that no path can hold.
        NameTakenError: The member has one of this slug.
        ConflictError: The member has as many as one may.
    """
    if not _SLUG.fullmatch(slug):
        raise InvalidNameError
    if not is_component(accounts.username_key(accounts.get(tx, owner).username)):
        # A name from before that was required: no path would lead to the project.
        raise InvalidUsernameError
    taken = tx.one(sql.IS_SLUG_TAKEN, owner_user_id=owner, slug=slug)
    if taken is not None and taken.value:
        raise NameTakenError
    count = tx.one(sql.COUNT_PROJECTS, owner_user_id=owner)
    if count is not None and count.value >= PROJECTS_MAX:
        raise ConflictError
    project_id = tx.new_id()
    tx.run(
        sql.ADD_PROJECT,
        id=project_id,
        owner_user_id=owner,
        name=name,
        slug=slug,
        description=description,
        run_context=context,
        now=tx.now_ms,
    )
    _set_member(tx, project_id, owner, can_write=True)
    return get(tx, project_id, owner)


def get(reader: RegistryReader, project_id: str, user_id: str) -> ProjectRow:
    """One project, for somebody who is in it.

    Returns:
        Its row.

    Raises:
        NotFoundError: There is none of this id, or they are not in it.
    """
    row = reader.one(sql.FIND_PROJECT, id=project_id, user_id=user_id)
    if row is None:
        raise NotFoundError
    return row


def require_own(reader: RegistryReader, project_id: str, user_id: str) -> ProjectRow:
    """Refuse whoever is not a project's owner.

    Returns:
        Its row.

    Raises:
        NotFoundError: There is none of this id, or they are not in it.
        NotPermittedError: They are in it, and it is another's.
    """
    row = get(reader, project_id, user_id)
    if row.owner_user_id != user_id:
        raise NotPermittedError
    return row


def list_of(
    reader: RegistryReader, user_id: str, after: str = "", limit: int = ALL
) -> list[ProjectRow]:
    """The projects that a member is in, after a given id; `""` is before the first."""
    return reader.all(sql.LIST_PROJECTS, user_id=user_id, after=after, limit=limit)


def change(
    tx: RegistryTransactor,
    project_id: str,
    user_id: UserId,
    changes: Mapping[str, Any],
    match: Match,
) -> ProjectRow:
    """Change what a project's owner may set.

    Args:
        tx: The registry.
        project_id: Which.
        user_id: Who.
        changes: Any of `name`, `description` and `run_context`, the last as an object.
        match: Versions of which one must stand; None for any.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none of this id, or they are not in it.
        NotPermittedError: It is another's.
        VersionConflictError: Another version stands.
    """
    row = require_own(tx, project_id, user_id)
    require_version(row.version, match)
    values = dict(changes)
    if "run_context" in values:
        values["run_context"] = json.dumps(values["run_context"], ensure_ascii=False)
    changed = row._replace(**values)
    if changed == row:
        return row
    rows = tx.run(
        sql.SET_PROJECT,
        id=row.id,
        read_version=row.version,
        name=changed.name,
        description=changed.description,
        run_context=changed.run_context,
        now=tx.now_ms,
    )
    if not rows:
        raise VersionConflictError
    return get(tx, project_id, user_id)


def remove(tx: RegistryTransactor, project_id: str, user_id: UserId, match: Match) -> None:
    """Take a project away, for its owner; its files follow.

    Raises:
        NotFoundError: There is none of this id, or they are not in it.
        NotPermittedError: It is another's.
        VersionConflictError: Another version stands.
    """
    row = require_own(tx, project_id, user_id)
    require_version(row.version, match)
    tx.run(sql.REMOVE_PROJECT, id=row.id)


def list_members(
    reader: RegistryReader, project_id: str, user_id: str, after: str, limit: int
) -> list[RootMemberRow]:
    """Who is in a project, after a given user's id, for somebody who is in it.

    Returns:
        Their rows, in the order of their ids.

    Raises:
        NotFoundError: There is none of this id, or they are not in it.
    """
    get(reader, project_id, user_id)
    return reader.all(sql.LIST_PROJECT_MEMBERS, root_id=project_id, after=after, limit=limit)


def require_both(reader: RegistryReader, project_id: str, owner: UserId, user_id: str) -> None:
    """Refuse to bring together what is not there, or not the owner's to bring together.

    Raises:
        NotFoundError: There is no such project, or nobody has this id.
        NotPermittedError: It is another's.
    """
    require_own(reader, project_id, owner)
    accounts.get(reader, user_id)


def set_member(
    tx: RegistryTransactor, project_id: str, owner: UserId, user_id: str, *, can_write: bool
) -> None:
    """Let a member into one's project, or change what they may; twice is once.

    Raises:
        NotFoundError: There is no such project, or nobody has this id.
        NotPermittedError: It is another's.
        ConflictError: The owner always writes.
    """
    require_both(tx, project_id, owner, user_id)
    if user_id == owner and not can_write:
        raise ConflictError
    _set_member(tx, project_id, user_id, can_write=can_write)


def remove_member(tx: RegistryTransactor, project_id: str, caller: UserId, user_id: str) -> None:
    """Take a member out of a project: its owner anybody, whoever is in it themselves.

    Raises:
        NotFoundError: There is no such project, or they are not in it.
        NotPermittedError: It is another's, and it is about somebody else.
        ConflictError: The owner always is in it.
    """
    row = get(tx, project_id, caller) if user_id == caller else require_own(tx, project_id, caller)
    if user_id == row.owner_user_id:
        raise ConflictError
    if not tx.run(sql.REMOVE_PROJECT_MEMBER, root_id=project_id, user_id=user_id):
        raise NotFoundError


def _set_member(tx: RegistryTransactor, project_id: str, user_id: str, *, can_write: bool) -> None:
    tx.run(
        sql.SET_PROJECT_MEMBER,
        root_id=project_id,
        user_id=user_id,
        can_write=int(can_write),
        now=tx.now_ms,
    )
