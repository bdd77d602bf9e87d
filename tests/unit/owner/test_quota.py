"""What a store may hold, judged inside of the transaction that adds to it."""

from collections.abc import Callable
from functools import partial

import pytest

from app.db.owner.store import OwnerTransactor
from app.errors.stores import QuotaExceededError
from app.owner.edits import ReplaceText
from app.owner.notes import Condition, Written, edit_note, put_note
from app.owner.quota import Quota
from app.owner.tree import delete_note
from tests.support.stores import OwnerFile

ROOM = 1 << 30


def putting(key: str, text: str = "text") -> Callable[[OwnerTransactor], Written]:
    """A write of one note."""
    return lambda tx: put_note(tx, key, text, "ana", Condition())


def test_what_a_store_holds_is_its_pages_in_use_and_the_files_beside_it(store: OwnerFile) -> None:
    """As they are in the transaction; what is purged makes room without the file's getting less."""
    quota = Quota(ROOM, 9, lambda: 1_000_000)
    with store.write() as tx:
        before = quota.used(tx)
        assert before > 1_000_000
        quota.hold(tx, putting("a", "x" * 500_000), 500_000)
        full = quota.used(tx)
        assert full >= before + 1_000_000  # the note, and its version
    remove = partial(
        delete_note, key="a", condition=Condition(), purge=True, recursive=False, author="ana"
    )
    with store.write() as tx:
        quota.hold(tx, remove, None)
        assert quota.used(tx) < before + 100_000


def test_what_would_not_fit_is_refused_and_undone(store: OwnerFile) -> None:
    """By what it says it adds, and by what it added; the error says what is left."""
    with store.write() as tx:
        used = Quota(0, 9, lambda: 0).used(tx)
    for limit, adds in ((used + 10, 11), (used + 10, 1)):
        quota = Quota(limit, 9, lambda: 0)
        with pytest.raises(QuotaExceededError) as refused, store.write() as tx:
            quota.hold(tx, putting("a", "x" * 50_000), adds)
        assert (refused.value.limit, refused.value.limit_max) == ("bytes", limit)
        assert refused.value.left == 10
    assert store.rows("SELECT count(*) FROM memory_docs") == [(0,)]


def test_notes_are_counted_when_they_are_made(store: OwnerFile) -> None:
    """An empty one too; what stands there may be written again."""
    quota = Quota(ROOM, 2, lambda: 0)
    for key, text in (("a", "x"), ("b", ""), ("a", "y")):
        with store.write() as tx:
            quota.hold(tx, putting(key, text), len(text))
    with pytest.raises(QuotaExceededError) as refused, store.write() as tx:
        quota.hold(tx, putting("c", ""), 0)
    error = refused.value
    assert (error.limit, error.limit_max, error.left) == ("notes", 2, 0)


def test_a_store_past_its_limit_takes_what_takes_away(store: OwnerFile) -> None:
    """And says that nothing is left."""
    quota = Quota(1, 9, lambda: 0)
    with store.write() as tx:
        assert quota.hold(tx, lambda _tx: "done", None) == "done"
        with pytest.raises(QuotaExceededError) as refused:
            quota.require_within(tx)
    assert refused.value.left == 0


def test_an_edit_that_takes_words_away_is_judged_by_the_version_it_keeps(store: OwnerFile) -> None:
    """The text gets shorter and the store larger; a purge is done all the same."""
    text = "".join(f"{number:05} " for number in range(9)) + "word " * 20_000
    with store.write() as tx:
        putting("a", text)(tx)
    with store.write() as tx:
        limit = Quota(ROOM, 9, lambda: 0).used(tx) + 3 * len(text)
    quota = Quota(limit, 9, lambda: 0)

    def shorten(number: int) -> bool:
        edits = [ReplaceText(f"{number:05} ", "")]
        try:
            with store.write() as tx:
                quota.hold(tx, lambda tx: edit_note(tx, "a", edits, "ana", Condition(), ROOM), 0)
        except QuotaExceededError:
            return False
        return True

    done = sum(shorten(number) for number in range(9))
    assert 0 < done <= 3
    assert store.rows("SELECT size_bytes FROM memory_docs") == [(len(text) - 6 * done,)]
    remove = partial(
        delete_note, key="a", condition=Condition(), purge=True, recursive=False, author="ana"
    )
    with store.write() as tx:
        assert quota.hold(tx, remove, None) == 1
        assert quota.used(tx) < limit
