"""One file of an archive, and its bytes: neither more nor less than the directory says."""

import io
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from typing_extensions import override

from app.bridge.content import archive_form as form
from app.errors.archives import ArchiveBombError, ArchiveDamagedError, ArchiveTooLargeError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_DEFLATE_SLACK: Final = 64 * 1024
"""How much longer than its text a packed entry may be."""
_PACKED_PIECE: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive, as all parts of it say."""

    number: int
    """Its place in the directory, from 1."""
    name: str
    path: bytes
    """The note's key in UTF-8, for a text in memory can be four times as large; empty for the
    manifest."""
    data_at: int
    packed_bytes: int
    size_bytes: int
    crc: int
    is_deflated: bool
    digest: bytes | None = None
    """SHA-256 that the manifest says; None without one."""

    @property
    def key(self) -> str:
        """The note's key."""
        return self.path.decode()


class Unpacking(io.RawIOBase):
    """An entry read from its beginning, a piece in memory at a time."""

    def __init__(self, file: BinaryIO, entry: Entry) -> None:
        """Begin.

        Args:
            file: The archive; nobody else reads it meanwhile.
            entry: Whose bytes.
        """
        super().__init__()
        file.seek(entry.data_at)
        self._file, self._entry = file, entry
        self._packed_left = entry.packed_bytes
        self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS) if entry.is_deflated else None
        self._size = self._crc = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Go on.

        Returns:
            How many bytes there were; 0 at the end.

        Raises:
            ArchiveDamagedError: The entry is not what the directory says.
        """
        with memoryview(buffer).cast("B") as view:
            piece = self._next(len(view))
            self._size += len(piece)
            self._crc = zlib.crc32(piece, self._crc)
            is_wrong = (self._size, self._crc) != (self._entry.size_bytes, self._entry.crc)
            if self._size > self._entry.size_bytes or (not piece and is_wrong):
                raise ArchiveDamagedError(self._entry.number)
            view[: len(piece)] = piece
        return len(piece)

    def _packed(self, count: int) -> bytes:
        packed = self._file.read(min(count, self._packed_left))
        self._packed_left -= len(packed)
        return packed

    def _next(self, count: int) -> bytes:
        """At most so many bytes; none at the end."""
        unpacker = self._unpacker
        if unpacker is None:
            return self._packed(count)
        piece = b""
        while not piece and not unpacker.eof:
            packed = unpacker.unconsumed_tail or self._packed(_PACKED_PIECE)
            try:
                piece = unpacker.decompress(packed, count)
            except zlib.error:
                raise ArchiveDamagedError(self._entry.number) from None
            if not packed and not piece:
                break
        if not piece and (not unpacker.eof or unpacker.unused_data or self._packed_left):
            raise ArchiveDamagedError(self._entry.number)
        return piece


def require_size(entry: Entry, bytes_max: int) -> None:
    """Refuse what is larger than it may be, or grows too much when it is unpacked.

    Args:
        entry: Which.
        bytes_max: Of its text.

    Raises:
        ArchiveTooLargeError: It is larger.
        ArchiveDamagedError: It is packed into more than a text of its size can need.
        ArchiveBombError: It grows too much.
    """
    if entry.size_bytes > bytes_max:
        raise ArchiveTooLargeError(entry.number)
    if entry.packed_bytes > entry.size_bytes + _DEFLATE_SLACK:
        raise ArchiveDamagedError(entry.number)
    is_large = entry.size_bytes > form.RATIO_FROM_BYTES
    if is_large and entry.size_bytes > entry.packed_bytes * form.RATIO_MAX:
        raise ArchiveBombError(entry.number)


def unpacked(file: BinaryIO, entry: Entry) -> bytes:
    """An entry's text in bytes.

    Returns:
        All of it.

    Raises:
        ArchiveDamagedError: It is not what the directory says.
    """
    file.seek(entry.data_at)
    packed = file.read(entry.packed_bytes)
    raw = _inflated(packed, entry) if entry.is_deflated else packed
    if len(raw) != entry.size_bytes or zlib.crc32(raw) != entry.crc:
        raise ArchiveDamagedError(entry.number)
    return raw


def _inflated(packed: bytes, entry: Entry) -> bytes:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        # One byte more than it says it has; 0 would mean no bound.
        raw = unpacker.decompress(packed, entry.size_bytes + 1)
    except zlib.error:
        raise ArchiveDamagedError(entry.number) from None
    if not unpacker.eof or unpacker.unused_data:
        raise ArchiveDamagedError(entry.number)
    return raw
