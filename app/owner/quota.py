"""How much a store may hold: judged inside of the transaction that adds to it.

Transactions of one store come one after the other, in whichever process. So of two that come
at once the second finds what the first took, and together they never pass a limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from app.db.owner import statements
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.stores import QuotaExceededError

T = TypeVar("T")


@runtime_checkable
class MakesNotes(Protocol):
    """What a write returns that may have made notes."""

    @property
    def created(self) -> int:
        """How many notes are new."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one store may hold."""

    bytes_max: int
    """Of its pages in use and the files beside it."""
    notes_max: int
    files_bytes: Callable[[], int]
    """Tells the bytes of those files, as they lie on the disk now."""

    def hold(
        self, tx: OwnerTransactor, work: Callable[[OwnerTransactor], T], adds_bytes: int | None
    ) -> T:
        """Do something in a transaction that has room for it.

        What the search index still holds back until the commit is not counted: the next write
        finds it.

        Args:
            tx: The store's transaction.
            work: Adds to the store.
            adds_bytes: At least how much: what it really added, versions that are kept included,
                is judged after it. None when it only takes away, which a full store must take.

        Returns:
            What the work returned.

        Raises:
            QuotaExceededError: The store would hold more than it may; nothing is kept.
        """
        if adds_bytes is None:
            return work(tx)
        before = self.used(tx)
        self._require(before + adds_bytes, before)
        result = work(tx)
        if isinstance(result, MakesNotes) and result.created:
            self._require_notes(tx, result.created)
        self._require(self.used(tx), before)
        return result

    def used(self, reader: OwnerReader) -> int:
        """Bytes of the store, as it stands in this transaction, and of the files beside it."""
        [pages] = reader.all(statements.SUM_PAGES)
        return pages.value + self.files_bytes()

    def require_within(self, reader: OwnerReader) -> None:
        """Refuse to go on in a store that holds too much by now.

        Raises:
            QuotaExceededError: It does.
        """
        self._require(self.used(reader), self.bytes_max)

    def _require(self, wanted: int, before: int) -> None:
        if wanted > self.bytes_max:
            raise QuotaExceededError(limit_max=self.bytes_max, left=self.bytes_max - before)

    def _require_notes(self, reader: OwnerReader, created: int) -> None:
        [count] = reader.all(statements.COUNT_NOTES)
        if count.value > self.notes_max:
            left = self.notes_max - (count.value - created)
            raise QuotaExceededError(limit_max=self.notes_max, left=left, limit="notes")
