"""The log of events: places, pages, pruning."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.clock import Millis
from app.db.runtime.store import RuntimeTransactor
from app.errors.conflicts import (
    EventCursorAheadError,
    EventCursorError,
    EventCursorExpiredError,
    EventLogRestartedError,
)
from app.errors.inputs import InvalidInputError
from app.runtime import events
from app.runtime.events import Cursor, Event, Page, Types
from tests.support.probes import ACTOR, make_store, open_store
from tests.support.stores import MovedClock

EPOCH: Final = "e0"


@pytest.fixture
def clock() -> MovedClock:
    """The store's time."""
    return MovedClock()


@pytest.fixture
def tx(tmp_path: Path, clock: MovedClock) -> Iterator[RuntimeTransactor]:
    """A store with an empty log."""
    path = make_store(tmp_path / "a.db")
    with closing(open_store(path, at=clock)) as connection:
        connection.actor = ACTOR
        yield RuntimeTransactor(connection)


def happen(tx: RuntimeTransactor, count: int = 1) -> None:
    """Change something so many times."""
    for _ in range(count):
        tx._connection.all(f"INSERT INTO probes (id) VALUES ('{tx.new_id()}')")  # noqa: S608 - of this test


def page(
    tx: RuntimeTransactor, after: Cursor | None = None, limit: int = 100, types: Types | None = None
) -> Page:
    """Read on."""
    return events.read_page(tx, EPOCH, after, limit, (types or Types()).admit)


def seqs(found: Page) -> list[int]:
    """The places of what a page shows."""
    return [event.seq for event in found.items]


def test_pages_follow_one_another(tx: RuntimeTransactor) -> None:
    """In the order of commits, without gap or repeat, to an end that is told."""
    happen(tx, 5)
    first = page(tx, limit=3)
    assert (seqs(first), first.next, first.is_end) == ([1, 2, 3], Cursor(EPOCH, 3), False)
    second = page(tx, first.next, limit=3)
    assert (seqs(second), second.next, second.is_end) == ([4, 5], Cursor(EPOCH, 5), True)
    third = page(tx, second.next)
    assert (seqs(third), third.next, third.is_end) == ([], second.next, True)
    happen(tx)
    assert seqs(page(tx, third.next)) == [6]


def test_an_empty_log_has_a_place(tx: RuntimeTransactor) -> None:
    """From which what comes first is seen."""
    start = page(tx).next
    assert start == Cursor(EPOCH, 0)
    happen(tx)
    assert seqs(page(tx, start)) == [1]
    assert events.last_seq(tx) == 1


def test_what_is_not_shown_is_passed_over(tx: RuntimeTransactor) -> None:
    """The place moves on, and a page that looked at enough ends though it shows nothing."""
    happen(tx, 12)
    nothing = events.read_page(tx, EPOCH, None, 5, lambda _event: False)
    assert (nothing.items, nothing.next.seq, nothing.is_end) == ([], 12, True)
    even = events.read_page(tx, EPOCH, None, 3, lambda event: event.seq % 2 == 0)
    assert seqs(even) == [2, 4, 6]
    assert even.next.seq == 6


def test_a_page_looks_at_so_many_and_no_more(
    tx: RuntimeTransactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next page looks at the rest."""
    monkeypatch.setattr(events, "EXAMINED_MAX", 4)
    happen(tx, 6)
    first = events.read_page(tx, EPOCH, None, 10, lambda event: event.seq == 6)
    assert (first.items, first.next.seq, first.is_end) == ([], 4, False)
    second = events.read_page(tx, EPOCH, first.next, 10, lambda event: event.seq == 6)
    assert (seqs(second), second.is_end) == ([6], True)


def test_a_place_that_cannot_be_followed_is_refused(
    tx: RuntimeTransactor, clock: MovedClock
) -> None:
    """Another epoch's, ahead of the log, before what is kept: each by its name."""
    happen(tx, 4)
    with pytest.raises(EventLogRestartedError):
        page(tx, Cursor("e1", 2))
    with pytest.raises(EventCursorAheadError):
        page(tx, Cursor(EPOCH, 5))
    clock.advance(1)
    happen(tx)
    assert events.prune(tx, clock(), 3) == 3
    with pytest.raises(EventCursorExpiredError) as caught:
        page(tx, Cursor(EPOCH, 2))
    assert caught.value.first_seq == 4
    assert seqs(page(tx, Cursor(EPOCH, 3))) == [4, 5]
    assert seqs(page(tx)) == [4, 5]


def test_pruning_keeps_the_position(tx: RuntimeTransactor, clock: MovedClock) -> None:
    """Also when nothing is left: places go on where they were."""
    happen(tx, 3)
    assert events.prune(tx, clock(), 10) == 0
    clock.advance(1)
    assert events.prune(tx, clock(), 2) == 2
    assert events.prune(tx, clock(), 2) == 1
    assert events.prune(tx, clock(), 2) == 0
    found = page(tx)
    assert (found.items, found.next) == ([], Cursor(EPOCH, 3))
    with pytest.raises(EventCursorExpiredError) as caught:
        page(tx, Cursor(EPOCH, 2))
    assert caught.value.first_seq == 4
    happen(tx)
    assert seqs(page(tx, found.next)) == [4]


def test_a_clock_that_went_back_makes_no_hole(tx: RuntimeTransactor, clock: MovedClock) -> None:
    """What stands behind a younger event stays with it."""
    happen(tx)
    clock.advance(10)
    happen(tx)
    clock.advance(-10)
    happen(tx)
    assert events.prune(tx, Millis(clock.now_ms + 1), 10) == 1
    assert seqs(page(tx)) == [2, 3]


_STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("happen"), st.integers(1, 4)),
        st.tuples(st.just("read"), st.integers(1, 5)),
        st.tuples(st.just("prune"), st.integers(1, 5)),
    ),
    max_size=30,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_whoever_follows_sees_everything_once_or_is_told(
    tx: RuntimeTransactor, clock: MovedClock, steps: list[tuple[str, int]]
) -> None:
    """In any order of changes, pages and prunings; a gap is never passed in silence."""
    tx._connection.all("SAVEPOINT history")
    place, seen, happened, kept_from = Cursor(EPOCH, events.last_seq(tx)), 0, 0, 1
    base = place.seq
    for act, count in steps:
        clock.advance(1)
        if act == "happen":
            happen(tx, count)
            happened += count
        elif act == "prune":
            kept_from += events.prune(tx, clock(), count)
        else:
            try:
                found = page(tx, place, count)
            except EventCursorExpiredError as error:
                told = error.first_seq
                assert (kept_from > seen + 1, told) == (True, base + kept_from)
                place, seen = Cursor(EPOCH, told - 1), kept_from - 1
                continue
            assert kept_from <= seen + 1
            shown = [seq - base for seq in seqs(found)]
            assert shown == list(range(seen + 1, min(seen + count, happened) + 1))
            seen += len(shown)
            place = found.next
    tx._connection.all("ROLLBACK TO history")
    tx._connection.all("RELEASE history")


@pytest.mark.parametrize("cursor", [Cursor("0a", 0), Cursor("f" * 64, 10**18 - 1)])
def test_a_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    """Epoch and place."""
    assert events.parse_cursor(cursor.text) == cursor


@pytest.mark.parametrize(
    "text",
    ["", ".", "e.1.2", "e.-1", "e.01", "E.1", "e. 1", "e.1\n", ".1", "e.", "e.9" + "9" * 19, "g.1"],
)
def test_what_no_cursor_looks_like_is_refused(text: str) -> None:
    """As every field that cannot be taken."""
    with pytest.raises(InvalidInputError):
        events.parse_cursor(text)


def _event(kind: str) -> Event:
    entity = kind.partition(".")[0]
    return Event(1, "i", 1, entity, "e", kind, "human", "s", None, "members", "{}")


@pytest.mark.parametrize(
    ("texts", "admitted"),
    [
        ([], {"note.made", "note.gone", "report.made"}),
        (["note.made"], {"note.made"}),
        (["note.*"], {"note.made", "note.gone"}),
        (["note.*", "report.made", "report.gone"], {"note.made", "note.gone", "report.made"}),
        (["other.*"], set()),
    ],
)
def test_types_say_what_is_wanted(texts: list[str], admitted: set[str]) -> None:
    """Whole names, or every type of an entity; none of them is everything."""
    types = events.parse_types(texts)
    kinds = ("note.made", "note.gone", "report.made")
    assert {kind for kind in kinds if types.admit(_event(kind))} == admitted


@pytest.mark.parametrize(
    "text", ["", "note", "*", "*.made", "note.", ".x", "note.m*", "A.b", "a.b,"]
)
def test_what_no_type_looks_like_is_refused(text: str) -> None:
    """And with it the whole list."""
    with pytest.raises(InvalidInputError):
        events.parse_types(["note.made", text])


def test_every_refusal_of_a_place_is_of_one_kind() -> None:
    """So that a stream can end on it."""
    for kind in (EventLogRestartedError, EventCursorExpiredError, EventCursorAheadError):
        assert issubclass(kind, EventCursorError)
