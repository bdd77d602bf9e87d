"""The manifest of an archive, read line by line: of each, what it says is kept at once or refused.

It may be as long as the names in the archive warrant and no longer, so what it makes known is
bounded by the archive's own directory.
"""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Final

from app.bridge.content import archive_form as form
from app.bridge.content.archive_entries import Entry, Unpacking, require_size
from app.errors.archives import ArchiveManifestError
from app.owner.paths import MAX_PATH_BYTES

_LINE_BYTES_MAX: Final = 64 * 1024
"""Longer than any of ours: two paths, escaped, and what is said of a note."""
_BYTES_BESIDE_NAMES: Final = 512
"""Of a line on the average: all that it says beside its names."""
_BYTES_OF_NAMES: Final = 4
"""How many times an entry's name: it, the path, and what is escaped in both."""
_DIGEST_BYTES: Final = 32


def read_manifest(
    file: BinaryIO, manifest: Entry, entries: Sequence[Entry]
) -> Sequence[Entry] | None:
    """Read what a manifest says.

    Args:
        file: The archive.
        manifest: The manifest's entry.
        entries: All others.

    Returns:
        The others, each with the path and the digest that is said; None when the file is
        another's, which has the name by chance.

    Raises:
        ArchiveManifestError: It is ours, and cannot be read, or does not fit to the entries.
        ArchiveTooLargeError: It is longer than the entries' names warrant.
        ArchiveBombError: It grows too much when it is unpacked.
        ArchiveDamagedError: It is not what the directory says.
    """
    reader = io.BufferedReader(Unpacking(file, manifest), _LINE_BYTES_MAX)
    lines = iter(lambda: reader.readline(_LINE_BYTES_MAX), b"")
    try:
        if not _is_ours(next(lines, b"")):
            return None
        require_size(manifest, _bytes_max(entries))
        return _as_listed(lines, entries)
    except (ValueError, RecursionError):
        raise ArchiveManifestError from None


def _bytes_max(entries: Sequence[Entry]) -> int:
    return _LINE_BYTES_MAX + sum(
        _BYTES_BESIDE_NAMES + _BYTES_OF_NAMES * len(entry.name.encode()) for entry in entries
    )


def _is_ours(line: bytes) -> bool:
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(head, dict) or head.get("form") != form.FORM:
        return False
    if head.get("version") != form.FORM_VERSION:
        raise ArchiveManifestError
    return True


def _as_listed(lines: Iterator[bytes], entries: Sequence[Entry]) -> Sequence[Entry]:
    found = list(entries)
    waiting = {entry.name: place for place, entry in enumerate(entries)}
    for line in lines:
        name, path, size_bytes, digest = _row_of(line)
        place = waiting.pop(name, None)
        if place is None:
            raise ArchiveManifestError
        entry = found[place]
        if size_bytes != entry.size_bytes:
            raise ArchiveManifestError(entry.number)
        # Most say what the name does; then nothing more is kept.
        kept = entry.path if path == entry.path else path
        found[place] = replace(entry, path=kept, digest=digest)
    if waiting:
        raise ArchiveManifestError
    return found


def _row_of(line: bytes) -> tuple[str, bytes, int, bytes]:
    fields: Any = json.loads(line)
    match fields:
        case {
            "file": str(name),
            "path": str(path),
            "size_bytes": int(size_bytes),
            "sha256": str(digest),
        } if len(path) <= MAX_PATH_BYTES:
            said = bytes.fromhex(digest)
            if len(said) == _DIGEST_BYTES and said.hex() == digest:
                return name, path.encode(), size_bytes, said
        case _:
            pass
    raise ArchiveManifestError
