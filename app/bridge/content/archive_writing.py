"""A store's notes written as an archive, one note in memory at a time."""

import hashlib
import stat
import zipfile
import zlib
from datetime import UTC, datetime
from typing import Final

from app.bridge.content import archive_form as form
from app.db.owner.store import OwnerReader
from app.db.spool import Spool
from app.owner.archive_names import SafeNames
from app.owner.copies import walk_notes

_MODE: Final = (stat.S_IFREG | 0o600) << 16
_UNIX: Final = 3
_FIRST_YEAR: Final = 1980
_LAST_YEAR: Final = 2107
"""What a ZIP file's times can say."""


def write_archive(reader: OwnerReader, out: Spool, rows: Spool, now_ms: int) -> int:
    """Write every note of a store, as it is in this snapshot.

    Args:
        reader: The store.
        out: Takes the archive; to be finished by the caller.
        rows: Takes the manifest meanwhile.
        now_ms: The time it will tell.

    Returns:
        How many notes there are.

    Raises:
        StoreError: The disk has no room.
    """
    names, count = SafeNames(), 0
    # It is written from the beginning to the end and never sought in: sizes follow their bytes.
    with zipfile.ZipFile(out, "w", allowZip64=True) as archive:
        for note in walk_notes(reader):
            raw, file = note.content.encode(), form.FOLDER + names.file_of(note.path)
            archive.writestr(_info(file, note.updated_at, _method(raw)), raw, None, form.LEVEL)
            rows.write(form.row(file, note, hashlib.sha256(raw).hexdigest()))
            count += 1
        rows.finish()
        manifest = _info(form.MANIFEST, now_ms, _method_of_rows(rows))
        with archive.open(manifest, "w", force_zip64=False) as lines:
            lines.write(form.head(count, now_ms))
            for piece in rows.pieces():
                lines.write(piece)
    return count


def _info(name: str, at: int, method: int) -> zipfile.ZipInfo:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    year = min(max(moment.year, _FIRST_YEAR), _LAST_YEAR)
    info = zipfile.ZipInfo(name, (year, *moment.timetuple()[1:6]))
    info.create_system, info.external_attr, info.compress_type = _UNIX, _MODE, method
    return info


def _method(raw: bytes) -> int:
    """Deflate, but for a text so regular that whoever reads it would take it for a bomb."""
    if len(raw) > form.RATIO_FROM_BYTES:
        return _method_by(len(raw), len(zlib.compress(raw, form.LEVEL)))
    return zipfile.ZIP_DEFLATED


def _method_of_rows(rows: Spool) -> int:
    """The same of a manifest, which is never whole in memory."""
    packer = zlib.compressobj(form.LEVEL)
    packed = sum(len(packer.compress(piece)) for piece in rows.pieces()) + len(packer.flush())
    return _method_by(rows.size_bytes, packed)


def _method_by(size_bytes: int, packed_bytes: int) -> int:
    is_regular = size_bytes > packed_bytes * form.RATIO_MAX // 2
    return zipfile.ZIP_STORED if is_regular else zipfile.ZIP_DEFLATED
