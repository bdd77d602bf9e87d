"""Lists of blobs: all of a store's, or what hangs on one note or report."""

from dataclasses import dataclass
from typing import Final

from app.db.owner import statements
from app.db.owner.rows import BlobRow
from app.db.owner.store import OwnerReader
from app.errors.callers import NotFoundError
from app.ids import NoteId
from app.owner.blobs import May, may_see, require_report

_BATCH: Final = 200


def doc_of(reader: OwnerReader, key: str) -> NoteId:
    """The note at a path, or the last that stood there and was deleted.

    Returns:
        Its id.

    Raises:
        NotFoundError: There is none.
    """
    found = reader.one(statements.FIND_DOC_OF_PATH, path=key)
    if found is None or found.value is None:
        raise NotFoundError
    return NoteId(found.value)


@dataclass(frozen=True, slots=True)
class Which:
    """Which blobs to list: all, or those of one note or report."""

    note_key: str | None = None
    report_id: str | None = None


def list_page(  # noqa: PLR0913 - which, from where, how many, for whom
    reader: OwnerReader,
    which: Which,
    after: str,
    limit: int,
    may: May,
    *,
    on_notes: bool = True,
) -> list[BlobRow]:
    """Blobs in the order of their ids.

    Args:
        reader: The store.
        which: Those to list.
        after: The id that ended the page before; empty for the first.
        limit: Most of them.
        may: Whether the caller may read a report; what hangs on others leaves no trace.
        on_notes: Whether those that hang on no report are listed.

    Returns:
        The rows.

    Raises:
        NotFoundError: There is no such note or report for this caller.
    """
    statement = statements.LIST_BLOBS
    params: dict[str, str] = {}
    if which.note_key is not None:
        statement = statements.LIST_BLOBS_OF_NOTE
        params = {"doc_id": doc_of(reader, which.note_key)}
    if which.report_id is not None:
        statement = statements.LIST_BLOBS_OF_REPORT
        params = {"report_id": require_report(reader, which.report_id, may)}
    items: list[BlobRow] = []
    while rows := reader.all(statement, after=after, limit=_BATCH, **params):
        for row in rows:
            after = row.id
            if (on_notes or row.report_id) and may_see(reader, row, may):
                items.append(row)
                if len(items) == limit:
                    return items
    return items
