"""What the driver's errors, and the system's, mean to a caller.

They are told by SQLite's name for them, never by class: a lock can look like a wrong key
when errors are told by class. A programming error (no such table, not authorized, a
closed handle) passes unchanged: nobody outside can act on it.
"""

import errno
import os
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.errors.conflicts import ConstraintError
from app.errors.inputs import PayloadTooLargeError
from app.errors.root import StrongroomError
from app.errors.stores import (
    DiskFullError,
    OutOfHandlesError,
    OverloadedError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreMissingError,
    StoreReadOnlyError,
)


class StoreClosedError(StoreBusyError):
    """The store was closed meanwhile: try again."""


class InterruptedReadError(StoreClosedError):
    """The store was closed under the statement: try again."""


_CONSTRAINT: Final = "SQLITE_CONSTRAINT"
_CONSTRAINT_WORDS: Final[Mapping[str, str]] = {
    "CHECK": "_CHECK",
    "FOREIGN KEY": "_FOREIGNKEY",
    "NOT NULL": "_NOTNULL",
    "UNIQUE": "_UNIQUE",  # a primary key, too
    "cannot store": "_DATATYPE",
}
_ROOM_BYTES: Final = 8 * 1024 * 1024
"""With less room than that, an I/O error of a write is taken for want of it."""
_CANTOPEN: Final = "SQLITE_CANTOPEN"
_IOERR: Final = "SQLITE_IOERR"

_KINDS: Final[Mapping[str, type[StrongroomError]]] = {
    "SQLITE_BUSY": StoreBusyError,
    "SQLITE_CORRUPT": StoreDamagedError,
    "SQLITE_FULL": DiskFullError,
    "SQLITE_INTERRUPT": InterruptedReadError,
    "SQLITE_LOCKED": StoreBusyError,
    "SQLITE_NOMEM": OverloadedError,
    "SQLITE_NOTADB": StoreDamagedError,
    "SQLITE_PERM": StoreReadOnlyError,
    "SQLITE_PROTOCOL": StoreBusyError,  # lost the race for the log's locks too often
    "SQLITE_READONLY": StoreReadOnlyError,
    "SQLITE_TOOBIG": PayloadTooLargeError,
}
"""By primary name; an extended one goes on from it after an underscore."""

_ERRNOS: Final[Mapping[int, type[StoreError]]] = {
    errno.ENOSPC: DiskFullError,
    errno.EDQUOT: DiskFullError,
    errno.EFBIG: DiskFullError,
    errno.EROFS: StoreReadOnlyError,
    errno.EACCES: StoreReadOnlyError,
    errno.EPERM: StoreReadOnlyError,
    errno.EMFILE: OutOfHandlesError,
    errno.ENFILE: OutOfHandlesError,
}


def translated(error: Exception, path: Path | None = None) -> Exception:
    """The error of `app.errors` that a driver's error means; others pass unchanged.

    Args:
        error: As the driver raised it.
        path: The file that was open or to be opened; None for one in memory.

    Returns:
        What to raise in its place.
    """
    name = getattr(error, "sqlite_errorname", None)
    if not isinstance(name, str):
        return error
    if name.startswith(_CONSTRAINT):
        return ConstraintError(_constraint(str(error)))
    if name.startswith(_CANTOPEN):
        return _why_not_opened(path)
    if name.startswith(_IOERR):
        return _why_not_done(path)
    kind = _KINDS.get("_".join(name.split("_", 2)[:2]))
    return error if kind is None else kind()


def translated_os_error(error: OSError) -> Exception:
    """The store error that a refused file operation means; others pass unchanged."""
    kind = _ERRNOS.get(error.errno or 0)
    return error if kind is None else kind()


def _constraint(words: str) -> str:
    """SQLite's extended name, from its words: the driver gives the primary name alone."""
    found = (kind for start, kind in _CONSTRAINT_WORDS.items() if words.startswith(start))
    return _CONSTRAINT + next(found, "")


def _why_not_done(path: Path | None) -> StoreError:
    """SQLite says 'disk I/O error' for a full disk and a limit of sizes as well."""
    if _out_of_descriptors():
        return OutOfHandlesError()
    return DiskFullError() if path is not None and _is_full(path) else StoreError()


def _is_full(path: Path) -> bool:
    """Whether the file, or its log, has no room to grow."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    if disk.f_bavail * disk.f_frsize < _ROOM_BYTES:
        return True
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    sizes = (each.stat().st_size for each in (path, Path(f"{path}-wal")) if each.exists())
    return max(sizes, default=0) + _ROOM_BYTES > limit


def _why_not_opened(path: Path | None) -> StoreError:
    """SQLite says 'unable to open' for a missing file, a forbidden one and no descriptor left."""
    if path is not None:
        if not path.exists():
            return StoreMissingError()
        if _is_full(path):
            return DiskFullError()  # the log's shared memory could not be made
        if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)):
            return StoreReadOnlyError()
        if Path(f"{path}-wal").is_dir():
            return StoreDamagedError()  # no try that comes later finds the log
    # The file is there and allowed, so descriptors it was, even if some are free by now.
    return OutOfHandlesError()


def _out_of_descriptors() -> bool:
    """Whether this process can open no file at all just now."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in {errno.EMFILE, errno.ENFILE}
    return False
