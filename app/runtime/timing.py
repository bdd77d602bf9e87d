"""When a schedule is due: by cron in a time zone, or by an interval.

A cron time that the clocks pass over in spring comes once, at the first moment after the
gap; one that they show twice in autumn comes once, the first time. Several of one schedule
that are passed over come together as one: they are one moment. That holds wherever the
hours are chosen, be it by a step (`*/2`). Only with every hour chosen (`*`) real time
counts: then it comes in each hour there is. (cron(8) of Debian, 3.0pl1, and cronsim go by
whether the field begins with `*`, and so lose or double what is due at `*/30 2`.)
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from app.clock import Millis
from app.errors.inputs import InvalidScheduleError

FIELDS: Final = 5
"""Of a cron expression: minute, hour, day of month, month, day of week."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule is due: by exactly one of cron and interval."""

    cron: str | None
    """Five fields; None for an interval."""
    interval_s: int | None
    """Seconds; None for cron."""
    timezone: str = "UTC"
    """IANA name; an interval does not ask for it."""


def require_timing(timing: Timing, now: Millis) -> None:
    """Refuse what is no timing, or is never due.

    Raises:
        InvalidScheduleError: Neither or both of cron and interval, a cron that is none or that
            no day fits, or a time zone that is none.
    """
    if (timing.cron is None) == (timing.interval_s is None):
        raise InvalidScheduleError
    if timing.timezone not in _zones():
        raise InvalidScheduleError
    if timing.cron is None:
        return
    try:
        _fields(timing.cron)
    except CronSimError:
        raise InvalidScheduleError from None
    if next_after(timing, now) is None:
        raise InvalidScheduleError


def next_after(timing: Timing, at: int) -> int | None:
    """The first time due after a moment; None when there is none for fifty years.

    Args:
        timing: As `require_timing` lets pass.
        at: Unix milliseconds; of an interval also the moment from which it counts.

    Returns:
        Unix milliseconds.
    """
    return next(times_after(timing, at), None)


def times_after(timing: Timing, at: int) -> Iterator[int]:
    """Every time due after a moment, in order, without end or for fifty years.

    Args:
        timing: As `require_timing` lets pass.
        at: Unix milliseconds; of an interval also the moment from which it counts.

    Yields:
        Unix milliseconds, each later than the one before.
    """
    if timing.interval_s is not None:
        step = timing.interval_s * 1000
        while True:
            at += step
            yield at
    last = at
    with_zone = (_EPOCH + timedelta(milliseconds=at)).astimezone(ZoneInfo(timing.timezone))
    for moment in _walk(_fields(timing.cron or ""), with_zone):
        due = (moment.astimezone(UTC) - _EPOCH) // _MS
        # Begun in an hour that the clocks show twice, the walk may first come to the past.
        if due > last:
            last = due
            yield due


def _walk(fields: str, start: datetime) -> Iterator[datetime]:
    # The calendar's end is no error of whoever asks what comes next.
    try:
        yield from CronSim(fields, start)
    except OverflowError:
        return


@functools.lru_cache(maxsize=256)
def _fields(cron: str) -> str:
    """The expression in the words that have cronsim keep the rule of this module.

    Returns:
        Five fields.

    Raises:
        CronSimError: It is no cron expression.
    """
    parts = cron.split()
    if len(parts) != FIELDS:
        message = "Wrong number of fields"
        raise CronSimError(message)
    sim = CronSim(cron, _EPOCH)
    minute, hour, *days = parts
    if len(sim.hours) == _HOURS:
        hour = "*"
    else:
        # It takes a field that begins with a star for one that goes by real time.
        minute = minute.replace("*", "0-59")
        hour = hour.replace("*", "0-23")
    return " ".join([minute, hour, *days])


@functools.lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
