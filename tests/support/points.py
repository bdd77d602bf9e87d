"""Named points at which other matrices than that of `test_kill` end the program."""

from typing import Final

REPEATED: Final = frozenset({"once.acted", "once.answered", "close.taken", "close.written"})
"""Of requests that come again: `test_idempotency_kill`."""

ELSEWHERE: Final = REPEATED
"""All of them."""
