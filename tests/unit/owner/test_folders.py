"""Folders and listings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.owner import folders
from app.owner.folders import EntryRow, is_folder, list_files, span_below
from app.owner.notes import Condition, put_note
from app.owner.paths import is_under
from tests.support.stores import ANA, OwnerFile


def _put(store: OwnerFile, *keys: str) -> None:
    with store.write() as tx:
        for key in keys:
            put_note(tx, key, f"{key}\n", ANA, Condition())


def _shown(store: OwnerFile, key: str, depth: int) -> list[str]:
    return [entry.path + "/" * entry.is_dir for entry in list_files(store.reader, key, depth)]


@pytest.mark.parametrize(
    ("key", "depth", "shown"),
    [
        pytest.param("", 1, ["a/", "a-b", "a0/", "z"], id="the root"),
        pytest.param("", 2, ["a/", "a/b/", "a/n", "a-b", "a0/", "a0/x", "z"], id="two levels"),
        pytest.param(
            "",
            9,
            ["a/", "a/b/", "a/b/c/", "a/b/c/d", "a/b/e", "a/n", "a-b", "a0/", "a0/x", "z"],
            id="all",
        ),
        pytest.param("a", 1, ["a/b/", "a/n"], id="a folder"),
        pytest.param("a/b", 2, ["a/b/c/", "a/b/c/d", "a/b/e"], id="a folder's folder"),
    ],
)
def test_a_listing_shows_its_levels(
    store: OwnerFile, key: str, depth: int, shown: list[str]
) -> None:
    """Notes and implied folders are listed down to a depth, a folder before its contents."""
    _put(store, "a/b/c/d", "a/b/e", "a/n", "a-b", "a0/x", "z")
    assert _shown(store, key, depth) == shown


def test_an_entry_says_what_it_is(store: OwnerFile) -> None:
    """A note has lines, size, version and time; a folder has none of them."""
    _put(store, "a/n.md", "a/b/c")
    assert list_files(store.reader, "a", 1) == [
        EntryRow("a/b", "b", is_dir=True),
        EntryRow("a/n.md", "n.md", False, 1, 7, 1, store.clock()),  # noqa: FBT003 - a row
    ]


def test_the_root_is_always_there(store: OwnerFile) -> None:
    """An empty store lists as empty; a missing folder, or a note, is not found."""
    assert list_files(store.reader, "", 1) == []
    _put(store, "n")
    for key in ("a", "n"):
        assert not is_folder(store.reader, key)
        with pytest.raises(NotFoundError):
            list_files(store.reader, key, 1)
    with pytest.raises(InvalidInputError):
        list_files(store.reader, "", 0)


@pytest.mark.parametrize("batch", [1, 2, 3, 7], ids=str)
def test_a_listing_is_the_same_in_any_batches(
    store: OwnerFile, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """However many notes are read at a time, none is lost and none repeated."""
    keys = [f"{a}/{b}/{c}" for a in "xyz" for b in "12" for c in "pqr"] + ["x0", "y.z", "zz"]
    _put(store, *keys)
    wanted = [_shown(store, "", depth) for depth in (1, 2, 3)]
    assert len(wanted[2]) == 3 + 6 + 18 + 3
    monkeypatch.setattr(folders, "_BATCH", batch)
    assert [_shown(store, "", depth) for depth in (1, 2, 3)] == wanted


def test_a_listing_is_bounded(store: OwnerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing ends at its limit, at the front of the order."""
    monkeypatch.setattr(folders, "ENTRIES_MAX", 3)
    _put(store, "a/1", "b/2", "c/3")
    assert _shown(store, "", 9) == ["a/", "a/1", "b/"]


_KEYS = st.lists(st.text("a/0.-\U0010ffff", min_size=1), min_size=1).map("/".join)


@given(key=_KEYS, folder=st.one_of(st.just(""), _KEYS))
def test_a_span_is_what_lies_below(key: str, folder: str) -> None:
    """The range of a folder's paths holds exactly the keys under it, byte by byte."""
    low, high = span_below(folder)
    within = low.encode() <= key.encode() and (
        isinstance(high, bytes) or key.encode() < high.encode()
    )
    assert within == is_under(key, folder)
