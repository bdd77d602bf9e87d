"""The manifest of an archive, read line by line."""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from app.bridge.content import archive_form as form
from app.errors.archives import ArchiveManifestError

_LINE_BYTES_MAX: Final = 64 * 1024
"""Longer than any of ours: two paths, escaped, and what is said of a note."""


class Listed(NamedTuple):
    """What a manifest says of one file."""

    path: str
    size_bytes: int
    digest: str


def read_manifest(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, files_max: int
) -> Mapping[str, Listed] | None:
    """Read what a manifest says.

    Args:
        archive: Whose.
        info: The manifest's entry.
        files_max: More files than there are entries cannot be named.

    Returns:
        By the file's name; None when the file is another's, which has the name by chance.

    Raises:
        ArchiveManifestError: It is ours, and cannot be read.
    """
    try:
        with archive.open(info) as file:
            lines = iter(lambda: file.readline(_LINE_BYTES_MAX), b"")
            if not _is_ours(next(lines, b"")):
                return None
            return _rows_of(lines, files_max)
    except (ValueError, RecursionError, zipfile.BadZipFile, zlib.error, EOFError):
        raise ArchiveManifestError from None


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


def _rows_of(lines: Iterator[bytes], files_max: int) -> Mapping[str, Listed]:
    listed: dict[str, Listed] = {}
    for line in lines:
        name, row = _row_of(line)
        if name in listed or len(listed) >= files_max:
            raise ArchiveManifestError
        listed[name] = row
    return listed


def _row_of(line: bytes) -> tuple[str, Listed]:
    fields: Any = json.loads(line)
    match fields:
        case {
            "file": str(name),
            "path": str(path),
            "size_bytes": int(size_bytes),
            "sha256": str(digest),
        }:
            return name, Listed(path, size_bytes, digest)
        case _:
            pass
    raise ArchiveManifestError
