"""Places in lists that run from the newest back."""

from typing import Final

END: Final = 2**63 - 1
"""The largest number that a store holds: no row stands after it."""


def place_before(number: int | None) -> int:
    """Where a list goes on.

    Args:
        number: Of the row that ended the page before, perhaps forged; None for the newest.

    Returns:
        A number that the store can compare.
    """
    return END if number is None else max(0, min(number, END))
