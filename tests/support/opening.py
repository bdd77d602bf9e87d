"""Which files of a folder are opened, read or written, by whatever process: the kernel tells.

What a hook inside of the program would be told misses what SQLite opens; this misses nothing,
for inotify is told of every open of a file that lies in a watched folder.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_OPEN: Final = 0x20
_TOUCHED: Final = _OPEN | 0x1 | 0x2
"""Opened, read or written."""
_OVERFLOW: Final = 0x4000
_FOLDER: Final = 0x40000000
_HEAD: Final = struct.Struct("iIII")
_READ_BYTES: Final = 1 << 20


class Opening:
    """What is done to the files of some folders, while the block lasts."""

    def __init__(self, *folders: Path) -> None:
        """Begin to watch.

        Args:
            folders: Each for itself, without those inside of it; they must be there.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._fd >= 0, os.strerror(ctypes.get_errno())
        self._folders: dict[int, Path] = {}
        for folder in folders:
            watch = libc.inotify_add_watch(self._fd, os.fsencode(folder), _TOUCHED)
            assert watch >= 0, os.strerror(ctypes.get_errno())
            self._folders[watch] = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)

    def take(self) -> set[Path]:
        """The files that something was done to since the last look.

        Returns:
            Their paths.
        """
        return {path for path, mask in self._read() if mask & _TOUCHED}

    def opened(self) -> set[Path]:
        """Those alone that were opened, of all since the last look; the rest is forgotten."""
        return {path for path, mask in self._read() if mask & _OPEN}

    def _read(self) -> Iterator[tuple[Path, int]]:
        while True:
            try:
                raw = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(raw):
                watch, mask, _, length = _HEAD.unpack_from(raw, at)
                assert not mask & _OVERFLOW, "The kernel forgot some: look more often."
                name = raw[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                if not mask & _FOLDER:
                    yield self._folders[watch] / os.fsdecode(name), mask
                at += _HEAD.size + length
