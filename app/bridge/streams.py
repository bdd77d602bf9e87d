"""How many streams of events are open in this process, and whose."""

from collections import Counter

from app.errors.callers import TooManyStreamsError
from app.errors.stores import OverloadedError
from app.ids import UserId


class Streams:
    """Those that are open."""

    def __init__(self) -> None:
        self._open: Counter[UserId] = Counter()

    @property
    def count(self) -> int:
        """How many there are."""
        return self._open.total()

    def enter(self, user_id: UserId, each_max: int, all_max: int) -> None:
        """Count one more.

        Raises:
            TooManyStreamsError: The member has as many as one may.
            OverloadedError: There are as many as the process bears.
        """
        if self._open[user_id] >= each_max:
            raise TooManyStreamsError
        if self._open.total() >= all_max:
            raise OverloadedError
        self._open[user_id] += 1

    def leave(self, user_id: UserId) -> None:
        """Count one less."""
        self._open[user_id] -= 1
        if not self._open[user_id]:
            del self._open[user_id]
