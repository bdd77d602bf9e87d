"""Old versions go: what stays is said by rules, held over any history."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import Millis
from app.db.owner.rows import VersionRow
from app.ids import NoteId
from app.owner import notes, thinning, tree, versions
from app.owner.notes import Condition
from tests.support.stores import ANA, BEN, MovedClock, OwnerFile

HOUR = 3_600_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A store of one's own."""
    file = OwnerFile(tmp_path / "s.db", clock=MovedClock(1_700_000_000_000 // HOUR * HOUR))
    yield file
    file.close()


@st.composite
def histories(draw: st.DrawFn) -> list[VersionRow]:
    """The versions of one path, newest first, at times that never go back."""
    at, rows = 0, []
    for version in range(1, draw(st.integers(0, 30)) + 1):
        at += draw(st.integers(0, HOUR))
        is_deletion = draw(st.integers(0, 5)) == 0
        author = draw(st.sampled_from("ab"))
        rows.append(VersionRow(version, NoteId("n"), 1, author, "put", at, int(is_deletion)))
    return rows[::-1]


@given(rows=histories(), before=st.integers(0, 20 * HOUR))
def test_what_goes_is_old_superfluous_and_nobodys_last_word(
    rows: list[VersionRow], before: int
) -> None:
    """And what stays is the same when it is looked at again."""
    gone = set(thinning.superfluous(rows, before))
    kept = [row for row in rows if row.version not in gone]
    assert all(row.created_at < before for row in rows if row.version in gone)
    assert rows[:1] == kept[:1]
    assert all(not row.is_deletion for row in rows if row.version in gone)
    for newer, older in pairwise(rows):
        if newer.is_deletion or newer.author != older.author:
            assert older.version not in gone
    firsts = {row.created_at // HOUR: row.version for row in rows}
    assert not gone & set(firsts.values())
    assert thinning.superfluous(kept, before) == []
    plain = {row.version for row in rows if row.author == "a" and not row.is_deletion}
    if len(plain) == len(rows) and rows:
        old = {row.created_at // HOUR for row in rows if row.created_at < before}
        young = [row for row in rows if row.created_at >= before]
        assert len(kept) <= len(old) + len(young) + 1


def _write(store: OwnerFile, path: str, text: str, author: str = ANA) -> None:
    with store.write() as tx:
        notes.put_note(tx, path, text, author, Condition())


def _kept(store: OwnerFile, path: str) -> list[int]:
    rows = versions.list_versions(store.reader, path, None, 1_000)
    return [row.version for row in reversed(rows)]


def test_of_each_hour_the_first_stays(store: OwnerFile) -> None:
    """Six an hour for three hours; the newest stays as well, and what is young."""
    for number in range(18):
        _write(store, "a.md", f"text {number}")
        store.clock.advance(HOUR // 6)
    before = Millis(store.clock.now_ms - HOUR)
    with store.write() as tx:
        done = thinning.thin(tx, before, "", 500)
    assert done == (10, 11, None)
    assert _kept(store, "a.md") == [1, 7, 13, 14, 15, 16, 17, 18]


def test_it_goes_on_where_it_stopped(store: OwnerFile) -> None:
    """Path by path, as far as the limit allows."""
    for path in ("a.md", "b.md", "c.md"):
        for number in range(3):
            _write(store, path, f"text {number}")
    store.clock.advance(30 * HOUR)
    before = Millis(store.clock.now_ms)
    places = [""]
    while len(places) < 9:
        with store.write() as tx:
            done = thinning.thin(tx, before, places[-1], 2)
        if done.after is None:
            break
        places.append(done.after)
    assert places == ["", "a.md", "b.md", "c.md"]
    assert [_kept(store, path) for path in ("a.md", "b.md", "c.md")] == [[1, 3]] * 3


def test_too_many_bytes_go_from_the_oldest(store: OwnerFile) -> None:
    """But never the newest of a path, nor the last word of somebody."""
    for number in range(5):
        _write(store, "a.md", f"{number}" * 100)
        store.clock.advance(1_000)
    _write(store, "b.md", "x" * 100)
    _write(store, "b.md", "y" * 100, BEN)
    with store.write() as tx:
        assert thinning.shrink(tx, 700, 500) == 0
        assert thinning.shrink(tx, 550, 500) == 2
    assert (_kept(store, "a.md"), _kept(store, "b.md")) == ([3, 4, 5], [1, 2])
    with store.write() as tx:
        assert thinning.shrink(tx, 1, 1) == 1
        assert thinning.shrink(tx, 1, 500) == 1
        assert thinning.shrink(tx, 1, 500) == 0
    assert (_kept(store, "a.md"), _kept(store, "b.md")) == ([5], [1, 2])


def test_a_note_that_was_deleted_keeps_its_last_text(store: OwnerFile) -> None:
    """And that it was deleted."""
    for number in range(3):
        _write(store, "a.md", f"text {number}")
    with store.write() as tx:
        tree.delete_note(
            tx, "a.md", condition=Condition(), purge=False, recursive=False, author=ANA
        )
    store.clock.advance(30 * HOUR)
    with store.write() as tx:
        thinning.thin(tx, Millis(store.clock.now_ms), "", 500)
        thinning.shrink(tx, 1, 500)
    assert _kept(store, "a.md") == [3, 4]
