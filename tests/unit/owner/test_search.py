"""Search in a real store."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.owner.edits import ReplaceText
from app.owner.notes import Condition, edit_note, put_note
from app.owner.search import search
from app.owner.tree import delete_note
from tests.support.stores import ANA, OwnerFile

_ANY = Condition()


def _put(store: OwnerFile, key: str, content: str) -> None:
    with store.write() as tx:
        put_note(tx, key, content, ANA, _ANY)


def _found(store: OwnerFile, q: str) -> list[str]:
    return [hit.path for hit in search(store.reader, q, 20)]


@pytest.mark.parametrize(
    "q",
    [
        "multi-agent",
        "it's",
        "C++",
        "50%",
        "@me",
        "a.b",
        "NEAR",
        '"quoted run"',
        "cafe",
        "日本",
        "本語",
    ],
)
def test_what_a_note_says_is_found(store: OwnerFile, q: str) -> None:
    """Words with punctuation, accents or without spaces are found as a person types them."""
    _put(store, "n", 'The multi-agent "quoted run", it\'s C++ at 50% for @me: a.b NEAR 日本語 café')
    _put(store, "other", "nothing of that")
    assert _found(store, q) == ["n"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(q=st.text(st.characters(codec=None), max_size=40))
def test_any_text_is_a_query(store: OwnerFile, q: str) -> None:
    """No text whatever makes a search fail."""
    search(store.reader, q, 5)


def test_a_hit_shows_its_place(store: OwnerFile) -> None:
    """A hit has the line and surroundings of the first place, the score and the time."""
    _put(store, "a/n", "first\n\nthe needle is here\n")
    [hit] = search(store.reader, "NEEDLE", 5)
    assert (hit.path, hit.line, hit.updated_at) == ("a/n", 3, store.clock())
    assert "needle is here" in hit.snippet
    assert hit.score == 1


def test_a_place_far_down_a_long_note_is_shown(store: OwnerFile) -> None:
    """What a search reads of every note at once is not all that it looks through."""
    _put(store, "long", "filler é\n" * 20_000 + "the needle is here\n")
    _put(store, "short", "x " * 2_000 + "\nneedle")
    hits = {hit.path: hit for hit in search(store.reader, "needle", 5)}
    assert (hits["long"].line, hits["short"].line) == (20_001, 2)
    assert "needle is here" in hits["long"].snippet


def test_the_best_comes_first(store: OwnerFile) -> None:
    """A word in the path weighs more than in the text, and more places more than one."""
    filler = "some other words that stand around here " * 5
    _put(store, "a", f"{filler} budget {filler}")
    _put(store, "b", "budget budget budget")
    _put(store, "budget", "x")
    for number in range(9):
        _put(store, f"filler/{number}", filler)
    hits = search(store.reader, "budget", 9)
    assert [hit.path for hit in hits] == ["budget", "b", "a"]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1
    assert scores[-1] > 0
    assert len(search(store.reader, "budget", 2)) == 2


@pytest.mark.parametrize("q", ["", "  ", '"', "*", "-", "!?"], ids=repr)
def test_nothing_searchable_finds_nothing(store: OwnerFile, q: str) -> None:
    """A query without a word is an empty answer."""
    _put(store, "n", "text")
    assert search(store.reader, q, 5) == []


def test_the_index_follows_every_change(store: OwnerFile) -> None:
    """New words are found at once and old ones no more."""
    _put(store, "n", "alpha")
    with store.write() as tx:
        edit_note(tx, "n", [ReplaceText("alpha", "beta")], ANA, _ANY, 99)
    assert (_found(store, "alpha"), _found(store, "beta")) == ([], ["n"])
    with store.write() as tx:
        delete_note(tx, "n", condition=_ANY, purge=False, recursive=False, author=ANA)
    assert _found(store, "beta") == []
    store.check()


def test_a_huge_note_of_one_word_is_searched_soon(store: OwnerFile) -> None:
    """Four million bytes of one word answer in a fraction of a second."""
    _put(store, "big", "word " * 800_000)
    start = time.perf_counter()
    [hit] = search(store.reader, "word", 5)
    assert time.perf_counter() - start < 1
    assert hit.line == 1
