"""Bytes beside a store: one encrypted file each, in a folder an owner, told by its row alone.

A file is written once, under a name of its own, and never changed. It is made under a
temporary name, durable before it takes its place; what a crash leaves of it is told by that
name, or by having no row. Nothing here is a store's file, nor ever in a store's folder.
"""

import contextlib
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from app.clock import Clock
from app.crypto import segments
from app.crypto.keys import Key
from app.crypto.segments import SEALED_BYTES, SEGMENT_BYTES, SegmentError, Segments
from app.db.driver_errors import translated_os_error
from app.db.files import sync_folder
from app.errors.stores import FileDamagedError, StoreBusyError

sealed_size = segments.sealed_size
NEW_SUFFIX: Final = ".new"
"""A file that is being written."""
_NAME_BYTES: Final = 16
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_MS_NS: Final = 1_000_000


class Found(NamedTuple):
    """One file of a folder."""

    name: str
    is_new: bool
    """Whether it was never finished."""
    size_bytes: int
    changed_at: int
    """Unix milliseconds, by the clock of whoever wrote it."""


class NewFile:
    """One file on its way to the disk. Any thread may call it; one at a time gets through.

    Left alone it stays under its temporary name; `discard` takes it away at any time.
    """

    def __init__(self, folder: Path, key: Key, clock: Clock) -> None:
        """Begin a file.

        Args:
            folder: Where; made when it is missing.
            key: For this file alone.
            clock: The time it will bear.

        Raises:
            StoreError: There is no room, or no right.
        """
        self.name = secrets.token_hex(_NAME_BYTES)
        """Random; says nothing of what is in it."""
        self.size_bytes = 0
        """Of content, so far."""
        self._path = folder / self.name
        self._clock = clock
        self._segments = Segments(key, self.name)
        self._number = 0
        self._rest = bytearray()
        self._lock = threading.Lock()
        with _translated():
            _make_folder(folder)
            self._descriptor: int | None = os.open(
                self._new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _FILE_MODE
            )

    @property
    def _new(self) -> Path:
        return self._path.with_name(self.name + NEW_SUFFIX)

    def add(self, content: bytes) -> None:
        """Go on with this content.

        Raises:
            StoreError: There is no room; the file is to be discarded.
        """
        with self._lock, _translated():
            self.size_bytes += len(content)
            self._rest += content
            # The last segment is told by its nonce, so one is held back until the end.
            while len(self._rest) > SEGMENT_BYTES:
                with memoryview(self._rest) as view:
                    self._write(view[:SEGMENT_BYTES].tobytes(), is_last=False)
                del self._rest[:SEGMENT_BYTES]

    def finish(self) -> None:
        """Put the whole file in its place, durably.

        Raises:
            StoreError: There is no room; the file is to be discarded.
        """
        with self._lock, _translated():
            self._write(bytes(self._rest), is_last=True)
            self._rest.clear()
            descriptor = self._open_descriptor()
            # Its age is counted by the program's clock, as that of every row.
            at = self._clock() * _MS_NS
            os.utime(descriptor, ns=(at, at))
            os.fsync(descriptor)
            self._close()
            self._new.rename(self._path)
            sync_folder(self._path.parent)

    def discard(self) -> None:
        """Take the file away, finished or not; twice is once."""
        with self._lock:
            self._close()
            self._new.unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)

    def _open_descriptor(self) -> int:
        # Closed once, the number may be another file's: nothing is ever written to that.
        if self._descriptor is None:
            raise FileDamagedError
        return self._descriptor

    def _write(self, plaintext: bytes, *, is_last: bool) -> None:
        sealed = memoryview(self._segments.seal(self._number, plaintext, is_last=is_last))
        self._number += 1
        while sealed:
            sealed = sealed[os.write(self._open_descriptor(), sealed) :]

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read(path: Path, key: Key, size_bytes: int, first: int, count: int) -> bytes:
    """Read some segments of a file.

    Args:
        path: The file, under its own name.
        key: Its key.
        size_bytes: Of its content, as its row says.
        first: Number of the first segment, from 0.
        count: How many; those past the end are left out.

    Returns:
        Their content.

    Raises:
        FileDamagedError: It is missing, not as long as its row says, or does not open.
        StoreError: It cannot be read just now.
    """
    last = segments.count(size_bytes) - 1
    opener = Segments(key, path.name)
    with _translated():
        try:
            with path.open("rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size != segments.sealed_size(size_bytes):
                    raise FileDamagedError
                file.seek(first * SEALED_BYTES)
                sealed = memoryview(_read_fully(file.fileno(), count * SEALED_BYTES))
        except FileNotFoundError:
            raise FileDamagedError from None
    try:
        return b"".join(
            opener.open(
                number,
                sealed[(number - first) * SEALED_BYTES :][:SEALED_BYTES],
                is_last=number == last,
            )
            for number in range(first, min(first + count, last + 1))
        )
    except SegmentError:
        raise FileDamagedError from None


def _read_fully(descriptor: int, wanted: int) -> bytes:
    parts = []
    while wanted and (part := os.read(descriptor, wanted)):
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)


def list_folder(folder: Path) -> list[Found]:
    """Every file of a folder; none when there is no folder."""
    found = []
    with _translated(), contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            # One that goes meanwhile is none.
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                name = entry.name.removesuffix(NEW_SUFFIX)
                found.append(
                    Found(name, name != entry.name, status.st_size, status.st_mtime_ns // _MS_NS)
                )
    return found


def size_of_folder(folder: Path) -> int:
    """Bytes of all files of a folder, finished or not."""
    return sum(each.size_bytes for each in list_folder(folder))


def remove(folder: Path, names: list[str]) -> None:
    """Take finished files away, durably; one that is not there is no harm."""
    _unlink(folder, names)


def remove_new(folder: Path, names: list[str]) -> None:
    """Take files away that were never finished."""
    _unlink(folder, [name + NEW_SUFFIX for name in names])


def _unlink(folder: Path, names: list[str]) -> None:
    with _translated():
        for name in names:
            (folder / name).unlink(missing_ok=True)
        if names:
            sync_folder(folder)


def remove_folder(folder: Path) -> int:
    """Take a folder away with all that is in it, durably; twice is once.

    Returns:
        The bytes that were in it.
    """
    size = size_of_folder(folder)
    while folder.exists():
        # One that somebody else takes away meanwhile cuts the removal short.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        sync_folder(folder.parent)
    return size


def remove_empty(folder: Path) -> None:
    """Take a folder away if nothing is in it; else it stays."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _make_folder(folder: Path) -> None:
    for each in (folder.parent, folder):
        with contextlib.suppress(FileExistsError):
            each.mkdir(_FOLDER_MODE)
            sync_folder(each.parent)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        # Whoever took the folder away has the store as well.
        raise StoreBusyError from error
    except OSError as error:
        raise translated_os_error(error) from error
