"""Bytes that lie on the disk for a while: encrypted, in a file that has no name.

The key is in memory alone and the file is gone when it is closed, or its process ends, however
that ends: so nothing is left to read, to sweep or to count.
"""

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from typing_extensions import override

from app.crypto.keys import Key
from app.crypto.segments import SEALED_BYTES, SEGMENT_BYTES, Segments
from app.db.driver_errors import translated_os_error
from app.errors.conflicts import AlreadyExistsError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_NAME: Final = "spool"
_FILE_MODE: Final = 0o600


class Spool:
    """First written, from its beginning to its end; then, once finished, read anywhere."""

    def __init__(self, folder: Path) -> None:
        """Begin one.

        Args:
            folder: On whose disk.

        Raises:
            StoreError: There is no room, or no right.
        """
        self.size_bytes = 0
        """Of content, so far."""
        self._rest = bytearray()
        self._number = 0
        with Key.generate() as key:
            self._segments = Segments(key, _NAME)
        with _translated():
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - `close`

    def write(self, content: bytes | bytearray | memoryview) -> int:
        """Go on with this content.

        Returns:
            How much of it was taken: all.

        Raises:
            StoreError: There is no room; the spool is to be closed.
        """
        self.size_bytes += len(content)
        self._rest += content
        # The last segment is told by its nonce, so one is held back until the end.
        while len(self._rest) > SEGMENT_BYTES:
            self._seal(bytes(self._rest[:SEGMENT_BYTES]), is_last=False)
            del self._rest[:SEGMENT_BYTES]
        return len(content)

    def flush(self) -> None:
        """Nothing; what writes archives asks for it."""

    def finish(self) -> None:
        """Say that all is written.

        Raises:
            StoreError: There is no room; the spool is to be closed.
        """
        self._seal(bytes(self._rest), is_last=True)
        self._rest.clear()

    def read_at(self, start: int, count: int) -> bytes:
        """The content from a place on; less than was asked for at a segment's end.

        Args:
            start: In bytes, from 0.
            count: Most bytes to give.

        Returns:
            Them; none at the end.
        """
        if start >= self.size_bytes or count <= 0:
            return b""
        number, inside = divmod(start, SEGMENT_BYTES)
        with _translated():
            sealed = os.pread(self._file.fileno(), SEALED_BYTES, number * SEALED_BYTES)
        content = self._segments.open(number, sealed, is_last=number == self._number - 1)
        return content[inside : inside + count]

    def reader(self) -> io.BufferedReader:
        """A finished spool as a file to read; whoever reads it has it alone."""
        return io.BufferedReader(_Reader(self), SEGMENT_BYTES)

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """The content, a segment at a time.

        Yields:
            None of an empty spool.
        """
        while start < self.size_bytes:
            piece = self.read_at(start, SEGMENT_BYTES)
            yield piece
            start += len(piece)

    def load(self, path: Path, bytes_max: int) -> bool:
        """Go on with what a file holds.

        Args:
            path: Of a file in clear.
            bytes_max: Most bytes to take.

        Returns:
            Whether that was all.

        Raises:
            OSError: It cannot be read.
        """
        with path.open("rb", buffering=0) as file:
            while piece := file.read(SEGMENT_BYTES):
                if self.size_bytes + len(piece) > bytes_max:
                    return False
                self.write(piece)
        return True

    def save(self, path: Path) -> None:
        """Write the content into a new file, in clear, for its owner alone.

        Raises:
            AlreadyExistsError: Something is there.
            OSError: It cannot be written; then there is no file.
        """
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(path, flags, _FILE_MODE)
        except FileExistsError:
            raise AlreadyExistsError from None
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                for piece in self.pieces():
                    file.write(piece)
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def close(self) -> None:
        """Have it gone; again is no harm."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _seal(self, content: bytes, *, is_last: bool) -> None:
        sealed = memoryview(self._segments.seal(self._number, content, is_last=is_last))
        self._number += 1
        with _translated():
            while sealed:
                sealed = sealed[os.write(self._file.fileno(), sealed) :]


class _Reader(io.RawIOBase):
    """A place in a finished spool."""

    def __init__(self, spool: Spool) -> None:
        super().__init__()
        self._spool = spool
        self._at = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._spool.size_bytes}[whence]
        self._at = max(0, base + offset)
        return self._at

    @override
    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        with memoryview(buffer).cast("B") as view:
            piece = self._spool.read_at(self._at, len(view))
            view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise translated_os_error(error) from error
