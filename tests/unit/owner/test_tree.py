"""Notes moved and removed."""

from pathlib import Path

import pytest

from app.errors.callers import NotFoundError
from app.errors.conflicts import AlreadyExistsError, PathConflictError, VersionConflictError
from app.errors.inputs import InvalidPathError, RecursiveRequiredError
from app.errors.root import StrongroomError
from app.owner.notes import Condition, find_note, get_note, put_note, restore_note
from app.owner.search import search
from app.owner.tree import delete_note, move_note
from app.owner.versions import list_versions
from tests.support.stores import ANA, BEN, OwnerFile, owner_file

_ANY = Condition()
_CANARY = "zqxjkvbpyg"


def _put(store: OwnerFile, *keys: str, content: str = "text") -> None:
    with store.write() as tx:
        for key in keys:
            put_note(tx, key, content, ANA, _ANY)


def _delete(
    store: OwnerFile,
    key: str,
    *,
    purge: bool = False,
    recursive: bool = False,
    condition: Condition = _ANY,
) -> int:
    with store.write() as tx:
        return delete_note(
            tx, key, condition=condition, purge=purge, recursive=recursive, author=ANA
        )


def _move(store: OwnerFile, from_key: str, to_key: str, *, recursive: bool = False) -> list[str]:
    with store.write() as tx:
        moved = move_note(tx, from_key, to_key, recursive=recursive, author=BEN)
    return [note.path for note in moved]


def _paths(store: OwnerFile) -> list[str]:
    return [row[0] for row in store.rows("SELECT path FROM memory_docs ORDER BY path")]


def _version(store: OwnerFile, key: str) -> int:
    return get_note(store.reader, key).version


def test_a_folder_goes_as_a_whole_when_asked(store: OwnerFile) -> None:
    """A folder is removed with all below, and only when that was said."""
    _put(store, "a/1", "a/b/2", "a.", "a0", "b/1")
    with pytest.raises(RecursiveRequiredError):
        _delete(store, "a")
    assert _delete(store, "a", recursive=True) == 2
    assert _paths(store) == ["a.", "a0", "b/1"]
    store.check()


@pytest.mark.parametrize("purge", [False, True], ids=["delete", "purge"])
def test_nothing_is_not_removed(store: OwnerFile, *, purge: bool) -> None:
    """Removing what is not there is an error, also by force."""
    with pytest.raises(NotFoundError):
        _delete(store, "n", purge=purge, recursive=True)


def test_a_folder_has_no_version(store: OwnerFile) -> None:
    """A folder is not removed on a condition that only a note can meet."""
    _put(store, "a/1")
    with pytest.raises(VersionConflictError):
        _delete(store, "a", recursive=True, condition=Condition(match=frozenset({1})))


def test_a_deletion_is_in_the_history(store: OwnerFile) -> None:
    """A deleted note leaves its texts and a row that says who removed it."""
    _put(store, "n")
    assert _delete(store, "n") == 1
    deletion, text = list_versions(store.reader, "n", None, 9)
    assert (deletion.via, deletion.is_deletion, deletion.author) == ("delete", 1, ANA)
    assert (text.version, deletion.version) == (1, 2)


@pytest.mark.parametrize("purge", [False, True], ids=["delete", "purge"])
def test_an_old_version_never_comes_back(store: OwnerFile, *, purge: bool) -> None:
    """A note made again at a path goes on after the versions that were there."""
    _put(store, "n")
    _put(store, "n", content="two")
    _delete(store, "n", purge=purge)
    _put(store, "n")
    assert _version(store, "n") == 4


def test_a_moved_note_takes_no_version_of_either_path(store: OwnerFile) -> None:
    """A moved note's version is new at its new path, and the old path goes on as well."""
    for content in ("1", "2", "3"):
        _put(store, "b", content=content)
    _delete(store, "b")
    _put(store, "a")
    assert _move(store, "a", "b") == ["b"]
    assert _version(store, "b") == 5
    _put(store, "a")
    assert _version(store, "a") == 3
    _delete(store, "a")
    _move(store, "b", "a")
    assert _version(store, "a") == 6


def test_a_move_is_in_both_histories(store: OwnerFile) -> None:
    """A note that leaves a path ends the history there and begins one at the new path."""
    _put(store, "a")
    before = get_note(store.reader, "a")
    store.clock.advance(1)
    _move(store, "a", "b")
    left, text = list_versions(store.reader, "a", None, 9)
    [came] = list_versions(store.reader, "b", None, 9)
    assert (left.via, left.is_deletion, text.via) == ("move", 1, "put")
    assert (came.via, came.is_deletion, came.author) == ("move", 0, BEN)
    after = get_note(store.reader, "b")
    assert (after.id, after.content, after.created_at) == (
        before.id,
        before.content,
        before.created_at,
    )


def test_a_folder_moves_as_a_whole_when_asked(store: OwnerFile) -> None:
    """All below moves together, is found at its new place and not at the old."""
    _put(store, "a/1", "a/b/2", "a0", content="findme")
    with pytest.raises(RecursiveRequiredError):
        _move(store, "a", "c/d")
    assert _move(store, "a", "c/d", recursive=True) == ["c/d/1", "c/d/b/2"]
    assert _paths(store) == ["a0", "c/d/1", "c/d/b/2"]
    assert sorted(hit.path for hit in search(store.reader, "findme", 9)) == _paths(store)
    store.check()


@pytest.mark.parametrize(
    ("from_key", "to_key", "error"),
    [
        pytest.param("", "x", InvalidPathError, id="the root"),
        pytest.param("note", "", InvalidPathError, id="onto the root"),
        pytest.param("gone", "x", NotFoundError, id="nothing"),
        pytest.param("note", "other", AlreadyExistsError, id="onto a note"),
        pytest.param("note", "note", AlreadyExistsError, id="onto itself"),
        pytest.param("note", "dir", AlreadyExistsError, id="onto a folder"),
        pytest.param("dir", "dir2", AlreadyExistsError, id="a folder onto a folder"),
        pytest.param("dir", "dir", AlreadyExistsError, id="a folder onto itself"),
        pytest.param("dir", "note", AlreadyExistsError, id="a folder onto a note"),
        pytest.param("dir/sub", "dir", AlreadyExistsError, id="a folder onto its own"),
        pytest.param("dir", "dir/new", InvalidPathError, id="a folder into itself"),
        pytest.param("dir", "dir/sub/new", InvalidPathError, id="a folder deep into itself"),
        pytest.param("note", "note/x", PathConflictError, id="a note under itself"),
        pytest.param("note", "other/x/y", PathConflictError, id="under a note"),
        pytest.param("dir", "note/x", PathConflictError, id="a folder under a note"),
        pytest.param("dir", "/".join("x" * 31), InvalidPathError, id="too deep"),
        pytest.param("dir", "/".join(["x" * 255] * 16)[:4078], InvalidPathError, id="too long"),
    ],
)
def test_a_move_needs_a_free_place(
    store: OwnerFile, from_key: str, to_key: str, error: type[StrongroomError]
) -> None:
    """A move that cannot be done changes nothing at all."""
    _put(store, "note", "other", "dir/1", "dir/sub/2", "dir2/x")
    before = store.rows("SELECT path, version FROM memory_docs ORDER BY path")
    with pytest.raises(error):
        _move(store, from_key, to_key, recursive=True)
    assert store.rows("SELECT path, version FROM memory_docs ORDER BY path") == before


def test_a_refused_move_names_what_stands_there(store: OwnerFile) -> None:
    """The version of the note in the way is told; a folder has none."""
    _put(store, "a", "b", "c/d")
    for key, version in (("b", 1), ("c", None)):
        with pytest.raises(AlreadyExistsError) as caught:
            _move(store, "a", key)
        assert caught.value.current_version == version


def test_a_purge_leaves_no_byte_of_a_text(tmp_path: Path) -> None:
    """After a purge the file holds nothing of any version, wherever the note once stood."""
    with owner_file(tmp_path, encrypted=False) as store:
        _put(store, *(f"filler/{number}" for number in range(50)), content="filler text " * 20)
        for number in range(20):
            _put(store, "old/n", content=f"{_CANARY}{number} " * 200)
        _move(store, "old/n", "new")
        _put(store, "new", content="harmless by now")
        assert _delete(store, "new", purge=True) == 1
        assert list_versions(store.reader, "new", None, 9) == []
        assert list_versions(store.reader, "old/n", None, 9) == []
        store.connection.checkpoint()
        assert _CANARY[2:].encode() not in store.path.read_bytes()
        assert _CANARY.encode() not in Path(f"{store.path}-wal").read_bytes()
        store.check()


def test_a_deleted_note_can_still_be_purged(store: OwnerFile) -> None:
    """A purge reaches what was deleted before: there is nothing to restore then."""
    _put(store, "n")
    _delete(store, "n")
    assert _delete(store, "n", purge=True) == 0
    with pytest.raises(NotFoundError), store.write() as tx:
        restore_note(tx, "n", 1, ANA, _ANY)


def test_a_purged_folder_takes_its_deleted_notes_along(store: OwnerFile) -> None:
    """What was deleted below a folder goes with it; its neighbours stay."""
    _put(store, "a/1", "a/2", "a0", "b")
    _delete(store, "a/1")
    _delete(store, "a0")
    assert _delete(store, "a", purge=True, recursive=True) == 1
    kept = store.rows("SELECT DISTINCT path FROM memory_doc_versions ORDER BY path")
    assert kept == [("a0",), ("b",)]


def test_a_purge_of_an_old_place_spares_the_note_that_left_it(store: OwnerFile) -> None:
    """A note that lives elsewhere now keeps its text and its history there."""
    _put(store, "a")
    _move(store, "a", "b")
    assert _delete(store, "a", purge=True) == 0
    assert list_versions(store.reader, "a", None, 9) == []
    assert get_note(store.reader, "b").content == "text"
    assert len(list_versions(store.reader, "b", None, 9)) == 1
    assert find_note(store.reader, "a") is None


def test_a_purge_keeps_no_path(store: OwnerFile) -> None:
    """Of a purged note its tables keep a keyed digest and a number, nothing readable."""
    _put(store, f"{_CANARY}/n")
    _delete(store, f"{_CANARY}/n", purge=True)
    assert store.rows("SELECT * FROM memory_docs, memory_doc_versions") == []
    [(digest, version, _)] = store.rows("SELECT * FROM memory_paths")
    assert (len(digest), version) == (32, 2)
