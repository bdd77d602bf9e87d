"""Shared folders: the group's folders on the disk, and who is in each."""

import re
import unicodedata
from typing import Final

from app.db.registry import statements as sql
from app.db.registry.rows import JoinedFolderRow, RootMemberRow, SharedFolderRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import NameTakenError, VersionConflictError
from app.errors.inputs import InvalidNameError
from app.ids import NAME_MAX, is_component, name_key
from app.registry import accounts
from app.runtime.versions import Match, require_version

SharedFolder = SharedFolderRow
JoinedFolder = JoinedFolderRow
Member = RootMemberRow
_REFUSED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SEPARATOR: Final = re.compile(r"[/\\]")


def key_of(name: str) -> str:
    """Judge a folder's name.

    Returns:
        The form in which two spellings of it are equal, as paths are compared.

    Raises:
        InvalidNameError: The name could mislead, be hidden, or not be the part of a path.
    """
    if not 1 <= len(name) <= NAME_MAX:
        raise InvalidNameError
    key = name_key(name)
    if (
        name != name.strip()
        or key != key.strip()
        or key.startswith((".", "~"))
        or _SEPARATOR.search(name + key)
        or any(unicodedata.category(character) in _REFUSED for character in name + key)
        or not is_component(key)
    ):
        raise InvalidNameError
    return key


def add(tx: RegistryTransactor, name: str, description: str) -> SharedFolderRow:
    """Make a folder with nobody in it.

    Returns:
        It.

    Raises:
        InvalidNameError: The name could mislead or not be the part of a path.
        NameTakenError: There is one of this name, in this or an equal spelling.
    """
    key = key_of(name)
    _require_free(tx, key)
    folder_id = tx.new_id()
    tx.run(
        sql.ADD_SHARED_FOLDER,
        id=folder_id,
        folder_name=unicodedata.normalize("NFC", name),
        folder_key=key,
        description=description,
        now=tx.now_ms,
    )
    return get(tx, folder_id)


def get(reader: RegistryReader, folder_id: str) -> SharedFolderRow:
    """One folder, whoever is in it.

    Returns:
        Its row.

    Raises:
        NotFoundError: There is none of this id.
    """
    row = reader.one(sql.FIND_SHARED_FOLDER, id=folder_id)
    if row is None:
        raise NotFoundError
    return row


def list_page(reader: RegistryReader, after: str, limit: int) -> list[SharedFolderRow]:
    """Folders in the order of their making, after a given id; `""` is before the first."""
    return reader.all(sql.LIST_SHARED_FOLDERS, after=after, limit=limit)


def list_of(reader: RegistryReader, user_id: str) -> list[JoinedFolderRow]:
    """The folders that a member is in, by name, each with whether they write there."""
    return reader.all(sql.LIST_SHARED_FOLDERS_OF, user_id=user_id)


def change(
    tx: RegistryTransactor, folder_id: str, name: str | None, description: str | None, match: Match
) -> SharedFolderRow:
    """Give a folder another name or description; its files stay where they are.

    Args:
        tx: The registry.
        folder_id: Which.
        name: Another; None leaves it.
        description: Another; None leaves it.
        match: Versions of which one must stand; None for any.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none of this id.
        InvalidNameError: The name could mislead or not be the part of a path.
        NameTakenError: Another has this name.
        VersionConflictError: Another version stands.
    """
    row = get(tx, folder_id)
    require_version(row.version, match)
    key = row.folder_key if name is None else key_of(name)
    if key != row.folder_key:
        _require_free(tx, key)
    changed = row._replace(
        folder_name=row.folder_name if name is None else unicodedata.normalize("NFC", name),
        folder_key=key,
        description=row.description if description is None else description,
    )
    if changed == row:
        return row
    rows = tx.run(
        sql.SET_SHARED_FOLDER,
        id=row.id,
        read_version=row.version,
        folder_name=changed.folder_name,
        folder_key=key,
        description=changed.description,
        now=tx.now_ms,
    )
    if not rows:
        raise VersionConflictError
    return rows[0]


def remove(tx: RegistryTransactor, folder_id: str, match: Match) -> SharedFolderRow:
    """Take a folder away; its files follow.

    Returns:
        What it was.

    Raises:
        NotFoundError: There is none of this id.
        VersionConflictError: Another version stands.
    """
    row = get(tx, folder_id)
    require_version(row.version, match)
    tx.run(sql.REMOVE_SHARED_FOLDER, id=row.id)
    return row


def list_members(
    reader: RegistryReader, folder_id: str, after: str, limit: int
) -> list[RootMemberRow]:
    """Who is in a folder, after a given user's id.

    Returns:
        Their rows, in the order of their ids.

    Raises:
        NotFoundError: There is no such folder.
    """
    get(reader, folder_id)
    return reader.all(sql.LIST_SHARED_FOLDER_MEMBERS, root_id=folder_id, after=after, limit=limit)


def require_both(reader: RegistryReader, folder_id: str, user_id: str) -> None:
    """Refuse to bring together what is not there.

    Raises:
        NotFoundError: There is no such folder, or nobody has this id.
    """
    get(reader, folder_id)
    accounts.get(reader, user_id)


def set_member(tx: RegistryTransactor, folder_id: str, user_id: str, *, can_write: bool) -> None:
    """Let a member into a folder, or change what they may; twice is once.

    Raises:
        NotFoundError: There is no such folder, or nobody has this id.
    """
    require_both(tx, folder_id, user_id)
    tx.run(
        sql.SET_SHARED_FOLDER_MEMBER,
        root_id=folder_id,
        user_id=user_id,
        can_write=int(can_write),
        now=tx.now_ms,
    )


def remove_member(tx: RegistryTransactor, folder_id: str, user_id: str) -> None:
    """Take a member out of a folder.

    Raises:
        NotFoundError: They are not in it.
    """
    if not tx.run(sql.REMOVE_SHARED_FOLDER_MEMBER, root_id=folder_id, user_id=user_id):
        raise NotFoundError


def _require_free(reader: RegistryReader, key: str) -> None:
    if reader.one(sql.FIND_SHARED_FOLDER_BY_KEY, folder_key=key) is not None:
        raise NameTakenError
