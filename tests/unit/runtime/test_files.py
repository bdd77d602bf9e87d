"""Rows of files: one a content, counted, gone after the grace time and no earlier."""

import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from app.db.owner.store import OwnerTransactor
from app.errors.stores import FileDamagedError, StoreDamagedError
from app.runtime import files
from app.runtime.files import File, NewFile
from tests.support.stores import OwnerFile, owner_file

GRACE_MS: Final = 1000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A store of its own."""
    with owner_file(tmp_path) as made:
        yield made


def _new(name: str, digest: bytes = b"d") -> NewFile:
    return NewFile(name, bytes(32), digest, 10)


def _hold(tx: OwnerTransactor, blob_id: str, file: File) -> None:
    tx._connection.all(
        "INSERT INTO blobs (id, file_id, media_type, author, created_at)"
        " VALUES (:id, :file_id, 'a/b', 'a', 0)",
        {"id": blob_id, "file_id": file.id},
    )


def _refs(store: OwnerFile) -> list[tuple[object, ...]]:
    return [tuple(row) for row in store.rows("SELECT name, refs FROM sys_files ORDER BY name")]


def test_a_digest_is_the_stores_own(tmp_path: Path) -> None:
    """The same content has another in another store, so none can be told from outside."""
    digests = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with owner_file(tmp_path / name) as store:
            for _ in range(2):
                digest = files.content_digest(store.reader)
                digest.update(b"content")
                digests.add(digest.digest())
    assert len(digests) == 2
    assert hmac.digest(b"", b"content", "sha256") not in digests


def test_a_store_without_its_keys_is_damaged(store: OwnerFile) -> None:
    """Nothing is made up in their place."""
    with store.write():
        store.rows("DELETE FROM sys_store_keys")
    with pytest.raises(StoreDamagedError):
        files.content_digest(store.reader)


def test_a_content_has_one_row(store: OwnerFile) -> None:
    """However often it came; its key is in no traceback."""
    with store.write() as tx:
        first = files.keep(tx, _new("one"))
        assert files.keep(tx, _new("two")) == first
        assert files.keep(tx, _new("three", b"e")) != first
    assert files.get(store.reader, first.id) == first
    assert files.list_all(store.reader) == {"one": 10, "three": 10}
    assert "key" not in repr(first)
    assert "key" not in repr(_new("x"))
    with pytest.raises(FileDamagedError):
        files.get(store.reader, "nobody")


def test_who_holds_a_file_is_counted(store: OwnerFile) -> None:
    """By every way that a field begins or ends to hold it."""
    with store.write() as tx:
        one, two = files.keep(tx, _new("one")), files.keep(tx, _new("two", b"e"))
        for blob_id in "ab":
            _hold(tx, blob_id, one)
    assert _refs(store) == [("one", 2), ("two", 0)]
    with store.write():
        store.rows(f"UPDATE blobs SET file_id = '{two.id}' WHERE id = 'a'")  # noqa: S608 - an id
    assert _refs(store) == [("one", 1), ("two", 1)]
    with store.write():
        store.rows("UPDATE blobs SET name = 'x'")
        store.rows("DELETE FROM blobs")
    assert _refs(store) == [("one", 0), ("two", 0)]


def test_a_file_goes_when_nobody_has_held_it_for_the_grace_time(store: OwnerFile) -> None:
    """And one that is held again in between stays."""
    with store.write() as tx:
        one, two = files.keep(tx, _new("one")), files.keep(tx, _new("two", b"e"))
        _hold(tx, "a", one)
        _hold(tx, "b", two)
    with store.write():
        store.rows("DELETE FROM blobs")
    store.clock.advance(GRACE_MS - 1)
    with store.write() as tx:
        assert files.remove_unreferenced(tx, GRACE_MS, 9) == []
        _hold(tx, "c", files.keep(tx, _new("again")))
    store.clock.advance(1)
    with store.write() as tx:
        assert [row.name for row in files.remove_unreferenced(tx, GRACE_MS, 9)] == ["two"]
    assert files.list_all(store.reader) == {"one": 10}


def test_what_was_kept_and_never_held_goes_too(store: OwnerFile) -> None:
    """At most so many at a time, the oldest first."""
    for name in "abc":
        with store.write() as tx:
            files.keep(tx, _new(name, name.encode()))
        store.clock.advance(1)
    store.clock.advance(GRACE_MS)
    with store.write() as tx:
        gone = files.remove_unreferenced(tx, GRACE_MS, 2)
    assert sorted(row.name for row in gone) == ["a", "b"]
