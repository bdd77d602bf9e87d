"""Operations on record: one runner, one shape, told once."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from app.db.runtime.store import RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import RunnerLostError
from app.runtime import steps
from app.runtime.steps import Run
from tests.support.stores import OwnerFile, owner_file

SHAPE: Final = ("one", "two")
RUN: Final = Run("k")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A store of its own."""
    with owner_file(tmp_path) as made:
        yield made


def _begin(store: OwnerFile) -> None:
    with store.write() as tx:
        steps.begin(tx, RUN, "act", "ana", SHAPE)
        steps.sent(tx, RUN, "one", "this")


@contextmanager
def _refused(store: OwnerFile) -> Iterator[RuntimeTransactor]:
    before = store.rows("SELECT * FROM sys_step_records"), store.rows("SELECT * FROM sys_steps")
    with pytest.raises(RunnerLostError), store.write() as tx:
        yield tx
    assert before == (
        store.rows("SELECT * FROM sys_step_records"),
        store.rows("SELECT * FROM sys_steps"),
    )


def test_an_operation_goes_from_its_beginning_to_its_end(store: OwnerFile) -> None:
    """What was asked is kept as a digest alone, what came of it as it is."""
    _begin(store)
    with store.write() as tx:
        steps.answered(tx, RUN, "one", {"count": 3})
        steps.sent(tx, RUN, "two", "that")
    [record] = steps.list_open(store.reader)
    assert (record.action, record.subject, record.generation) == ("act", "ana", 1)
    assert steps.answers(store.reader, "k") == {"one": {"count": 3}}
    assert "this" not in str(store.rows("SELECT * FROM sys_steps"))
    with store.write() as tx:
        assert steps.finish(tx, RUN, "done")
        assert not steps.finish(tx, RUN, "undone")
    assert steps.list_open(store.reader) == []
    assert steps.find_open(store.reader, "k") is None
    assert store.rows("SELECT outcome FROM sys_step_records") == [("done",)]


def test_a_runner_that_lost_its_generation_cannot_write(store: OwnerFile) -> None:
    """Neither a step nor an answer nor the end; who took over can."""
    _begin(store)
    with store.write() as tx:
        taken = steps.take_over(tx, "k", SHAPE, {"one": "this", "two": "anything"})
    assert taken == Run("k", 2)
    with _refused(store) as tx:
        steps.sent(tx, RUN, "two", "that")
    with _refused(store) as tx:
        steps.answered(tx, RUN, "one", {})
    with _refused(store) as tx:
        steps.finish(tx, RUN, "done")
    with store.write() as tx:
        steps.sent(tx, taken, "one", "this")
        steps.answered(tx, taken, "one", {})
        assert steps.finish(tx, taken, "undone")


def test_a_step_that_is_sent_again_asks_the_same(store: OwnerFile) -> None:
    """And is answered only when it was sent."""
    _begin(store)
    with store.write() as tx:
        steps.sent(tx, RUN, "one", "this")
    with _refused(store) as tx:
        steps.sent(tx, RUN, "one", "that")
    with _refused(store) as tx:
        steps.answered(tx, RUN, "two", {})


@pytest.mark.parametrize(
    ("shape", "asked"),
    [(("one",), {}), (("two", "one"), {}), ((), {}), (SHAPE, {"one": "that"})],
    ids=["fewer steps", "another order", "no such operation", "another request"],
)
def test_what_was_begun_otherwise_is_left_to_a_person(
    store: OwnerFile, shape: tuple[str, ...], asked: dict[str, str]
) -> None:
    """Marked, nobody runs it, until somebody lets it go on with the steps of this program."""
    _begin(store)
    with store.write() as tx:
        assert steps.take_over(tx, "k", shape, asked) is None
    [record] = steps.list_open(store.reader)
    assert record.diverged
    with store.write() as tx:
        assert steps.take_over(tx, "k", SHAPE, {}) is None
    with _refused(store) as tx:
        steps.finish(tx, RUN, "done")
    with store.write() as tx:
        assert steps.release(tx, "k", SHAPE).shape == "one,two"
    with store.write() as tx:
        taken = steps.take_over(tx, "k", SHAPE, {"one": "that"})
        assert taken is not None
        steps.sent(tx, taken, "one", "that")
        assert steps.finish(tx, taken, "undone")


def test_only_what_is_marked_is_let_go_on(store: OwnerFile) -> None:
    """Nothing under way, and nothing that never was."""
    _begin(store)
    for key in ("k", "other"):
        with pytest.raises(NotFoundError), store.write() as tx:
            steps.release(tx, key, SHAPE)


def test_what_is_over_is_not_taken_over(store: OwnerFile) -> None:
    """Nor what never was."""
    _begin(store)
    with store.write() as tx:
        steps.finish(tx, RUN, "done")
        assert steps.take_over(tx, "k", SHAPE, {}) is None
        assert steps.take_over(tx, "other", SHAPE, {}) is None


def test_what_takes_long_is_told_once(store: OwnerFile) -> None:
    """From its first start on, whoever runs it."""
    _begin(store)
    with closing(store):
        with store.write() as tx:
            assert steps.mark_late(tx, tx.now_ms - 1) == []
        store.clock.advance(1000)
        with store.write() as tx:
            [late] = steps.mark_late(tx, tx.now_ms - 1000)
            assert (late.key, late.alerted_at) == ("k", tx.now_ms)
        with store.write() as tx:
            assert steps.mark_late(tx, tx.now_ms) == []
