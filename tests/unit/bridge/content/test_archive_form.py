"""Archives of notes: what goes out comes back."""

import contextlib
import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from app.bridge.content import archive_form as form
from app.bridge.content.archive_reading import Archive
from app.bridge.content.archive_writing import write_archive
from app.db.owner.store import OwnerTransactor
from app.db.spool import Spool
from app.errors.conflicts import PathConflictError
from app.owner.copies import TakenIn, take_in, walk_notes
from app.owner.notes import Condition, put_note
from app.owner.paths import clean
from tests.support import matrix
from tests.support.archives import BOUNDS, END, opened, patched, raw_name, zipped
from tests.support.stores import OwnerFile, owner_file

EXAMPLES: Final = matrix.chosen([15], [1_000])[0]
NOTES: Final = matrix.chosen([200], [10_000])[0]
Notes = dict[str, str]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerFile]:
    """A member's encrypted store; each test leaves it empty."""
    with owner_file(tmp_path_factory.mktemp("archives")) as made:
        yield made


class UndoneError(Exception):
    """What a test did in a store is undone."""


@contextlib.contextmanager
def undone(store: OwnerFile) -> Iterator[OwnerTransactor]:
    """A transaction of which nothing stays."""
    with contextlib.suppress(UndoneError), store.write() as tx:
        yield tx
        raise UndoneError


def exported(store: OwnerFile, notes: Notes) -> bytes:
    """The archive of a store that has these notes alone."""
    made = b""
    with undone(store) as tx:
        take_in(tx, notes.items(), "ana")
        with Spool(store.path.parent) as spool, Spool(store.path.parent) as rows:
            assert write_archive(tx, spool, rows, store.clock()) == len(notes)
            spool.finish()
            made = b"".join(spool.pieces())
    return made


KEYS = (
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60),
            st.sampled_from(["a", "A", "a.md", "A.md", "con", "%41", "ß", "ss", "é" * 127, "~"]),
        ),
        min_size=1,
        max_size=4,
    )
    .map(lambda parts: clean("user-memory/" + "/".join(parts)).key)
    .filter(bool)
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300),
    st.sampled_from(["", "a" * 200_000, "\r\n", "\ufeffmarked", "manifest"]),
)


@given(notes=st.dictionaries(KEYS, TEXTS, max_size=8))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_exported_and_imported_is_the_same(store: OwnerFile, notes: Notes) -> None:
    """Any notes, into an empty store; and again it changes nothing."""
    assume(not any(a != b and b.startswith(f"{a}/") for a in notes for b in notes))
    archive = opened(exported(store, notes))
    assert archive.text_bytes == sum(len(text.encode()) for text in notes.values())
    with undone(store) as tx:
        done = take_in(tx, archive.texts(), "ben")
        assert done == TakenIn(written=len(notes), unchanged=0, created=len(notes))
        assert {note.path: note.content for note in walk_notes(tx)} == notes
        assert take_in(tx, archive.texts(), "ben") == TakenIn(0, len(notes), 0)


def test_an_archive_says_what_is_in_it(store: OwnerFile) -> None:
    """Names that every system takes, exact paths, versions, authors, times, and digests."""
    raw = exported(store, {"a:b.md": "one", "A:b.md": "two"})
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names == ["user-memory/A%3Ab.md", "user-memory/a%3Ab%~2.md", "manifest.jsonl"]
        assert archive.read(names[0]) == b"two"
        head, *rows = map(json.loads, archive.read("manifest.jsonl").splitlines())
    at = "2023-11-14T22:13:20.000Z"
    assert head == {"form": form.FORM, "version": 1, "notes": 2, "exported_at": at}
    digest = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
    assert rows[0] == {
        "file": names[0],
        "path": "A:b.md",
        "size_bytes": 3,
        "sha256": digest,
        "version": 1,
        "author": "ana",
        "created_at": at,
        "updated_at": at,
    }


def test_what_packs_too_well_is_stored_plain(store: OwnerFile) -> None:
    """So that no export is ever taken for a bomb."""
    raw = exported(store, {"same.md": "a" * 4_000_000})
    assert len(raw) > 4_000_000
    assert opened(raw).text_bytes == 4_000_000


def test_a_manifest_that_packs_too_well_is_stored_plain(store: OwnerFile) -> None:
    """The same text under names that differ in little."""
    folder = "/".join(["n" * 240] * 12)
    raw = exported(store, {f"{folder}/{n}": "" for n in range(60)})
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.getinfo(form.MANIFEST).compress_type == zipfile.ZIP_STORED
    assert len(opened(raw).entries) == 60


def test_memory_is_bounded(store: OwnerFile) -> None:
    """By the largest note and by the names, not by all that is written and read."""
    note = "word " * 410
    notes = {f"folder-{n % 50}/note-{n}.md": f"{n} {note}" for n in range(NOTES)}
    total = sum(map(len, notes.values()))
    with undone(store) as tx:
        take_in(tx, notes.items(), "ana")
        with Spool(store.path.parent) as spool, Spool(store.path.parent) as rows:
            tracemalloc.start()
            write_archive(tx, spool, rows, store.clock())
            spool.finish()
            with spool.reader() as file:
                archive = Archive(file, spool.size_bytes, BOUNDS)
                archive.verify()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        # Names and places, some 2 KiB a note; and a mebibyte for buffers.
        assert peak < 1_048_576 + NOTES * 2_048, peak
        assert NOTES < 10_000 or peak < total


def test_what_a_person_packed_is_taken() -> None:
    """With or without the root's name, names decoded, folders passed over, a comment at the end."""
    raw = zipped(
        ("notes/", b""),
        ("notes/a%3Ab.md", b"\xef\xbb\xbfone"),
        ("user-memory/b.md", b"two"),
        ("manifest.jsonl", b"mine"),
        ("100%.md", b""),
    )
    raw = patched(raw, END, 20, "<H", 7) + b"comment"
    assert list(opened(raw).texts()) == [
        ("notes/a:b.md", "\ufeffone"),
        ("b.md", "two"),
        ("manifest.jsonl", "mine"),
        ("100%.md", ""),
    ]
    # As tools for Macintosh write it: UTF-8 that does not say so.
    raw = raw_name("n\u00e9.text".encode())
    assert list(opened(raw).texts()) == [("né.text", "text")]
    assert opened(zipped()).entries == []
    assert [key for key, _ in opened(zipped(("manifest.jsonl", b"[1]\n"))).texts()] == [
        "manifest.jsonl"
    ]


def test_a_note_in_the_place_of_a_folder_takes_nothing_in(store: OwnerFile) -> None:
    """All or nothing."""
    archive = opened(zipped(("x.md", b"first"), ("a", b"note"), ("a/b", b"below")))
    with pytest.raises(PathConflictError), store.write() as tx:
        take_in(tx, archive.texts(), "ana")
    assert list(walk_notes(store.reader)) == []


def test_what_an_import_replaces_is_in_the_history(store: OwnerFile) -> None:
    """As with any put; what stood there already gets no version."""
    with undone(store) as tx:
        for key in ("same", "other"):
            put_note(tx, key, "text", "ana", Condition())
        archive = opened(zipped(("same", b"text"), ("other", b"new"), ("more", b"")))
        assert take_in(tx, archive.texts(), "ben") == TakenIn(2, 1, 1)
        versions = store.rows("SELECT path, version, author FROM memory_doc_versions ORDER BY id")
        assert versions[2:] == [("other", 2, "ben"), ("more", 1, "ben")]
