"""A request that may come twice: what is kept of it, for how long, and for whom."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from app.db.owner.store import OwnerReader
from app.errors.callers import NotFoundError
from app.errors.conflicts import IdempotencyAnswerNotKeptError, IdempotencyInProgressError
from app.errors.inputs import IdempotencyKeyReusedError
from app.runtime import idempotency
from app.runtime.idempotency import Answer, Once, Replayed
from tests.support.stores import ANA, BEN, OwnerFile, owner_file

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_MAX: Final = 64
_OPERATION: Final = "an operation"


def _render(result: object) -> Answer:
    status, text = result if isinstance(result, tuple) else (200, result)
    return Answer(status, {"etag": '"1"'}, str(text).encode())


def _once(  # noqa: PLR0913 - what a request has
    *,
    caller: str = ANA,
    key: str = "key",
    route: str = "PUT /api/file",
    digest: bytes = b"asked",
    keep_ms: int = _DAY_MS,
    reach: Callable[[str], None] = lambda _point: None,
) -> Once:
    return Once(
        caller=caller,
        key=key,
        route=route,
        digest=digest,
        render=_render,
        keep_ms=keep_ms,
        body_bytes_max=_MAX,
        reach=reach,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A store of one member."""
    with owner_file(tmp_path) as made:
        yield made


def _act(store: OwnerFile, once: Once, result: object = "done") -> object:
    with store.write() as tx:
        return once(tx, lambda: result)


def _answer(store: OwnerFile, once: Once) -> Answer:
    """The kept answer; nothing may be done for it."""
    with pytest.raises(Replayed) as replayed, store.write() as tx:
        once(tx, lambda: pytest.fail("done twice"))
    return replayed.value.answer


def _begin(store: OwnerFile, once: Once, promise: object = None) -> Once:
    begun = once.of(_OPERATION)
    with store.write() as tx:
        begun.begin(tx, promise)
    return begun


def _settle(store: OwnerFile, outcome: idempotency.Outcome) -> None:
    with store.write() as tx:
        idempotency.settle(tx, _OPERATION, outcome)


def test_the_answer_is_given_again_for_a_day(store: OwnerFile) -> None:
    """Status, headers and body as they were; a day later the request is another one."""
    assert _act(store, _once(), (201, "made")) == (201, "made")
    store.clock.advance(_DAY_MS - 1)
    assert _answer(store, _once()) == (201, {"etag": '"1"'}, b"made")
    store.clock.advance(1)
    assert _act(store, _once(), "anew") == "anew"
    assert _answer(store, _once()).body == b"anew"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_once(digest=b"asked otherwise"), id="another body"),
        pytest.param(_once(route="POST /api/file/append"), id="another route"),
    ],
)
def test_a_key_is_of_one_request(store: OwnerFile, other: Once) -> None:
    """Another is refused, and what it was used for is as it was."""
    _act(store, _once())
    with pytest.raises(IdempotencyKeyReusedError):
        _act(store, other)
    with pytest.raises(IdempotencyKeyReusedError):
        other.require_same(store.reader)
    _once().require_same(store.reader)
    assert _answer(store, _once()).body == b"done"


@pytest.mark.parametrize("caller", [BEN, f"{ANA}/agent"])
def test_a_key_is_of_one_caller(store: OwnerFile, caller: str) -> None:
    """Another member's and an agent's are other keys."""
    _act(store, _once())
    assert _act(store, _once(caller=caller), "another") == "another"
    assert _answer(store, _once()).body == b"done"


def test_the_digest_is_kept_under_the_store_s_own_key(store: OwnerFile, tmp_path: Path) -> None:
    """Whoever sees the row cannot try what was asked, nor compare it with another store's."""
    (tmp_path / "other").mkdir()
    with owner_file(tmp_path / "other") as other:
        _act(store, _once())
        _act(other, _once())
        [[mine]] = store.rows("SELECT body_mac FROM sys_idempotency_keys")
        [[theirs]] = other.rows("SELECT body_mac FROM sys_idempotency_keys")
    assert isinstance(mine, bytes)
    assert len(mine) == 32
    assert mine != theirs


@pytest.mark.parametrize("status", [199, 300, 404, 500])
def test_only_a_success_is_kept(store: OwnerFile, status: int) -> None:
    """Any other answer may be another one the next time."""
    _act(store, _once(), (status, ""))
    assert _act(store, _once(), "done") == "done"
    begun = _begin(store, _once(key="second"))
    _act(store, begun, (status, ""))
    assert _act(store, _once(key="second"), "done") == "done"


def test_a_large_answer_is_not_kept_but_what_was_done_is(store: OwnerFile) -> None:
    """It is not done again; that it was done is said."""
    _act(store, _once(), "x" * _MAX)
    assert len(_answer(store, _once()).body) == _MAX
    _act(store, _once(key="large"), "x" * (_MAX + 1))
    with pytest.raises(IdempotencyAnswerNotKeptError):
        _act(store, _once(key="large"))


def test_what_may_not_be_told_again_is_judged_first(store: OwnerFile) -> None:
    """The judge is asked for a kept answer alone."""
    asked: list[OwnerReader] = []

    def refuse(reader: OwnerReader) -> None:
        asked.append(reader)
        raise NotFoundError

    _act(store, _once().judged(refuse))
    assert not asked
    with pytest.raises(NotFoundError):
        _act(store, _once().judged(refuse))
    assert len(asked) == 1


def test_what_is_in_progress_is_asked_for_in_vain(store: OwnerFile) -> None:
    """Until its own run ends it."""
    begun = _begin(store, _once())
    for twin in (_once(), _once().of(_OPERATION), _once().of("another")):
        with pytest.raises(IdempotencyInProgressError), store.write() as tx:
            twin.begin(tx)
    with pytest.raises(IdempotencyInProgressError):
        _act(store, _once())
    with pytest.raises(IdempotencyInProgressError):
        _once().require_new(store.reader)
    with store.write() as tx:
        begun.begin(tx, is_again=True)
    assert _act(store, begun, "ended") == "ended"
    assert _answer(store, _once()).body == b"ended"
    _settle(store, "undone")
    assert _answer(store, _once()).body == b"ended"


def test_what_was_undone_may_be_asked_again(store: OwnerFile) -> None:
    """Its key is free; so is one whose operation promised an answer."""
    for promise in (None, "promised"):
        _begin(store, _once(), promise)
        _settle(store, "undone")
    assert _act(store, _once(), "at last") == "at last"


def test_what_a_crash_left_and_was_finished_is_answered_as_promised(store: OwnerFile) -> None:
    """Without a promise the key is free, and the request is judged anew."""
    _begin(store, _once(), (200, "promised"))
    _begin(store, _once(key="unpromised"))
    _settle(store, "done")
    assert _answer(store, _once()) == (200, {"etag": '"1"'}, b"promised")
    _once(key="unpromised").require_new(store.reader)


def test_what_expired_is_pruned_in_batches_oldest_first(store: OwnerFile) -> None:
    """What is still good stays."""
    for hours in (3, 1, 2, 5):
        _act(store, _once(key=f"{hours} h", keep_ms=hours * _HOUR_MS))
    store.clock.advance(3 * _HOUR_MS)
    for removed, left in ((2, ["3 h", "5 h"]), (1, ["5 h"]), (0, ["5 h"])):
        with store.write() as tx:
            assert idempotency.prune(tx, store.clock(), 2) == removed
        rows = store.rows("SELECT key FROM sys_idempotency_keys ORDER BY key")
        assert [key for (key,) in rows] == left


def test_of_who_is_erased_nothing_is_kept(store: OwnerFile) -> None:
    """Their keys and their agents' go; answers to others that name them lose their body."""
    for caller in (BEN, f"{BEN}/agent", f"{BEN}0", ANA):
        _act(store, _once(caller=caller), f"about {BEN}" if caller == ANA else "")
    _begin(store, _once(caller=ANA, key="open"), f"about {BEN}")
    with store.write() as tx:
        idempotency.forget_user(tx, BEN)
    rows = store.rows("SELECT caller, state, body FROM sys_idempotency_keys ORDER BY caller, state")
    assert rows == [
        (ANA, "done", None),
        (ANA, "in_progress", f"about {BEN}".encode()),
        (f"{BEN}0", "done", b""),
    ]


def test_nothing_of_it_is_told_by_accident(store: OwnerFile) -> None:
    """Neither key nor answer stands in what a traceback shows."""
    once = _once(key="a-private-key")
    _act(store, once, "a private answer")
    with pytest.raises(Replayed) as replayed, store.write() as tx:
        once(tx, lambda: None)
    shown = f"{once!r} {replayed.value!r} {replayed.value}"
    assert "private" not in shown


def test_the_point_before_the_commit_is_reached(store: OwnerFile) -> None:
    """Effect and answer stand in the transaction by then; undone with it, neither is there."""

    def stop(point: str) -> None:
        raise KeyError(point)

    with pytest.raises(KeyError, match=r"once\.acted"):
        _act(store, _once(reach=stop))
    assert _act(store, _once()) == "done"


def test_a_store_without_its_keys_is_no_store(store: OwnerFile) -> None:
    """The migrations make them."""
    with store.write() as tx:
        store.connection.all("DELETE FROM sys_store_keys")
        with pytest.raises(RuntimeError, match="keys"):
            _once()(tx, lambda: None)
