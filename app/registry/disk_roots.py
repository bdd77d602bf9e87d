"""Roots on the disk: which folder a path names, for whom, and what is still to be done there."""

import hashlib
from typing import Final, Literal, NamedTuple, cast

from app.db.registry import statements as sql
from app.db.registry.rows import DiskFileRow, DiskRootRow, JoinedRootRow, PendingFileRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.registry import accounts

Action = Literal["put", "append", "edit", "move", "delete"]
Kind = Literal["shared", "projects"]
LastWrite = DiskFileRow
Pending = PendingFileRow
DiskRoot = DiskRootRow
SHARED: Final[Kind] = "shared"
PROJECTS: Final[Kind] = "projects"
_PARTS: Final = {"shared": 1, "projects": 2}


class Root(NamedTuple):
    """One folder on the disk, for somebody who is in it."""

    id: str
    kind: Kind
    place: str
    """As its paths begin, canonical: `shared/{folder}` or `projects/{owner}/{slug}`."""
    owner_user_id: str | None
    """Whose quota it counts in; None: nobody's, it is the group's."""
    can_write: bool


def get(reader: RegistryReader, place: str, user_id: str) -> Root:
    """Find the folder that a path names, for somebody who is in it.

    Args:
        reader: The registry.
        place: `shared/{folder}` or `projects/{owner}/{slug}`, the names folded.
        user_id: Who asks.

    Returns:
        It.

    Raises:
        NotFoundError: There is none, or they are not in it.
    """
    kind, *keys = place.split("/")
    row: JoinedRootRow | None = None
    if len(keys) == _PARTS.get(kind):
        if kind == SHARED:
            row = reader.one(sql.FIND_SHARED_ROOT, folder_key=keys[0], user_id=user_id)
        else:
            row = reader.one(
                sql.FIND_PROJECT_ROOT, owner_key=keys[0], slug=keys[1], user_id=user_id
            )
    if row is None:
        raise NotFoundError
    return Root(
        row.id,
        cast("Kind", row.kind),
        f"{row.kind}/{row.place}",
        row.owner_user_id,
        bool(row.can_write),
    )


def require_writable(reader: RegistryReader, place: str, user_id: str) -> Root:
    """Find the folder that a path names, for somebody who writes there.

    Returns:
        It.

    Raises:
        NotFoundError: There is none, or they are not in it.
        NotPermittedError: They only read there.
    """
    root = get(reader, place, user_id)
    if not root.can_write:
        raise NotPermittedError
    return root


def list_places(reader: RegistryReader, user_id: str, kind: str) -> list[str]:
    """Where each folder of a kind lies that somebody is in, canonical, in order."""
    if kind == SHARED:
        folders = reader.all(sql.LIST_SHARED_FOLDERS_OF, user_id=user_id)
        return [f"{SHARED}/{row.folder_key}" for row in folders]
    projects = reader.all(sql.LIST_PROJECTS, user_id=user_id, after="", limit=-1)
    return sorted(f"{PROJECTS}/{row.owner_key}/{row.slug}" for row in projects)


def find_last_write(reader: RegistryReader, root_id: str, key: str) -> LastWrite | None:
    """The last write to a path; None when it was never written through the service."""
    return reader.one(sql.FIND_DISK_FILE, root_id=root_id, path_digest=_digest(root_id, key))


def record(  # noqa: PLR0913 - one row's facts
    tx: RegistryTransactor,
    root_id: str,
    key: str,
    action: Action,
    author: str,
    *,
    size_bytes: int | None = None,
    content_version: int | None = None,
    pending: str | None = None,
) -> None:
    """Put a write on record, and what of it is to be done on the disk once that is committed.

    Args:
        tx: The registry.
        root_id: The folder.
        key: The path inside it; only its digest is kept.
        action: What was done.
        author: User id, or `user id/agent id`.
        size_bytes: Of the text that stands there now; None when none does.
        content_version: Digest of that text.
        pending: JSON, for whoever settles the folder next; None when nothing is to be done.
    """
    tx.run(
        sql.SET_DISK_FILE,
        root_id=root_id,
        path_digest=_digest(root_id, key),
        action=action,
        size_bytes=size_bytes,
        content_version=content_version,
        author=author,
        pending=pending,
        now=tx.now_ms,
    )


def list_pending(reader: RegistryReader, root_id: str) -> list[Pending]:
    """What is decided of a folder's writes, and not yet known to be done."""
    return reader.all(sql.LIST_PENDING_DISK_FILES, root_id=root_id)


def list_pending_roots(reader: RegistryReader) -> list[DiskRoot]:
    """Folders of which something is decided and not yet known to be done."""
    return reader.all(sql.LIST_PENDING_ROOTS)


def settle(tx: RegistryTransactor, pending: Pending, *, is_done: bool) -> None:
    """Put on record that a write is done, or that it cannot be, for the folder was changed."""
    statement = sql.SETTLE_DISK_FILE if is_done else sql.ABANDON_DISK_FILE
    more = {} if is_done else {"now": tx.now_ms}
    tx.run(statement, root_id=pending.root_id, path_digest=pending.path_digest, **more)


def quota_of(reader: RegistryReader, user_id: str) -> tuple[int | None, int]:
    """A member's quota, and how much of it their projects take up.

    Returns:
        Bytes, both; None: no limit.
    """
    account = accounts.get(reader, user_id)
    used = reader.one(sql.SUM_PROJECT_BYTES, owner_user_id=user_id)
    return account.quota_bytes, 0 if used is None else used.value


def shared_bytes(reader: RegistryReader) -> int:
    """Bytes of all files in shared folders, as far as they were written through the service."""
    used = reader.one(sql.SUM_SHARED_BYTES)
    return 0 if used is None else used.value


def list_all(reader: RegistryReader) -> list[DiskRoot]:
    """Every folder that there is."""
    return reader.all(sql.LIST_DISK_ROOTS)


def list_written(reader: RegistryReader) -> list[DiskRoot]:
    """Folders in which a text stands, as far as they were written through the service."""
    return reader.all(sql.LIST_WRITTEN_ROOTS)


def list_removed(reader: RegistryReader) -> list[DiskRoot]:
    """Folders that were removed, and may still be on the disk."""
    return reader.all(sql.LIST_REMOVED_ROOTS)


def forget_removed(tx: RegistryTransactor, root_id: str) -> None:
    """Nothing of a removed folder is on the disk any more."""
    tx.run(sql.FORGET_REMOVED_ROOT, id=root_id)


def _digest(root_id: str, key: str) -> str:
    # What was put there beside the service may have a name that is not UTF-8.
    told = f"{root_id}/{key}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(told).hexdigest()
