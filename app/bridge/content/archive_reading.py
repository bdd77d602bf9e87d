"""An archive that somebody sent: nothing that it says of itself is believed.

The directory of a ZIP file, the heads of its entries and their bytes each tell names and sizes.
Here they must tell the same, and the bytes must be what they say; whatever a tool could take in
two ways is refused. Nothing is ever unpacked onto the disk.
"""

import hashlib
import itertools
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from app.bridge.content import archive_form as form
from app.bridge.content.archive_entries import Entry, require_size, unpacked
from app.bridge.content.archive_manifest import read_manifest
from app.errors.archives import (
    ArchiveDamagedError,
    ArchiveDuplicateError,
    ArchiveEncryptedError,
    ArchiveError,
    ArchiveKindError,
    ArchiveManifestError,
    ArchiveMethodError,
    ArchiveNameError,
    ArchiveOverlapError,
    ArchiveTextError,
    ArchiveTooLargeError,
)
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidPathError
from app.owner import paths
from app.owner.archive_names import decode, likeness

_END: Final = struct.Struct("<4s4H2LH")
_END_MARK: Final = b"PK\x05\x06"
_COMMENT_MAX: Final = 65_535
_ZIP64: Final = 0xFFFF_FFFF
_DIRECTORY_BYTES_MAX: Final = 64 * 1024 * 1024
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_LOCAL_MARK: Final = b"PK\x03\x04"

_ENCRYPTED: Final = 0x0001 | 0x0040 | 0x2000
_PATCHED: Final = 0x0020
"""The bytes are what changes in another file, which nothing here can read."""
_SIZES_FOLLOW: Final = 0x0008
_UTF_8: Final = 0x0800
_READ: Final = _ENCRYPTED | _PATCHED | _SIZES_FOLLOW
"""Flags by which an entry is read in another way: both of its heads must have the same."""
_FORBIDDEN_PARTS: Final = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much an archive may hold."""

    note_bytes_max: int
    text_bytes_max: int
    """Of all texts together."""


class Archive:
    """An archive in whose every part nothing stands against it; its texts are read one by one."""

    def __init__(self, file: BinaryIO, size_bytes: int, bounds: Bounds) -> None:
        """Look through the whole directory.

        Args:
            file: The archive.
            size_bytes: How long it is.
            bounds: How much it may hold.

        Raises:
            ArchiveError: Which part cannot be taken, and why.
        """
        self._file = file
        directory_at, count = _find_directory(file, size_bytes)
        infos = _directory_of(file, count)
        places = [_data_at(file, number, info) for number, info in enumerate(infos, 1)]
        _require_extents(infos, places, directory_at)
        entries = [
            _entry_of(number, info, data_at)
            for number, (info, data_at) in enumerate(zip(infos, places, strict=True), 1)
            if not _is_folder(number, info)
        ]
        if sum(entry.size_bytes for entry in entries) > bounds.text_bytes_max:
            raise ArchiveTooLargeError
        _require_distinct(entries)
        self.entries: Sequence[Entry] = _keyed(file, entries)
        for entry in self.entries:
            require_size(entry, bounds.note_bytes_max)

    @property
    def text_bytes(self) -> int:
        """Of all its texts."""
        return sum(entry.size_bytes for entry in self.entries)

    def verify(self) -> None:
        """Read all of it.

        Raises:
            ArchiveError: An entry is not what it is said to be, or no text.
        """
        for _ in self.texts():
            pass

    def texts(self) -> Iterator[tuple[str, str]]:
        """The notes, one in memory at a time.

        Yields:
            Key and text.

        Raises:
            ArchiveError: An entry is not what it is said to be, or no text.
        """
        for entry in self.entries:
            raw = unpacked(self._file, entry)
            if entry.digest is not None and hashlib.sha256(raw).digest() != entry.digest:
                raise ArchiveManifestError(entry.number)
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise ArchiveTextError(entry.number) from None
            if "\0" in text:
                raise ArchiveTextError(entry.number)
            yield entry.key, text


def _find_directory(file: BinaryIO, size_bytes: int) -> tuple[int, int]:
    """Where the directory begins, and how many entries it has; it ends where its end begins."""
    tail_bytes = min(size_bytes, _END.size + _COMMENT_MAX)
    file.seek(size_bytes - tail_bytes)
    tail = file.read(tail_bytes)
    at = tail.rfind(_END_MARK, 0, max(0, len(tail) - _END.size + len(_END_MARK)))
    if at < 0:
        raise ArchiveError
    _, disk, first_disk, here, count, length, start, comment = _END.unpack_from(tail, at)
    end = size_bytes - tail_bytes + at
    if count > form.ENTRIES_MAX or length > _DIRECTORY_BYTES_MAX or _ZIP64 in {length, start}:
        raise ArchiveTooLargeError
    is_whole = end + _END.size + comment == size_bytes and start + length == end
    if not is_whole or disk or first_disk or here != count:
        raise ArchiveError
    return start, count


def _directory_of(file: BinaryIO, count: int) -> list[zipfile.ZipInfo]:
    try:
        infos = zipfile.ZipFile(file).infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
        raise ArchiveError from None
    if len(infos) != count:
        raise ArchiveError
    return infos


def _raw_name(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF_8 else "cp437")


def _require_extents(
    infos: Sequence[zipfile.ZipInfo], places: Sequence[int], directory_at: int
) -> None:
    """Refuse entries of which one lies in another, or in the directory."""
    spans = sorted(
        (info.header_offset, data_at + info.compress_size, number)
        for number, (info, data_at) in enumerate(zip(infos, places, strict=True), 1)
    )
    for (_, end, _), (start, _, number) in itertools.pairwise([*spans, (directory_at, 0, None)]):
        if start < end:
            raise ArchiveOverlapError(number)


def _data_at(file: BinaryIO, number: int, info: zipfile.ZipInfo) -> int:
    """Where an entry's bytes begin, if its own head says what the directory does."""
    file.seek(info.header_offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size:
        raise ArchiveDamagedError(number)
    mark, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes = _LOCAL.unpack(head)
    name = file.read(name_bytes)
    said = (crc, packed, size) == (info.CRC, info.compress_size, info.file_size)
    fits = (
        mark == _LOCAL_MARK
        and flags & _READ == info.flag_bits & _READ
        and method == info.compress_type
        and name == _raw_name(info)
        and (said or flags & _SIZES_FOLLOW)
        and info.volume == 0
    )
    if not fits:
        raise ArchiveDamagedError(number)
    return info.header_offset + _LOCAL.size + int(name_bytes) + int(extra_bytes)


def _is_folder(number: int, info: zipfile.ZipInfo) -> bool:
    """Whether an entry is a folder, which holds nothing; refuse what is no file either."""
    if info.flag_bits & _ENCRYPTED:
        raise ArchiveEncryptedError(number)
    if info.flag_bits & _PATCHED:
        raise ArchiveMethodError(number)
    kind = stat.S_IFMT(info.external_attr >> 16)
    is_folder = info.orig_filename.endswith("/")
    if kind not in {0, stat.S_IFDIR if is_folder else stat.S_IFREG}:
        raise ArchiveKindError(number)
    if is_folder:
        if info.file_size:
            raise ArchiveKindError(number)
        _parts_of(number, _name_of(number, info)[:-1])
    return is_folder


def _name_of(number: int, info: zipfile.ZipInfo) -> str:
    try:
        return unicodedata.normalize("NFC", _raw_name(info).decode("utf-8"))
    except UnicodeError:
        raise ArchiveNameError(number) from None


def _parts_of(number: int, name: str) -> list[str]:
    r"""The names of a path; none that is empty or leads elsewhere, no `\`, no drive."""
    parts = name.split("/")
    has_drive = len(parts[0]) > 1 and parts[0][1] == ":" and parts[0][0].isascii()
    if "\\" in name or has_drive or not _FORBIDDEN_PARTS.isdisjoint(parts):
        raise ArchiveNameError(number)
    return parts


def _entry_of(number: int, info: zipfile.ZipInfo, data_at: int) -> Entry:
    name = _name_of(number, info)
    parts = _parts_of(number, name)
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ArchiveMethodError(number)
    if len(parts) > 1 and parts[0] == paths.USER_MEMORY:
        parts = parts[1:]
    return Entry(
        number=number,
        name=name,
        path="/".join(decode(part) for part in parts).encode(),
        data_at=data_at,
        packed_bytes=info.compress_size,
        size_bytes=info.file_size,
        crc=info.CRC,
        is_deflated=info.compress_type == zipfile.ZIP_DEFLATED,
    )


def _require_distinct(entries: Sequence[Entry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        alike = likeness(entry.name)
        if alike in seen:
            raise ArchiveDuplicateError(entry.number)
        seen.add(alike)


def _keyed(file: BinaryIO, entries: Sequence[Entry]) -> list[Entry]:
    """The notes, each with the key that the manifest says, or else its name."""
    manifest = next((entry for entry in entries if entry.name == form.MANIFEST), None)
    listed = None
    if manifest is not None:
        others = [entry for entry in entries if entry is not manifest]
        listed = read_manifest(file, manifest, others)
    seen: set[bytes] = set()
    kept = entries if listed is None else listed
    for entry in kept:
        if entry.path in seen:
            raise ArchiveDuplicateError(entry.number)
        seen.add(entry.path)
        _require_canonical(entry, is_listed=listed is not None)
    return list(kept)


def _require_canonical(entry: Entry, *, is_listed: bool) -> None:
    try:
        ref = paths.clean(f"{paths.USER_MEMORY}/{entry.key}")
    except (InvalidPathError, NotFoundError):
        raise ArchiveNameError(entry.number) from None
    if (ref.root, ref.key) != (paths.USER_MEMORY, entry.key):
        raise ArchiveManifestError(entry.number) if is_listed else ArchiveNameError(entry.number)
