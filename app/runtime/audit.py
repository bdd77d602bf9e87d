"""The record of changes: each row holds a digest of its fields and of the row before it.

The generated triggers write it. Here its fields are let go, its oldest rows removed, and
the whole chain is checked. Whoever can write the file can write a chain as well: what the
check finds for certain is an edit of what stood before a head that was kept elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from app.clock import Millis
from app.db import functions
from app.db.runtime import statements as sql
from app.db.runtime.record_rows import AuditChainRow, AuditListRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.inputs import InvalidInputError

Change = AuditListRow
"""One recorded change."""
Fault = Literal["gap", "row", "fields", "end", "head"]
"""`gap`: rows are missing, or in another order. `row`: its hash is another. `fields`: they are
not those that were recorded. `end`: the last rows are missing. `head`: no row has the hash
that was kept."""

_BATCH: Final = 500
_LAST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain."""

    seq: int
    row_hash: bytes
    """SHA-256; on it the next row's builds."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found."""

    rows: int
    """How many were checked."""
    erased: int
    """Of these, rows whose fields went as they were meant to."""
    unchained: int
    """Rows from before the chain began, of which nothing can be said."""
    removed: int
    """Rows that went with the oldest part; their last one's hash is kept."""
    head: Head | None
    """The last row that holds; None when there is none."""
    bad_seq: int | None
    """The first row that does not hold; None when all do."""
    fault: Fault | None
    """Why; None when all hold."""


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes to list; all by default."""

    entity: str | None = None
    record_id: str | None = None
    actor: str | None = None
    """A user's id, with an agent's after a slash; `cli` and `strongroom` for the program."""
    since: Millis | None = None
    """Made at this time or later."""


def head(reader: RuntimeReader) -> Head | None:
    """The end of the chain, to be kept elsewhere; None while nothing is chained."""
    row = reader.one(sql.FIND_AUDIT_HEAD)
    return Head(row.seq, row.row_hash) if row is not None and row.row_hash is not None else None


def expire_fields(tx: RuntimeTransactor, before_ms: Millis, limit: int) -> int:
    """Let go of the fields of old changes; who did what, and when, stays.

    Args:
        tx: The store.
        before_ms: Only of changes older than this.
        limit: Most rows to empty now.

    Returns:
        How many were emptied; fewer than the limit when there are no more.
    """
    return len(tx.run(sql.EXPIRE_AUDIT_FIELDS, before=before_ms, limit=limit))


def remove_through(tx: RuntimeTransactor, through_seq: int) -> int:
    """Remove the oldest rows; a checkpoint stands for them, on which the chain goes on.

    The last row stays, for the next one's hash builds on it. A record all of whose rows are
    gone begins again with place 1.

    Returns:
        How many went.

    Raises:
        InvalidInputError: There is no chained row at this place, or it is the last.
    """
    counted = tx.run(sql.ADD_AUDIT_CHECKPOINT, through=through_seq, now=tx.now_ms)
    if not counted:
        raise InvalidInputError(field="through_seq")
    tx.run(sql.REMOVE_AUDIT_THROUGH, through=through_seq)
    return counted[0].value


def list_changes(
    reader: RuntimeReader, which: ChangeFilter, before: int | None, limit: int
) -> list[Change]:
    """Changes of the whole file, newest first.

    Those of reports are left out: who may know of a report is told by the report alone.

    Args:
        reader: The store.
        which: The changes to list.
        before: The `seq` that ended the page before; None for the newest.
        limit: Most to give.

    Returns:
        They; fewer than the limit at the end.
    """
    return reader.all(
        sql.LIST_AUDIT,
        before=_LAST if before is None else before,
        entity=which.entity,
        record_id=which.record_id,
        actor=which.actor,
        since=which.since or 0,
        limit=limit,
    )


def verify(reader: RuntimeReader, kept: bytes | None = None) -> Verdict:
    """Check the chain from its beginning, a few rows at a time.

    Args:
        reader: The store.
        kept: The hash of a head that was kept elsewhere; it must still be found.

    Returns:
        What was found, up to the first row that does not hold.
    """
    last = reader.one(sql.FIND_LAST_AUDIT_SEQ)
    check = _Check(reader, kept)
    return check.run(last.value if last is not None else 0)


class _Check:
    """One walk along the chain."""

    def __init__(self, reader: RuntimeReader, kept: bytes | None) -> None:
        self._reader = reader
        self._kept = kept
        begun = reader.one(sql.FIND_AUDIT_CHECKPOINT)
        self._seq = begun.seq if begun else 0
        self._previous = begun.row_hash if begun else None
        self._removed = begun.seq if begun else 0
        self._is_kept_met = kept is None or kept == self._previous
        self._rows = self._erased = self._unchained = 0

    def run(self, last_seq: int) -> Verdict:
        for row in self._walk(last_seq):
            fault = self._fault_of(row)
            if fault is not None:
                return self._verdict(min(row.seq, self._seq + 1), fault)
            self._take(row)
        if self._seq < last_seq:
            return self._verdict(self._seq + 1, "end")
        if not self._is_kept_met:
            return self._verdict(None, "head")
        return self._verdict(None, None)

    def _walk(self, last_seq: int) -> Iterator[AuditChainRow]:
        """Every row up to the last there was at the beginning, so that it comes to an end."""
        # From the very first: a row that a checkpoint stands for must not be there, nor one
        # in a place before the first.
        place = -_LAST
        while place < last_seq:
            rows = self._reader.all(sql.LIST_AUDIT_CHAIN, after=place, limit=_BATCH)
            if not rows:
                return
            yield from rows
            place = rows[-1].seq

    def _fault_of(self, row: AuditChainRow) -> Fault | None:
        if row.seq != self._seq + 1:
            return "gap"
        if row.row_hash is None and self._previous is None:
            return None  # from before the chain began
        if row.row_hash != _hash_of(self._previous, row):
            return "row"
        if (row.fields is None) != (row.salt is None):
            return "fields"
        is_there = row.fields is not None
        if is_there and row.fields_digest != functions.fields_digest(row.salt, row.fields):
            return "fields"
        return None

    def _take(self, row: AuditChainRow) -> None:
        self._rows += 1
        self._unchained += row.row_hash is None
        self._erased += row.fields is None
        self._seq, self._previous = row.seq, row.row_hash
        self._is_kept_met = self._is_kept_met or row.row_hash == self._kept

    def _verdict(self, bad_seq: int | None, fault: Fault | None) -> Verdict:
        return Verdict(
            rows=self._rows,
            erased=self._erased,
            unchained=self._unchained,
            removed=self._removed,
            head=None if self._previous is None else Head(self._seq, self._previous),
            bad_seq=bad_seq,
            fault=fault,
        )


def _hash_of(previous: bytes | None, row: AuditChainRow) -> bytes:
    return functions.row_hash(
        previous,
        row.entity,
        row.record_id,
        row.ordinal,
        row.occurred_at,
        row.kind,
        row.actor_kind,
        row.actor_sub,
        row.acting_for,
        row.action,
        row.request_id,
        row.trace_id,
        row.encoding,
        row.fields_digest,
    )
