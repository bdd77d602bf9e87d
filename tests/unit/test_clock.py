"""The source of time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import Millis, parse_rfc3339, rfc3339, system_clock


def test_the_system_clock_tells_unix_milliseconds() -> None:
    """The system clock stands between two looks at the operating system's."""
    before = time.time_ns() // 1_000_000
    now = system_clock()
    assert before <= now <= time.time_ns() // 1_000_000


@pytest.mark.parametrize(
    ("at", "text"),
    [
        pytest.param(0, "1970-01-01T00:00:00.000Z", id="epoch"),
        pytest.param(1_709_210_096_007, "2024-02-29T12:34:56.007Z", id="leap day"),
        pytest.param(-1, "1969-12-31T23:59:59.999Z", id="before the epoch"),
    ],
)
def test_a_time_is_written_with_three_decimals_and_z(at: int, text: str) -> None:
    """A time is written in UTC with exactly three decimals."""
    assert rfc3339(Millis(at)) == text


@given(at=st.integers(min_value=-62_135_596_800_000, max_value=253_402_300_799_999))
def test_what_is_written_reads_back(at: int) -> None:
    """Every millisecond of the years 1 to 9999 reads back as itself."""
    assert parse_rfc3339(rfc3339(Millis(at))) == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("1970-01-01T01:00:00+01:00", 0, id="another offset"),
        pytest.param("1970-01-01T00:00:01Z", 1000, id="no decimals"),
        pytest.param("1970-01-01T00:00:00.0019Z", 1, id="more decimals than kept"),
    ],
)
def test_any_offset_and_precision_is_read(text: str, at: int) -> None:
    """A time in another offset or precision is the same moment, to the millisecond before."""
    assert parse_rfc3339(text) == at


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("yesterday", id="a word"),
        pytest.param("2024-02-30T00:00:00Z", id="no such day"),
        pytest.param("2024-02-29T00:00:00", id="no offset"),
        pytest.param("2024-02-29", id="no time"),
        pytest.param("0001-01-01T00:00:00+14:00", id="before the year 1 in UTC"),
        pytest.param("9999-12-31T23:59:59-14:00", id="after the year 9999 in UTC"),
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    """A text that names no moment is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - the standard library's own messages
        parse_rfc3339(text)
