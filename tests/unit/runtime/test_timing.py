"""When schedules are due, over both changes of the clocks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.clock import Millis, parse_rfc3339, rfc3339
from app.errors.inputs import InvalidScheduleError
from app.runtime.timing import Timing, next_after, require_timing, times_after
from tests.support.matrix import chosen

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOW: Final = Millis(1_700_000_000_000)


def _times(cron: str, zone: str, after: str, count: int) -> list[str]:
    timing = Timing(cron, None, zone)
    return [rfc3339(at)[:16] for at in islice(times_after(timing, parse_rfc3339(after)), count)]


_CHANGES = [
    pytest.param(
        "30 2 * * *",
        "Europe/Berlin",
        "2024-03-30T12:00:00Z",
        ["2024-03-31T01:00", "2024-04-01T00:30"],
        id="passed over in Berlin: at the first moment after",
    ),
    pytest.param(
        "30 2 * * *",
        "Europe/Berlin",
        "2024-10-26T12:00:00Z",
        ["2024-10-27T00:30", "2024-10-28T01:30"],
        id="shown twice in Berlin: the first time",
    ),
    pytest.param(
        "15 2 * * *",
        "America/New_York",
        "2024-03-09T12:00:00Z",
        ["2024-03-10T07:00", "2024-03-11T06:15"],
        id="passed over in New York",
    ),
    pytest.param(
        "30 1 * * *",
        "America/New_York",
        "2024-11-02T12:00:00Z",
        ["2024-11-03T05:30", "2024-11-04T06:30"],
        id="shown twice in New York",
    ),
    pytest.param(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2024-10-05T10:00:00Z",
        ["2024-10-05T15:30", "2024-10-06T15:15"],
        id="passed over on Lord Howe, by half an hour",
    ),
    pytest.param(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2024-04-06T10:00:00Z",
        ["2024-04-06T14:45", "2024-04-07T15:15"],
        id="shown twice on Lord Howe",
    ),
    pytest.param(
        "*/30 2 * * *",
        "Europe/Berlin",
        "2024-03-30T12:00:00Z",
        ["2024-03-31T01:00", "2024-04-01T00:00"],
        id="every half of one hour, passed over: once",
    ),
    pytest.param(
        "0,10,50 2 * * *",
        "Europe/Berlin",
        "2024-03-30T12:00:00Z",
        ["2024-03-31T01:00", "2024-04-01T00:00", "2024-04-01T00:10"],
        id="minutes of one hour by name, passed over: once too",
    ),
    pytest.param(
        "*/20 1-3 * * *",
        "Europe/Berlin",
        "2024-03-31T00:00:00Z",
        ["2024-03-31T00:20", "2024-03-31T00:40", "2024-03-31T01:00", "2024-03-31T01:20"],
        id="every third of hours on both sides: goes on, with none more",
    ),
    pytest.param(
        "50 1-3 * * *",
        "Europe/Berlin",
        "2024-03-31T00:00:00Z",
        ["2024-03-31T00:50", "2024-03-31T01:00", "2024-03-31T01:50", "2024-03-31T23:50"],
        id="one minute of each of them: the hour that is missing has its run",
    ),
    pytest.param(
        "*/30 2 * * *",
        "Europe/Berlin",
        "2024-10-26T12:00:00Z",
        ["2024-10-27T00:00", "2024-10-27T00:30", "2024-10-28T01:00"],
        id="every half of one hour, shown twice: the first times",
    ),
    pytest.param(
        "0 */2 * * *",
        "Europe/Berlin",
        "2024-10-26T23:00:00Z",
        ["2024-10-27T00:00", "2024-10-27T03:00"],
        id="every second hour: hours chosen by a step are chosen",
    ),
    pytest.param(
        "0 0 * * *",
        "Africa/Cairo",
        "2024-04-24T12:00:00Z",
        ["2024-04-24T22:00", "2024-04-25T22:00", "2024-04-26T21:00"],
        id="midnight passed over in Cairo",
    ),
]


@pytest.mark.parametrize(("cron", "zone", "after", "expected"), _CHANGES)
def test_a_time_that_the_clocks_pass_over_or_show_twice_comes_once(
    cron: str, zone: str, after: str, expected: list[str]
) -> None:
    """And the day after it is back in its place."""
    assert _times(cron, zone, after, len(expected)) == expected


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("day", ["2024-03-09", "2024-03-30", "2024-10-26", "2024-11-02"])
def test_every_hour_is_every_real_hour(zone: str, day: str) -> None:
    """Over both changes, none is left out and none comes twice."""
    start = parse_rfc3339(f"{day}T00:00:00Z")
    found = list(islice(times_after(Timing("0 * * * *", None, zone), start), 60))
    assert {later - earlier for earlier, later in pairwise(found)} == {3_600_000}


def _real_minutes(after: int, days: int) -> Iterator[int]:
    first = after // 60_000 + 1
    return iter(range(first * 60_000, first * 60_000 + days * 86_400_000, 60_000))


def _local(at: int, zone: ZoneInfo) -> datetime:
    return (_EPOCH + timedelta(milliseconds=at)).astimezone(zone)


def _expected(
    hours: frozenset[int], minutes: frozenset[int], zone: ZoneInfo, after: int
) -> set[int]:
    """A second opinion, minute by minute: what the clocks on the wall show."""
    found: set[int] = set()
    shown: set[datetime] = set()
    before = _local(after - after % 60_000, zone).replace(tzinfo=None)
    for at in _real_minutes(after, 3):
        wall = _local(at, zone).replace(tzinfo=None)
        passed_over = wall - before > timedelta(minutes=1) and any(
            (before + timedelta(minutes=n)).hour in hours
            and (before + timedelta(minutes=n)).minute in minutes
            for n in range(1, (wall - before) // timedelta(minutes=1))
        )
        is_due = wall.hour in hours and wall.minute in minutes
        is_again = wall in shown and len(hours) < 24
        if (is_due and not is_again) or (passed_over and len(hours) < 24):
            found.add(at)
        shown.add(wall)
        before = wall
    return found


_ZONES: Final = [
    ("Europe/Berlin", "2024-03-30T00:00:00Z"),
    ("Europe/Berlin", "2024-10-26T00:00:00Z"),
    ("America/New_York", "2024-03-09T00:00:00Z"),
    ("America/New_York", "2024-11-02T00:00:00Z"),
    ("Australia/Lord_Howe", "2024-04-05T12:00:00Z"),
    ("Australia/Lord_Howe", "2024-10-04T12:00:00Z"),
    ("Africa/Cairo", "2024-04-24T00:00:00Z"),
    ("America/Havana", "2024-03-09T00:00:00Z"),
    ("America/Havana", "2024-11-02T00:00:00Z"),
    ("Asia/Kolkata", "2024-04-24T00:00:00Z"),
    ("UTC", "2024-04-24T00:00:00Z"),
]


@settings(max_examples=chosen([10], [200])[0])
@given(
    place=st.sampled_from(_ZONES),
    hours=st.sets(st.integers(0, 23), min_size=1, max_size=24),
    minutes=st.sets(st.integers(0, 59), min_size=1, max_size=4),
)
@example(place=_ZONES[0], hours=set(range(24)), minutes={0, 30})
@example(place=_ZONES[4], hours=set(range(24)), minutes={0})
@example(place=_ZONES[5], hours=set(range(24)), minutes={0, 15})
@example(place=_ZONES[1], hours={2}, minutes={0, 30})
@example(place=_ZONES[6], hours={0}, minutes={0})
@example(place=_ZONES[8], hours={0, 1}, minutes={0})
def test_what_comes_is_what_the_clocks_on_the_wall_show(
    place: tuple[str, str], hours: set[int], minutes: set[int]
) -> None:
    """For any hours and minutes, over three days with a change of the clocks among them."""
    zone, after = ZoneInfo(place[0]), parse_rfc3339(place[1])
    cron = f"{','.join(map(str, sorted(minutes)))} {','.join(map(str, sorted(hours)))} * * *"
    until = after + 3 * 86_400_000
    found = []
    for at in times_after(Timing(cron, None, place[0]), after):
        if at > until:
            break
        found.append(at)
    assert found == sorted(set(found))
    assert set(found) == _expected(frozenset(hours), frozenset(minutes), zone, after)


def test_a_walk_that_begins_in_the_second_of_two_hours_comes_to_no_past() -> None:
    """At 02:10 in winter time 02:30 has been, in summer time."""
    after = parse_rfc3339("2024-10-27T01:10:00Z")
    found = next_after(Timing("30 2 * * *", None, "Europe/Berlin"), after)
    assert found is not None
    assert rfc3339(found)[:16] == "2024-10-28T01:30"


def test_an_interval_counts_from_where_it_begins() -> None:
    """In real time, whatever the clocks show."""
    timing = Timing(None, 90, "Europe/Berlin")
    assert list(islice(times_after(timing, 1_000), 3)) == [91_000, 181_000, 271_000]


_REFUSED = [
    pytest.param(Timing(None, None), id="neither"),
    pytest.param(Timing("* * * * *", 60), id="both"),
    pytest.param(Timing("* * * *", None), id="four fields"),
    pytest.param(Timing("* * * * * *", None), id="seconds"),
    pytest.param(Timing("@daily", None), id="a word"),
    pytest.param(Timing("60 * * * *", None), id="no such minute"),
    pytest.param(Timing("0 0 30 2 *", None), id="no such day"),
    pytest.param(Timing("0 0 31 2,4 *", None), id="no such days"),
    pytest.param(Timing("٣ 9 * * *", None), id="other digits"),
    pytest.param(Timing("", None), id="nothing"),
    pytest.param(Timing("* * * * *", None, "Mars/Olympus"), id="no such zone"),
    pytest.param(Timing("* * * * *", None, "../etc/passwd"), id="a path"),
    pytest.param(Timing(None, 60, ""), id="no zone"),
]


@pytest.mark.parametrize("timing", _REFUSED)
def test_what_is_no_timing_is_refused(timing: Timing) -> None:
    """Before anything is stored."""
    with pytest.raises(InvalidScheduleError):
        require_timing(timing, _NOW)


@pytest.mark.parametrize(
    "cron", ["* * * * *", "0 9 * * mon-fri", "0 9 L * *", "0 0 29 2 *", "*/5 8-18/2 1,15 * 5"]
)
def test_a_cron_of_five_fields_is_taken(cron: str) -> None:
    """With the words and steps that the field uses."""
    require_timing(Timing(cron, None, "America/New_York"), _NOW)


def test_a_day_that_never_comes_is_found_out() -> None:
    """The 30th of February can be written so that only a search tells."""
    assert next_after(Timing("0 0 29 2 */7", None), _NOW) is not None
    end = parse_rfc3339("9999-12-31T23:59:00Z")
    assert next_after(Timing("0 0 1 1 *", None), end) is None
