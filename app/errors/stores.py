"""A store that cannot serve just now, or at all."""

from typing import ClassVar, Literal

from app.errors.root import StrongroomError

QuotaLimit = Literal["bytes", "notes"]
"""What a store has no more room for."""


class StoreError(StrongroomError):
    """A store cannot serve this call."""

    code = "store_error"
    retry_after_s: ClassVar[int | None] = None


class StoreLockedError(StoreError):
    """The store is locked for this credential: unlock it with the password or the recovery code."""

    code = "store_locked"


class StoreBusyError(StoreError):
    """The store is busy with an operation of its own: try again."""

    code = "store_busy"
    retry_after_s: ClassVar[int | None] = 1


class StoreMigratingError(StoreError):
    """The store is being brought to the present version: try again."""

    code = "store_migrating"
    retry_after_s: ClassVar[int | None] = 2


class StoreMigrationFailedError(StoreError):
    """The store's migration failed and left it as it was: the operator should look into it."""

    code = "store_migration_failed"


class OutOfHandlesError(StoreError):
    """Too many stores are in use at once: try again."""

    code = "out_of_handles"
    retry_after_s: ClassVar[int | None] = 1


class OverloadedError(StoreError):
    """Too much is waiting: try again."""

    code = "overloaded"
    retry_after_s: ClassVar[int | None] = 2


class DiskFullError(StoreError):
    """The disk is full; nothing was written. The operator must make room."""

    code = "disk_full"


class QuotaExceededError(StoreError):
    """The store may not hold so much: see which limit, and what is left; nothing was written."""

    code = "quota_exceeded"

    def __init__(self, *, limit_max: int = 0, left: int = 0, limit: QuotaLimit = "bytes") -> None:
        super().__init__()
        self.limit: QuotaLimit = limit
        """Which."""
        self.limit_max = limit_max
        """What it is set to."""
        self.left = max(0, left)
        """How much could still be added."""


class StoreDamagedError(StoreError):
    """The store's file is damaged: the operator should restore it from a backup."""

    code = "store_damaged"

    def __init__(self) -> None:
        super().__init__()
        self.file_salt = b""
        """The 16 bytes the file begins with, for telling a swapped file; empty when unknown."""


class StoreMissingError(StoreError):
    """The store's file is missing: the operator should put it back from a backup."""

    code = "store_missing"


class StoreSwappedError(StoreError):
    """The file in this store's place is another's: the operator should put the right one back."""

    code = "store_swapped"


class StoreTooNewError(StoreError):
    """The store was written by a newer version of the program: the operator should update it."""

    code = "store_too_new"


class StoreReadOnlyError(StoreError):
    """The store cannot be written: the operator should look at the disk and its permissions."""

    code = "store_read_only"


class FileDamagedError(StoreError):
    """The file's bytes are damaged or gone: the operator should restore them from a backup."""

    code = "file_damaged"
