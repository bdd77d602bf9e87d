"""The versions of notes: history by path, and numbers that never come back.

Every text a note had is kept once, under its path and version. A version is one more than
the largest that its note or its path ever had, so an ETag from before a delete, a move or a
purge matches nothing that comes after.
"""

import hmac
from typing import Final, Literal, NamedTuple

from app.db.owner import statements
from app.db.owner.rows import NoteMetaRow, VersionRow, VersionTextRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError
from app.owner.cursor import END, place_before
from app.owner.folders import span_below
from app.owner.identity import get_identity

VERSIONS_MAX: Final = 200
"""Versions kept at one path."""

APPENDS_MS: Final = 10 * 60 * 1000
"""Appends by one author within so long after the first are one version."""

Via = Literal["put", "append", "edit", "move", "restore", "delete"]


class Origin(NamedTuple):
    """Who makes a version, and how."""

    author: str
    """User id, or `user id/agent id`."""
    via: Via


def list_versions(
    reader: OwnerReader, key: str, before: int | None, limit: int
) -> list[VersionRow]:
    """The versions kept at a path, newest first, deletions included, without their texts.

    Args:
        reader: The store.
        key: The path. A note that was moved left its earlier versions where it stood.
        before: The version that ended the page before; None for the newest.
        limit: Most rows to give.

    Returns:
        The rows; none for a path that never had a note, or was purged.
    """
    return reader.all(statements.LIST_VERSIONS, path=key, before=place_before(before), limit=limit)


def size_of(reader: OwnerReader, key: str, version: int) -> int:
    """Bytes of a version's text; 0 for one that is not kept."""
    try:
        return get_version(reader, key, version).size_bytes
    except NotFoundError:
        return 0


def get_version(reader: OwnerReader, key: str, version: int) -> VersionTextRow:
    """Read one version.

    Returns:
        It, with its text; None there for a deletion.

    Raises:
        NotFoundError: It is not kept, or never was.
    """
    # A number from a URL may be any; one that the store cannot hold names no version.
    found = None
    if 0 < version <= END:
        found = reader.one(statements.FIND_VERSION, path=key, version=version)
    if found is None:
        raise NotFoundError
    return found


def has_versions(reader: OwnerReader, key: str, *, recursive: bool) -> bool:
    """Whether a purge of a path, and with `recursive` of all below it, finds any version."""
    if list_versions(reader, key, None, 1):
        return True
    if not recursive:
        return False
    low = span_below(key).low
    found = reader.one(statements.LIST_VERSIONED_PATHS, after=low, limit=1)
    return found is not None and found.value.startswith(low)


def newest(reader: OwnerReader, key: str) -> int:
    """The number of the newest version kept at a path.

    Returns:
        It.

    Raises:
        NotFoundError: None is.
    """
    rows = list_versions(reader, key, None, 1)
    if not rows:
        raise NotFoundError
    return rows[0].version


def next_version(tx: OwnerTransactor, key: str, own_version: int) -> int:
    """Take the next version at a path; the path remembers it for ever, by a keyed digest.

    Args:
        tx: The store's transaction.
        key: The path.
        own_version: The version of the note that is written; 0 for a new one.

    Returns:
        One more than the largest of both.
    """
    path_key = get_identity(tx).path_key
    digest = hmac.digest(path_key, key.encode(), "sha256")
    [taken] = tx.run(
        statements.TAKE_NEXT_VERSION, path_digest=digest, own_version=own_version, now=tx.now_ms
    )
    return taken.value


def keep_text(tx: OwnerTransactor, note: NoteMetaRow, via: Via) -> None:
    """Keep the text that a note has now."""
    tx.run(statements.ADD_VERSION, path=note.path, via=via)
    _trim(tx, note.path)


def keep_append(tx: OwnerTransactor, note: NoteMetaRow, read_version: int) -> bool:
    """Keep the text after an append, in the row of the one before where they belong together.

    Returns:
        Whether the version before is still kept by itself.
    """
    # The newest row alone is ever extended, so what another author's overwrite or a deletion
    # ended stays as it was.
    extended = tx.run(
        statements.EXTEND_VERSION,
        path=note.path,
        read_version=read_version,
        since=tx.now_ms - APPENDS_MS,
    )
    if not extended:
        keep_text(tx, note, "append")
    return not extended


def keep_removal(tx: OwnerTransactor, note: NoteMetaRow, origin: Origin) -> None:
    """Keep that a note left its path."""
    tx.run(
        statements.ADD_DELETION,
        path=note.path,
        version=next_version(tx, note.path, note.version),
        doc_id=note.id,
        author=origin.author,
        via=origin.via,
        now=tx.now_ms,
    )
    _trim(tx, note.path)


def purge_versions(tx: OwnerTransactor, key: str, *, recursive: bool) -> int:
    """Forget every version kept at a path, and every other of the notes that stood there.

    What such a note left at other paths, where it was before a move, goes as well; only of a
    note that lives elsewhere now the versions at other paths stay.

    Args:
        tx: The store's transaction.
        key: The path.
        recursive: Everything below, too.

    Returns:
        How many versions there were.
    """
    # No path has a control character: the first range holds the key alone.
    spans = [(key, f"{key}\x00")] + ([span_below(key)] if recursive else [])
    count = 0
    for low, high in spans:
        count += len(tx.run(statements.REMOVE_VERSIONS_OF_GONE_NOTES, low=low, high=high))
        count += len(tx.run(statements.REMOVE_VERSIONS, low=low, high=high))
    if count:
        # Removed words stay in the index's older pieces until these are merged. (FTS5's
        # secure-delete would have each write pay for it, four times as much.)
        tx.run(statements.OPTIMIZE_SEARCH_INDEX)
    return count


def _trim(tx: OwnerTransactor, key: str) -> None:
    """Forget what is too much at a path; the present version never goes.

    The last text before a deletion or another author's overwrite goes after all others:
    nobody can wash away what somebody else wrote by writing often.
    """
    [kept] = tx.all(statements.COUNT_VERSIONS, path=key)
    excess = kept.value - VERSIONS_MAX
    if excess <= 0:
        return
    spared = tx.all(statements.LIST_VERSIONS_TO_SPARE, path=key, limit=excess)
    going = [row.value for row in spared]
    if len(going) < excess:
        oldest_first = reversed(list_versions(tx, key, None, kept.value)[1:])
        going += [row.version for row in oldest_first if row.version not in going]
    for version in going[:excess]:
        tx.run(statements.REMOVE_VERSION, path=key, version=version)
