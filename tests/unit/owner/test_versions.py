"""The history of notes."""

import pytest

from app.errors.callers import NotFoundError
from app.owner import versions
from app.owner.notes import Condition, append_note, put_note
from app.owner.tree import delete_note
from app.owner.versions import APPENDS_MS, get_version, list_versions
from tests.support.stores import ANA, BEN, OwnerFile

_ANY = Condition()
_AGENT = f"{ANA}/helper"


def _put(store: OwnerFile, content: str, author: str = ANA) -> None:
    with store.write() as tx:
        put_note(tx, "n", content, author, _ANY)


def _append(store: OwnerFile, text: str, author: str = ANA) -> None:
    with store.write() as tx:
        append_note(tx, "n", text, author, _ANY, 10**6)


def _texts(store: OwnerFile) -> list[str | None]:
    rows = reversed(list_versions(store.reader, "n", None, 999))
    return [get_version(store.reader, "n", row.version).content for row in rows]


def test_every_text_is_kept(store: OwnerFile) -> None:
    """Each version gives the text, author and way it was made, newest first in the list."""
    _put(store, "one")
    store.clock.advance(1)
    _put(store, "two!", BEN)
    second, first = list_versions(store.reader, "n", None, 9)
    assert (first.version, first.author, first.via, first.size_bytes) == (1, ANA, "put", 3)
    assert (second.version, second.author, second.size_bytes) == (2, BEN, 4)
    assert second.created_at == first.created_at + 1
    assert _texts(store) == ["one", "two!"]


def test_pages_neither_repeat_nor_skip(store: OwnerFile) -> None:
    """A page begins after the version that ended the page before."""
    for number in range(5):
        _put(store, f"text {number}")
    first = list_versions(store.reader, "n", None, 2)
    rest = list_versions(store.reader, "n", first[-1].version, 9)
    assert [row.version for row in first + rest] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("number", [0, -1, 2, 2**63, 10**30], ids=str)
def test_a_number_that_is_not_kept_is_not_found(store: OwnerFile, number: int) -> None:
    """Any number from outside is either a version or not found."""
    _put(store, "one")
    with pytest.raises(NotFoundError):
        get_version(store.reader, "n", number)


def test_appends_of_one_author_become_one_version(store: OwnerFile) -> None:
    """Appends within ten minutes of the first are one version, with the newest number."""
    _append(store, "1")
    store.clock.advance(APPENDS_MS - 1)
    _append(store, "2")
    store.clock.advance(1)
    _append(store, "3")
    assert _texts(store) == ["1\n2", "1\n2\n3"]
    assert [row.version for row in list_versions(store.reader, "n", None, 9)] == [3, 2]


def test_appends_of_two_authors_stay_apart(store: OwnerFile) -> None:
    """What one author appended is not covered by another's append, an agent's included."""
    _append(store, "1")
    _append(store, "2", _AGENT)
    _append(store, "3")
    _append(store, "4")
    assert _texts(store) == ["1", "1\n2", "1\n2\n3\n4"]


def test_the_text_before_an_overwrite_or_deletion_is_kept(store: OwnerFile) -> None:
    """Appends never reach back over an overwrite, an edit or a deletion."""
    _append(store, "1")
    _put(store, "2", BEN)
    _append(store, "3")
    with store.write() as tx:
        delete_note(tx, "n", condition=_ANY, purge=False, recursive=False, author=ANA)
    _append(store, "4")
    assert _texts(store) == ["1", "2", "2\n3", None, "4"]


def test_a_note_keeps_so_many_versions(store: OwnerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the oldest version goes first."""
    monkeypatch.setattr(versions, "VERSIONS_MAX", 3)
    for number in range(5):
        _put(store, f"text {number}")
    assert _texts(store) == ["text 2", "text 3", "text 4"]


def test_nobody_washes_away_what_another_wrote(
    store: OwnerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last text before another author's overwrite outlives any number of overwrites."""
    monkeypatch.setattr(versions, "VERSIONS_MAX", 3)
    _put(store, "mine, early")
    _put(store, "mine")
    for number in range(9):
        _put(store, f"noise {number}", _AGENT)
    assert _texts(store) == ["mine", "noise 7", "noise 8"]


def test_the_limit_holds_whoever_writes(store: OwnerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every version is somebody's last word, the oldest still goes."""
    monkeypatch.setattr(versions, "VERSIONS_MAX", 3)
    for number in range(6):
        _put(store, f"text {number}", (ANA, BEN)[number % 2])
    assert _texts(store) == ["text 3", "text 4", "text 5"]


def test_the_limit_is_two_hundred(store: OwnerFile) -> None:
    """A note has two hundred versions at most."""
    with store.write() as tx:
        for number in range(205):
            put_note(tx, "n", f"text {number}", ANA, _ANY)
    kept = [row.version for row in list_versions(store.reader, "n", None, 999)]
    assert kept == list(range(205, 5, -1))


def test_a_deletion_is_no_last_word(store: OwnerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text before a deletion is kept longer than the deletion itself."""
    _put(store, "early")
    _put(store, "last")
    with store.write() as tx:
        delete_note(tx, "n", condition=_ANY, purge=False, recursive=False, author=ANA)
    monkeypatch.setattr(versions, "VERSIONS_MAX", 3)
    _put(store, "4", BEN)
    assert _texts(store) == ["last", None, "4"]
    _put(store, "5", ANA)
    assert _texts(store) == ["last", "4", "5"]
    _put(store, "6", BEN)
    assert _texts(store) == ["4", "5", "6"]


def test_digests_of_paths_tell_nothing_across_stores(store: OwnerFile) -> None:
    """A path's digest depends on the store's own key."""
    _put(store, "one")
    [(digest,)] = store.rows("SELECT path_digest FROM memory_paths")
    with store.write() as tx:
        store.rows("UPDATE store_identity SET path_key = x'00'")
        assert versions.next_version(tx, "n", 1) == 2
    assert len(store.rows("SELECT path_digest FROM memory_paths")) == 2
    assert digest != b""
