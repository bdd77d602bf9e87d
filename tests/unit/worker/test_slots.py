"""Slots of tries: a share a store, turns, and room apart for the slow."""

import pytest

from app.settings import Settings
from app.worker.slots import Share, Slot, Slots


def slots(**chosen: int) -> Slots:
    """Of a process with these settings."""
    named = {f"deliveries_{name}": value for name, value in chosen.items()}
    return Slots(Settings.model_validate(named))


def taken(of: Slots, share: Share, subscriber: str, reserved: int) -> list[Slot]:
    """As many as one subscriber gets of a reserve, or of the room for slow ones."""
    found: list[Slot] = []
    while (slot := of.take(share, subscriber, reserved)) is not None:
        found.append(slot)
        reserved -= not slot.is_slow
    return found


@pytest.mark.parametrize(("waiting", "each"), [(1, 8), (2, 8), (4, 4), (16, 1), (20, 1)])
def test_each_store_in_line_gets_its_share(waiting: int, each: int) -> None:
    """Alone no more than one store may have, among many one each, as far as there are any."""
    of, shares = slots(at_once=16, per_store=8), [Share() for _ in range(waiting)]
    for behind, share in zip(reversed(range(waiting)), shares, strict=True):
        if not of.is_full:
            of.reserve(share, behind)
    assert {share.quick for share in shares[:16]} == {each}
    assert sum(share.quick for share in shares) <= 16
    assert of.may_begin(shares[0]) == (each < 8)


def test_what_is_reserved_and_not_taken_is_free_again() -> None:
    """And so is what was taken, once its try is over."""
    of, share = slots(at_once=4, per_store=4, per_subscriber=4), Share()
    reserved = of.reserve(share, 0)
    assert (reserved, of.is_full) == (4, True)
    slot = of.take(share, "a", reserved)
    assert slot is not None
    of.give_back(share, reserved - 1)
    assert (share.quick, share.busy["a"], of.is_full) == (1, 1, False)
    of.free(slot)
    assert (share.quick, share.busy, of.reserve(share, 0)) == (0, {}, 4)


def test_one_subscriber_never_takes_the_last() -> None:
    """Neither of the quick slots nor of the others."""
    of, share = slots(at_once=4, slow_at_once=4, per_store=4, per_subscriber=8), Share()
    reserved = of.reserve(share, 0)
    assert len(taken(of, share, "a", reserved)) == 2
    of, share = slots(at_once=8, slow_at_once=4, per_store=4, per_subscriber=8), Share()
    share.slow_ones |= {"a", "b", "c"}
    counts = [len(taken(of, share, name, 0)) for name in ("a", "b", "c")]
    assert counts == [2, 1, 1]
    assert of.is_slow_full


def test_a_try_that_takes_long_gives_its_slot_to_others() -> None:
    """If it fails, its subscriber begins among the slow, with half as many, until it is quick."""
    of, share = slots(at_once=2, slow_at_once=8, per_store=2, per_subscriber=2), Share()
    reserved = of.reserve(share, 0)
    [slot] = taken(of, share, "a", reserved - 1)
    of.give_back(share, reserved - 1)
    of.takes_long(slot)
    of.takes_long(slot)
    assert (share.quick, share.slow, of.full(share)) == (0, 1, ["a"])
    assert of.reserve(share, 0) == 2
    assert of.take(share, "a", 2) is None
    of.free(slot)
    again = of.take(share, "a", 2)
    assert again is not None
    assert (again.is_slow, share.slow, share.quick) == (True, 1, 2)
    of.tried(slot, is_well=False)
    assert share.slow_ones == {"a"}
    of.tried(again, is_well=False)
    of.free(again)
    assert (share.slow, share.slow_ones) == (0, set())
    last = of.take(share, "a", 2)
    assert last is not None
    assert not last.is_slow
    of.takes_long(last)
    of.tried(last, is_well=True)
    assert not share.slow_ones


def test_the_room_for_slow_ones_is_bounded_for_those_known_to_be() -> None:
    """A store has its share of it too; one that proves slow is let in all the same."""
    of, share = slots(at_once=4, slow_at_once=2, per_store=1, per_subscriber=4), Share()
    share.slow_ones |= {"a", "b"}
    slow = of.take(share, "a", 0)
    assert slow is not None
    assert of.take(share, "b", 0) is None
    other, third = Share(), Share()
    for each in (other, third):
        [slot] = taken(of, each, "c", of.reserve(each, 0))
        of.takes_long(slot)
    assert of.is_slow_full
    assert not of.is_full
    of.free(slow)
    assert of.is_slow_full
