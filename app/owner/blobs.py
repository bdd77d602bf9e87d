"""Blobs: bytes of any kind under an id that their maker chose, alone or hung on a note or report.

A blob's bytes never change: the same again is the same, and anything else under its id is
refused. Its name and its place are each said once, with the bytes or later.
What hangs on a note stays while the note or any version of it does; what hangs on a report
goes with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.db.owner import statements
from app.db.owner.rows import BlobRow, ReportRightsRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import AlreadyExistsError, BlobDiffersError, VersionConflictError
from app.errors.inputs import InvalidInputError
from app.errors.stores import StoreBusyError
from app.ids import ReportId, is_uuid
from app.owner.text import measure
from app.runtime import files
from app.runtime.files import File, NewFile

Blob = BlobRow
"""One blob without its bytes."""

May = Callable[[ReportRightsRow], bool]
"""Whether the caller may read a report, and with it what hangs on it."""

_TAG_CHARS: Final = 32
_NOWHERE: Final = (None, None)
"""The place of a blob that hangs on nothing."""


@dataclass(frozen=True, slots=True)
class NewBlob:
    """A blob as its maker describes it."""

    id: str
    """A UUID."""
    media_type: str
    name: str | None = None
    """As a person would call it."""
    note_key: str | None = None
    """The path, inside its root, of the note that it hangs on."""
    report_id: str | None = None
    """The report that it hangs on."""


@dataclass(frozen=True, slots=True)
class Placing:
    """What a blob that is there is to be called and to hang on."""

    name: str | None = None
    """As a person would call it; None to leave that as it is."""
    note_key: str | None = None
    """The path, inside its root, of the note; None with no report: to leave that as it is."""
    report_id: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes that came for a blob."""

    digest: bytes
    """Keyed by the store."""
    size_bytes: int
    file: NewFile | None
    """Where they lie; None when they were only compared with those that are there."""


@dataclass(frozen=True, slots=True)
class BlobCondition:
    """What a caller requires of the blob that stands; nothing by default."""

    match: frozenset[str] | None = None
    """`If-Match` with tags: one of these must stand. None for any or none."""
    must_exist: bool = False
    """`If-Match: *`."""
    must_not_exist: bool = False
    """`If-None-Match: *`."""

    def require(self, present: BlobRow | None, *, is_told: bool = True) -> None:
        """Judge what stands.

        Args:
            present: It.
            is_told: Whether its tag may be told: it tells the same bytes elsewhere.

        Raises:
            AlreadyExistsError: There is a blob and must be none.
            VersionConflictError: There is none and must be one, or it is another.
        """
        told = tag_of(present) if present is not None and is_told else None
        if present is None:
            holds = self.match is None and not self.must_exist
        elif self.must_not_exist:
            raise AlreadyExistsError(told)
        else:
            holds = self.match is None or tag_of(present) in self.match
        if not holds:
            raise VersionConflictError(told)


class Put(NamedTuple):
    """The outcome of a put."""

    blob: BlobRow
    file_name: str
    """Of the file that holds its bytes; not the new one's when the store had them already."""
    created: bool


def tag_of(blob: BlobRow) -> str:
    """What its ETag says: 32 hex digits, the same for the same bytes in the same store."""
    return blob.digest.hex()[:_TAG_CHARS]


def may_all(_report: ReportRightsRow) -> bool:
    """In a member's own store: whoever has it may read all that is in it."""
    return True


def find(reader: OwnerReader, blob_id: str, may: May) -> BlobRow | None:
    """A blob; None when there is none, the id is no id, or it hangs on a closed report."""
    row = reader.one(statements.FIND_BLOB, id=blob_id) if is_uuid(blob_id) else None
    return row if row is not None and may_see(reader, row, may) else None


def get(reader: OwnerReader, blob_id: str, may: May) -> tuple[BlobRow, File]:
    """A blob and the file that holds its bytes.

    Returns:
        Both rows.

    Raises:
        NotFoundError: There is none for this caller.
    """
    row = find(reader, blob_id, may)
    if row is None:
        raise NotFoundError
    return row, files.get(reader, row.file_id)


def put(  # noqa: PLR0913, PLR0917 - the write's six facts, all of the caller's
    tx: OwnerTransactor,
    new: NewBlob,
    content: Content,
    author: str,
    may: May,
    condition: BlobCondition,
) -> Put:
    """Make a blob of bytes that are on the disk; the same again changes nothing.

    Args:
        tx: The store's transaction.
        new: What it is.
        content: Its bytes.
        author: User id, or `user id/agent id`.
        may: Whether the caller may read a report.
        condition: What must stand.

    Returns:
        The blob as it stands.

    Raises:
        NotFoundError: There is no such note or report for this caller.
        BlobDiffersError: Another blob stands under the id.
        AlreadyExistsError: The condition does not hold.
        VersionConflictError: The condition does not hold.
    """
    measure(new.media_type)
    doc_id, report_id = _place_of(tx, new, may)
    # Also one that hangs on a report closed to the caller, of which nothing more is told.
    present = tx.one(statements.FIND_BLOB, id=new.id)
    is_told = present is not None and may_see(tx, present, may)
    condition.require(present, is_told=is_told)
    if present is not None:
        said = (new.media_type, new.name, doc_id, report_id, content.digest)
        if said != (
            present.media_type,
            present.name,
            present.doc_id,
            present.report_id,
            present.digest,
        ):
            raise BlobDiffersError
        return Put(present, files.get(tx, present.file_id).name, created=False)
    if content.file is None:
        # It was there when its bytes were compared, and has been taken away since.
        raise StoreBusyError
    file = files.keep(tx, content.file)
    tx.run(
        statements.ADD_BLOB,
        id=new.id,
        file_id=file.id,
        name=new.name,
        media_type=new.media_type,
        doc_id=doc_id,
        report_id=report_id,
        author=author,
        now=tx.now_ms,
    )
    made = tx.one(statements.FIND_BLOB, id=new.id)
    if made is None:
        raise NotFoundError
    return Put(made, file.name, created=True)


def place(  # noqa: PLR0913, PLR0917 - the write's six facts, all of the caller's
    tx: OwnerTransactor,
    blob_id: str,
    placing: Placing,
    may: May,
    allow: Callable[[BlobRow], None],
    condition: BlobCondition,
) -> BlobRow:
    """Name a blob that has no name, and hang one up that hangs on nothing; again is no change.

    Args:
        tx: The store's transaction.
        blob_id: Which.
        placing: What it is to be called and to hang on.
        may: Whether the caller may read a report.
        allow: Refuses a caller who may read the blob and not place it.
        condition: What must stand.

    Returns:
        The blob as it stands.

    Raises:
        NotFoundError: There is no such blob, note or report for this caller.
        BlobDiffersError: It has another name already, or hangs on something else.
        VersionConflictError: The condition does not hold.
    """
    present = find(tx, blob_id, may)
    if present is None:
        raise NotFoundError
    allow(present)
    condition.require(present)
    at, place = (present.doc_id, present.report_id), _place_of(tx, placing, may)
    name = present.name if placing.name is None else placing.name
    if place == _NOWHERE:
        place = at
    if present.name not in {None, name} or at not in {_NOWHERE, place}:
        raise BlobDiffersError
    if (name, place) == (present.name, at):
        return present
    doc_id, report_id = place
    tx.run(statements.PLACE_BLOB, id=present.id, name=name, doc_id=doc_id, report_id=report_id)
    return get(tx, present.id, may)[0]


def _place_of(
    reader: OwnerReader, new: NewBlob | Placing, may: May
) -> tuple[str | None, ReportId | None]:
    """The note or report that a blob is to hang on."""
    measure(new.name or "")
    if new.report_id is not None:
        return None, require_report(reader, new.report_id, may)
    if new.note_key is None:
        return _NOWHERE
    note = reader.one(statements.FIND_NOTE_META, path=new.note_key)
    if note is None:
        raise NotFoundError
    return note.id, None


def require_new(new: NewBlob) -> None:
    """Refuse what no blob can be.

    Raises:
        NotFoundError: The id is no UUID, so there can be nothing of this name.
        InvalidInputError: It would hang on two things.
    """
    if not is_uuid(new.id):
        raise NotFoundError
    if new.note_key is not None and new.report_id is not None:
        raise InvalidInputError


def require_report(reader: OwnerReader, report_id: str, may: May) -> ReportId:
    """Refuse a report that the caller may not read.

    Returns:
        Its id.

    Raises:
        NotFoundError: There is none for this caller.
    """
    rights = None
    if is_uuid(report_id):
        rights = reader.one(statements.FIND_REPORT_RIGHTS, id=report_id)
    if rights is None or not may(rights):
        raise NotFoundError
    return ReportId(report_id)


def remove(
    tx: OwnerTransactor,
    blob_id: str,
    may: May,
    allow: Callable[[BlobRow], None],
    condition: BlobCondition,
) -> None:
    """Take a blob away; its bytes go after the grace time, unless another holds them.

    Args:
        tx: The store's transaction.
        blob_id: Which.
        may: Whether the caller may read a report.
        allow: Refuses a caller who may read the blob and not remove it.
        condition: What must stand.

    Raises:
        NotFoundError: There is none for this caller.
        VersionConflictError: The condition does not hold.
    """
    row = find(tx, blob_id, may)
    if row is None:
        raise NotFoundError
    allow(row)
    condition.require(row)
    tx.run(statements.REMOVE_BLOB, id=row.id)


def remove_forgotten(tx: OwnerTransactor) -> int:
    """Take away what hangs on notes that are gone with every version; how many there were."""
    return len(tx.run(statements.REMOVE_BLOBS_OF_FORGOTTEN_NOTES))


def may_see(reader: OwnerReader, row: BlobRow, may: May) -> bool:
    """Whether the caller may see a blob: what hangs on a report as the report itself."""
    if row.report_id is None:
        return True
    rights = reader.one(statements.FIND_REPORT_RIGHTS, id=row.report_id)
    return rights is not None and may(rights)
