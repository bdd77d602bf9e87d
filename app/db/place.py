"""Which file stands at a store's path, told by looking and never by opening.

A handle keeps the file that it opened, wherever that is moved; what is written to one that
was deleted or exchanged under the program is lost without an error.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from app.db.driver_errors import translated_os_error
from app.errors.stores import StoreDamagedError, StoreMissingError, StoreSwappedError


@dataclass(frozen=True, slots=True)
class Place:
    """Which file it is, for as long as anybody has it open."""

    device: int
    inode: int
    size_bytes: int = field(compare=False)
    """When it was looked at: a store only grows, so a shorter one was cut."""


def place_of(path: Path) -> Place:
    """The file at a path.

    Returns:
        Which it is.

    Raises:
        StoreMissingError: There is none.
    """
    return _place(_look(path))


def require_content(path: Path) -> Place:
    """Refuse what SQLite would take for a new database.

    Returns:
        The file that is none.

    Raises:
        StoreMissingError: There is no file.
        StoreDamagedError: It is empty, or no file.
    """
    found = _look(path)
    if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
        raise StoreDamagedError
    return _place(found)


def require_place(path: Path, place: Place) -> None:
    """Refuse a path at which another file stands now, or none.

    Raises:
        StoreMissingError: It was deleted or moved away.
        StoreSwappedError: It was exchanged.
        StoreDamagedError: It was cut.
    """
    found = _look(path)
    if (found.st_dev, found.st_ino) != (place.device, place.inode):
        raise StoreSwappedError
    if found.st_size < place.size_bytes:
        raise StoreDamagedError


def _look(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except FileNotFoundError as error:
        raise StoreMissingError from error
    except OSError as error:
        raise translated_os_error(error) from error


def _place(found: os.stat_result) -> Place:
    return Place(found.st_dev, found.st_ino, found.st_size)
