"""What an archive of notes looks like; whoever writes one and whoever reads one agree on it.

A ZIP file: `manifest.jsonl`, and each note under `user-memory/` in the folders of its path. The
manifest's first line names the form; each further line is one note: its file, its path, and what
the store knew of it. An archive without a manifest is one that a person packed: there each file's
name is its path.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from app.clock import rfc3339
from app.db.owner.rows import NoteRow
from app.owner.paths import USER_MEMORY

MANIFEST: Final = "manifest.jsonl"
FOLDER: Final = f"{USER_MEMORY}/"
"""Where an archive of ours has its notes; in any other it may be left out."""
FORM: Final = "strongroom-memory"
FORM_VERSION: Final = 1
ENTRIES_MAX: Final = 65_000
"""Entries of an archive, folders included: what a ZIP file can name without ZIP64."""
RATIO_FROM_BYTES: Final = 64 * 1024
"""Up to here a text may be as compressible as it is."""
RATIO_MAX: Final = 100
"""How many times its packed size a larger one may have; ours are stored plain beyond."""
LEVEL: Final = 4
"""Of deflate: 10 % larger than the best, in half the time."""


def head(notes: int, exported_at: int) -> bytes:
    """The manifest's first line."""
    return _line(
        {
            "form": FORM,
            "version": FORM_VERSION,
            "notes": notes,
            "exported_at": rfc3339(exported_at),
        }
    )


def row(file: str, note: NoteRow, digest: str) -> bytes:
    """The manifest's line of one note.

    Args:
        file: The entry that holds its text.
        note: It.
        digest: SHA-256 of the text's UTF-8, hex.

    Returns:
        JSON in UTF-8, and a line feed.
    """
    return _line(
        {
            "file": file,
            "path": note.path,
            "size_bytes": note.size_bytes,
            "sha256": digest,
            "version": note.version,
            "author": note.author,
            "created_at": rfc3339(note.created_at),
            "updated_at": rfc3339(note.updated_at),
        }
    )


def _line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"
