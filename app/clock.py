"""The one source of time."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NewType

Millis = NewType("Millis", int)
"""Unix milliseconds, UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Clock = Callable[[], Millis]
"""Answers the present; tests pass their own and move it."""


def system_clock() -> Millis:
    """The wall clock's present, in Unix milliseconds UTC."""
    return Millis(time.time_ns() // 1_000_000)


def rfc3339(at: int) -> str:
    """Write a time in Unix milliseconds as RFC 3339, UTC, three decimals and `Z`."""
    moment = _EPOCH + timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_rfc3339(text: str) -> Millis:
    """Read an RFC 3339 time that names its offset.

    Returns:
        Unix milliseconds, UTC; what is finer is cut off.

    Raises:
        ValueError: It is not one, has no offset, or lies outside the years 1 to 9999.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = "a time needs its offset"
        raise ValueError(message)
    try:
        return Millis((moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1))
    except OverflowError as error:
        message = "a time outside the calendar"
        raise ValueError(message) from error
