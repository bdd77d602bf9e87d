"""Who may send how much at the same time: a share a store, and room apart for the slow.

A try that takes long gives its slot to others and goes on in the room for slow ones. If it
fails, its subscriber begins there from then on, until a try goes well or fails soon. So
endpoints that hang, however many and whosever, hold up one another and nobody who answers.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from app.settings import Settings

_SLOW_SHARE: Final = 2
"""A slow subscriber has at most as many tries as a quick one divided by this."""


@dataclass(slots=True, eq=False)
class Share:
    """What one store has of the slots."""

    quick: int = 0
    """Slots it has among the quick ones; what is reserved for it counts too."""
    slow: int = 0
    busy: Counter[str] = field(default_factory=Counter)
    """Tries under way, by subscriber."""
    slow_ones: set[str] = field(default_factory=set)
    """Subscribers whose try takes long, or whose last one did and failed."""


@dataclass(slots=True, eq=False)
class Slot:
    """One try's."""

    share: Share
    subscriber: str
    is_slow: bool
    """Whether it is of the room for slow ones."""
    took_long: bool = False


class Slots:
    """Those of one process."""

    def __init__(self, settings: Settings) -> None:
        """Begin with all of them free."""
        self._quick = settings.deliveries_at_once
        self._slow = settings.deliveries_slow_at_once
        self._per_store = settings.deliveries_per_store
        self._per_subscriber = settings.deliveries_per_subscriber

    @property
    def is_full(self) -> bool:
        """Whether no store can begin anything."""
        return self._quick <= 0

    @property
    def is_slow_full(self) -> bool:
        """Whether no slow subscriber can be told anything."""
        return self._slow <= 0

    def full(self, share: Share) -> list[str]:
        """Subscribers of a store that have as much under way as one may."""
        return [name for name, count in share.busy.items() if count >= self._most(share, name)]

    def may_begin(self, share: Share) -> bool:
        """Whether a store has less than one may."""
        return share.quick < self._per_store

    def reserve(self, share: Share, others: int) -> int:
        """Put slots aside for a store that is about to claim, so that others find theirs.

        Args:
            share: Of the store, which may begin.
            others: How many stores wait behind it.

        Returns:
            How many, at least one.
        """
        fair = max(1, self._quick // (others + 1))
        count = min(fair, self._per_store - share.quick)
        self._move(share, count)
        return count

    def give_back(self, share: Share, count: int) -> None:
        """Free what was reserved and is not taken."""
        self._move(share, -count)

    def _move(self, share: Share, count: int) -> None:
        share.quick += count
        self._quick -= count

    def take(self, share: Share, subscriber: str, reserved: int) -> Slot | None:
        """A slot for one try, of what is reserved or of the room for slow ones.

        The fewer are left, the fewer one subscriber may have: so one alone never takes the
        last, nor a few the last few.

        Args:
            share: Of the store.
            subscriber: Who is told, by id.
            reserved: What is left of the store's reserve.

        Returns:
            It; a quick one is of the reserve. None when there is none for this subscriber now.
        """
        is_slow = subscriber in share.slow_ones
        if is_slow:
            has_room, left = share.slow < self._per_store, self._slow
        else:
            has_room, left = reserved > 0, self._quick + reserved
        if not has_room or share.busy[subscriber] >= min(self._most(share, subscriber), left):
            return None
        share.busy[subscriber] += 1
        if is_slow:
            share.slow += 1
            self._slow -= 1
        return Slot(share, subscriber, is_slow)

    def _most(self, share: Share, subscriber: str) -> int:
        if subscriber in share.slow_ones:
            return max(1, self._per_subscriber // _SLOW_SHARE)
        return self._per_subscriber

    def takes_long(self, slot: Slot) -> None:
        """A try has gone on for long: it is one of the slow, even if these are too many then."""
        slot.took_long = True
        slot.share.slow_ones.add(slot.subscriber)
        if not slot.is_slow:
            slot.is_slow = True
            self._move(slot.share, -1)
            slot.share.slow += 1
            self._slow -= 1

    def tried(self, slot: Slot, *, is_well: bool) -> None:
        """A try is at its end: unless it took long and failed, the next one is a quick one."""
        if is_well or not slot.took_long:
            slot.share.slow_ones.discard(slot.subscriber)

    def free(self, slot: Slot) -> None:
        """A try is over."""
        share = slot.share
        share.busy[slot.subscriber] -= 1
        if not share.busy[slot.subscriber]:
            del share.busy[slot.subscriber]
        if slot.is_slow:
            share.slow -= 1
            self._slow += 1
        else:
            self._move(share, -1)
