"""Hostile archives: each kind is refused by a code of its own, before anything is written."""

import contextlib
import hashlib
import io
import json
import stat
import tracemalloc
import zipfile
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bridge.content import archive_form as form
from app.bridge.content.archive_reading import Archive
from app.errors.archives import (
    ArchiveBombError,
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
from tests.support import matrix
from tests.support.archives import (
    BOUNDS,
    CENTRAL,
    END,
    LOCAL,
    ONE,
    PLAIN,
    ROW,
    both,
    deflated,
    half_packed,
    lies_in_text,
    listed,
    opened,
    packed_as,
    patched,
    quoted,
    raw_name,
    with_mode,
    zipped,
)

EXAMPLES: Final = matrix.chosen([60], [5_000])[0]

HOSTILE: Final[dict[str, tuple[bytes, type[ArchiveError]]]] = {
    "nothing": (b"", ArchiveError),
    "no archive": (b"just some text that is no archive", ArchiveError),
    "half an end": (END + b"\0" * 9, ArchiveError),
    "truncated": (ONE[:-1], ArchiveError),
    "cut in the directory": (ONE[: ONE.index(CENTRAL) + 9], ArchiveError),
    "without its beginning": (ONE[9:], ArchiveError),
    "behind a program": (b"#!/bin/sh\n" + ONE, ArchiveError),
    "with more behind it": (ONE + b"more", ArchiveError),
    "an end within the comment": (patched(ONE, END, 20, "<H", 22) + ONE[-22:], ArchiveError),
    "of several disks": (patched(ONE, END, 4, "<H", 1), ArchiveError),
    "fewer entries than said": (patched(ONE, END, 8, "<2H", 2, 2), ArchiveError),
    "more entries than said": (
        patched(zipped(("a", b""), ("b", b"")), END, 8, "<2H", 1, 1),
        ArchiveError,
    ),
    "a directory of nonsense": (patched(ONE, CENTRAL, 0, "<L", 0), ArchiveError),
    "a name that is no UTF-8": (
        patched(raw_name(b"n\xff\xfe.ext!"), CENTRAL, 8, "<H", 0x800),
        ArchiveError,
    ),
    "too many entries": (patched(ONE, END, 8, "<2H", 65_001, 65_001), ArchiveTooLargeError),
    "ZIP64": (
        patched(ONE, END, 8, "<2H2L", 65_535, 65_535, 0xFFFF_FFFF, 0xFFFF_FFFF),
        ArchiveTooLargeError,
    ),
    "a directory that is too large": (patched(ONE, END, 12, "<L", 1 << 30), ArchiveTooLargeError),
    "an entry larger than a note": (
        zipped(("a.md", b"x" * ((4 << 20) + 1)), method=0),
        ArchiveTooLargeError,
    ),
    "too much in all": (
        zipped(*((f"{n}", b"x" * (4 << 20)) for n in range(17))),
        ArchiveTooLargeError,
    ),
    "a bomb": (zipped(("a.md", b"x" * 1_000_000)), ArchiveBombError),
    "a checksum that is wrong": (both(ONE, 14, 16, "<L", 1), ArchiveDamagedError),
    "a byte that is wrong": (PLAIN.replace(b"0123456789", b"0123456780"), ArchiveDamagedError),
    "more than said": (packed_as(deflated(b"a" * 100_000), b"a" * 10), ArchiveDamagedError),
    "much that says nothing": (
        packed_as(b"\0\0\0\xff\xff" * 14_000 + deflated(b"a"), b"a"),
        ArchiveDamagedError,
    ),
    "less than said": (both(ONE, 22, 24, "<L", 21), ArchiveDamagedError),
    "a stored size that is wrong": (both(PLAIN, 22, 24, "<L", 9), ArchiveDamagedError),
    "a packed size that is wrong": (both(ONE, 18, 20, "<L", 5), ArchiveDamagedError),
    "no deflate": (both(PLAIN, 8, 10, "<H", 8), ArchiveDamagedError),
    "two sizes": (patched(ONE, LOCAL, 22, "<L", 9), ArchiveDamagedError),
    "two names": (ONE.replace(b"a.md", b"b.md", 1), ArchiveDamagedError),
    "two methods": (patched(ONE, LOCAL, 8, "<H", 0), ArchiveDamagedError),
    "a head elsewhere": (patched(ONE, CENTRAL, 42, "<L", 3), ArchiveDamagedError),
    "a head past the end": (patched(ONE, CENTRAL, 42, "<L", 1 << 20), ArchiveDamagedError),
    "an entry on another disk": (patched(ONE, CENTRAL, 34, "<H", 1), ArchiveDamagedError),
    "packed with too much": (both(PLAIN, 18, 20, "<L", 1 << 20), ArchiveOverlapError),
    "twice the same bytes": (quoted(), ArchiveOverlapError),
    "one entry in another": (lies_in_text(), ArchiveOverlapError),
    "encrypted": (both(ONE, 6, 8, "<H", 1), ArchiveEncryptedError),
    "strongly encrypted": (both(ONE, 6, 8, "<H", 0x41), ArchiveEncryptedError),
    "bzip2": (zipped(("a.md", b"text"), method=zipfile.ZIP_BZIP2), ArchiveMethodError),
    "lzma": (zipped(("a.md", b"text"), method=zipfile.ZIP_LZMA), ArchiveMethodError),
    "patched data": (both(ONE, 6, 8, "<H", 0x20), ArchiveMethodError),
    "patched data by one head": (patched(ONE, CENTRAL, 8, "<H", 0x20), ArchiveDamagedError),
    "a manifest of patched data": (both(listed(ROW), 6, 8, "<H", 0x20), ArchiveMethodError),
    "a manifest by bzip2": (
        zipped((form.MANIFEST, b"{}"), method=zipfile.ZIP_BZIP2),
        ArchiveMethodError,
    ),
    "a link": (zipped((with_mode("a.md", stat.S_IFLNK | 0o777), b"/etc/passwd")), ArchiveKindError),
    "a device": (zipped((with_mode("a.md", stat.S_IFCHR | 0o600), b"")), ArchiveKindError),
    "a pipe": (zipped((with_mode("a.md", stat.S_IFIFO | 0o600), b"")), ArchiveKindError),
    "a socket": (zipped((with_mode("a.md", stat.S_IFSOCK | 0o600), b"")), ArchiveKindError),
    "a folder that is a file": (
        zipped((with_mode("a/", stat.S_IFREG | 0o600), b"")),
        ArchiveKindError,
    ),
    "a file that is a folder": (
        zipped((with_mode("a.md", stat.S_IFDIR | 0o700), b"")),
        ArchiveKindError,
    ),
    "a folder that holds something": (zipped(("a/", b"text"), method=0), ArchiveKindError),
    "an absolute name": (zipped(("/etc/a.md", b"text")), ArchiveNameError),
    "a way up": (zipped(("a/../../b.md", b"text")), ArchiveNameError),
    "a way up at the end": (zipped(("a/..", b"text")), ArchiveNameError),
    "a folder that leads up": (zipped(("../", b"")), ArchiveNameError),
    "here": (zipped(("./a.md", b"text")), ArchiveNameError),
    "nothing between": (zipped(("a//b.md", b"text")), ArchiveNameError),
    "no name": (zipped(("/", b"")), ArchiveNameError),
    "a way up under the root": (zipped(("user-memory/../b", b"text")), ArchiveNameError),
    "backslashes": (raw_name(b"a\\..\\b.m"), ArchiveNameError),
    "a drive": (zipped(("c:a.md", b"text")), ArchiveNameError),
    "a NUL": (raw_name(b"a.md\0.sh"), ArchiveNameError),
    "a control character": (zipped(("a\x1b[2J.md", b"text")), ArchiveNameError),
    "a name of no text": (raw_name(b"n\xff\xfe.ext!"), ArchiveNameError),
    "a name that is too long": (zipped(("x" * 256, b"text")), ArchiveNameError),
    "too deep": (zipped(("a/" * 32 + "b", b"text")), ArchiveNameError),
    "the same name twice": (
        zipped(("PATH1", b"a"), ("PATH2", b"b")).replace(b"PATH2", b"PATH1"),
        ArchiveDuplicateError,
    ),
    "the same but for case": (zipped(("a.md", b"a"), ("A.MD", b"b")), ArchiveDuplicateError),
    "the same but for Unicode form": (
        zipped(("é", b"a"), ("e\u0301", b"b")),
        ArchiveDuplicateError,
    ),
    "the same but for a fold": (zipped(("straße", b"a"), ("STRASSE", b"b")), ArchiveDuplicateError),
    "the same once decoded": (zipped(("ab:", b"a"), ("ab%3A", b"b")), ArchiveDuplicateError),
    "the same with the root": (zipped(("a", b"a"), ("user-memory/a", b"b")), ArchiveDuplicateError),
    "no UTF-8": (zipped(("a.md", b"\xff\xfe")), ArchiveTextError),
    "a surrogate": (zipped(("a.md", b"\xed\xa0\x80")), ArchiveTextError),
    "a NUL in a text": (zipped(("a.md", b"a\0b")), ArchiveTextError),
    "an archive in it": (zipped(("a.zip", ONE)), ArchiveTextError),
    "a manifest of another version": (
        listed(ROW, head={"form": form.FORM, "version": 2}),
        ArchiveManifestError,
    ),
    "a manifest that is too long": (listed(ROW, more=b" " * 70_000), ArchiveTooLargeError),
    "a manifest that is a bomb": (listed(ROW, more=b" " * 65_700), ArchiveBombError),
    "a manifest with a checksum that is wrong": (
        both(listed(ROW), 14, 16, "<L", 1),
        ArchiveDamagedError,
    ),
    "a manifest of more than said": (both(listed(ROW), 22, 24, "<L", 40), ArchiveDamagedError),
    "a manifest of less than said": (both(listed(ROW), 22, 24, "<L", 400), ArchiveDamagedError),
    "a manifest that is no deflate": (
        both(zipped((form.MANIFEST, b"\xff"), method=0), 8, 10, "<H", 8),
        ArchiveDamagedError,
    ),
    "a manifest of half a deflate": (half_packed(), ArchiveDamagedError),
    "a manifest with a digest that is none": (
        listed({**ROW, "sha256": "x"}),
        ArchiveManifestError,
    ),
    "a manifest with half a digest": (listed({**ROW, "sha256": "7d"}), ArchiveManifestError),
    "a manifest that is cut off": (listed(ROW, more=b'{"file'), ArchiveManifestError),
    "a manifest without a row": (listed(), ArchiveManifestError),
    "a manifest with a row too many": (listed(ROW, {**ROW, "file": "x"}), ArchiveManifestError),
    "a manifest with a row twice": (listed(ROW, ROW), ArchiveManifestError),
    "a manifest of other files": (listed({**ROW, "file": "x"}), ArchiveManifestError),
    "a manifest of another size": (listed({**ROW, "size_bytes": 5}), ArchiveManifestError),
    "a manifest of another text": (listed(ROW), ArchiveManifestError),
    "a manifest that leads up": (listed({**ROW, "path": "../n"}), ArchiveManifestError),
    "a manifest of no path": (listed({**ROW, "path": ""}), ArchiveManifestError),
    "a manifest of a path that is none": (listed({**ROW, "path": "a\0"}), ArchiveNameError),
    "a manifest of nonsense": (listed([1, 2]), ArchiveManifestError),
    "a manifest too deep to read": (listed(more=b"[" * 60_000 + b"\n"), ArchiveManifestError),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_refused(name: str) -> None:
    """Each kind by a code of its own, before anything is written."""
    raw, kind = HOSTILE[name]
    with pytest.raises(ArchiveError) as refused:
        opened(raw)
    assert type(refused.value) is kind


def manifested(count: int, pad: str) -> bytes:
    """An archive of so many empty notes, each of a short name and a long path."""
    digest = hashlib.sha256(b"").hexdigest()
    rows = [{"form": form.FORM, "version": 1}] + [
        {"file": f"{n}", "path": f"{n}{pad}", "size_bytes": 0, "sha256": digest}
        for n in range(count)
    ]
    lines = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    # Stored, so that it is no bomb by its ratio.
    return zipped((form.MANIFEST, lines), *((f"{n}", b"") for n in range(count)), method=0)


def peak_of(raw: bytes) -> int:
    """Bytes that looking an archive through takes at most, beside the archive."""
    tracemalloc.start()
    try:
        with contextlib.suppress(ArchiveError):
            Archive(io.BytesIO(raw), len(raw), BOUNDS)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_a_manifest_takes_no_more_memory_than_the_names_warrant() -> None:
    """Neither one that is too long, nor the longest that is taken."""
    count = 300
    too_long = manifested(count, "q" * 60_000)
    with pytest.raises(ArchiveTooLargeError):
        opened(too_long)
    assert peak_of(too_long) < 1 << 20 < len(too_long)
    # A sign of four bytes makes each character of a text in memory as large.
    taken = manifested(count, "\U0001f600" + "q" * 200)
    assert len(opened(taken).entries) == count
    assert peak_of(taken) < (512 << 10) + count * 2_048


@given(st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_whatever_is_changed_in_an_archive_is_taken_whole_or_refused(data: st.DataObject) -> None:
    """No error but the ones above, and never a text that the archive did not have."""
    raw = bytearray(zipped(("a.md", b"one " * 40), ("f/b.md", b"two"), ("f/", b"")))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        texts = [text for _, text in opened(bytes(raw)).texts()]
    except ArchiveError:
        return
    assert set(texts) <= {"one " * 40, "two"}
