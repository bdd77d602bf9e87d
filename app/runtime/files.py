"""The rows of files beside a store: which there are, their keys, and which nobody needs.

How many fields hold a file is counted by triggers on each table with such a field. A file
that none holds is taken away after the grace time: its row first, then its bytes.
"""

import hmac
from dataclasses import dataclass
from typing import Final

from app.db.runtime import statements as sql
from app.db.runtime.rows import FileNameRow, FileRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.stores import FileDamagedError, StoreDamagedError

_CONTENT_KEY: Final = "file_content"
File = FileRow
"""One file: its name on the disk, its key, its size."""


@dataclass(frozen=True, slots=True, repr=False)
class NewFile:
    """Bytes that are on the disk, and have no row yet."""

    name: str
    key: bytes
    digest: bytes
    size_bytes: int


def content_digest(reader: RuntimeReader) -> "hmac.HMAC":
    """A digest of content to be filled: HMAC-SHA-256 under a random key of this store.

    So equal content is told inside one store, and nowhere else.

    Returns:
        It, empty.

    Raises:
        StoreDamagedError: The store has lost its keys.
    """
    row = reader.one(sql.FIND_STORE_KEY, name=_CONTENT_KEY)
    if row is None:
        raise StoreDamagedError
    return hmac.new(row.value, digestmod="sha256")


def keep(tx: RuntimeTransactor, new: NewFile) -> FileRow:
    """Have the row of a content; it is there once, however often it came.

    Args:
        tx: The store's transaction, in which a field takes hold of the file as well.
        new: What came.

    Returns:
        The row; with another name than the new file's when the content was there already.
    """
    present = tx.one(sql.FIND_FILE_OF_DIGEST, digest=new.digest)
    if present is not None:
        return present
    [row] = tx.run(
        sql.ADD_FILE,
        id=tx.new_id(),
        name=new.name,
        file_key=new.key,
        file_digest=new.digest,
        size_bytes=new.size_bytes,
        now=tx.now_ms,
    )
    return row


def get(reader: RuntimeReader, file_id: str) -> FileRow:
    """The row of a file that a field holds.

    Returns:
        The row.

    Raises:
        FileDamagedError: There is none.
    """
    row = reader.one(sql.FIND_FILE, id=file_id)
    if row is None:
        raise FileDamagedError
    return row


def remove_unreferenced(tx: RuntimeTransactor, grace_ms: int, limit: int) -> list[FileNameRow]:
    """Forget files that nobody has held for the grace time.

    Returns:
        Their names, whose bytes are to go when this is committed; at most `limit`.
    """
    return tx.run(sql.REMOVE_UNREFERENCED_FILES, before=tx.now_ms - grace_ms, limit=limit)


def list_all(reader: RuntimeReader) -> dict[str, int]:
    """Every file that should be on the disk: name to bytes of content."""
    return dict(reader.all(sql.LIST_FILES))
