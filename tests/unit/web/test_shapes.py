"""The forms that requests and answers share."""

import pytest
from pydantic import TypeAdapter, ValidationError

from app.web.shapes import Identifier, Line, Name, Text, Time, time_or_none

ONE = TypeAdapter(Time)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01t00:00:00.123456789z", 123),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_a_time_is_rfc_3339(text: str, at: int) -> None:
    """Each of its forms is read, to the millisecond."""
    assert ONE.validate_python(text) == at


@pytest.mark.parametrize(
    "value",
    [
        "",
        "now",
        0,
        1.5,
        True,
        [],
        {},
        "1970-01-01",
        "1970-01-01T00:00Z",
        "1970-01-01T00:00:00",
        "19700101T000000Z",
        "1970-W01-4T00:00:00Z",
        "1970-13-01T00:00:00Z",
        "1970-02-30T00:00:00Z",
        "1970-01-01T24:00:01Z",
        "1970-01-01T00:00:60Z",
        "1970-01-01T00:00:00+25:00",
        "0001-01-01T00:00:00+14:00",
        "0000-01-01T00:00:00Z",
        "1970-01-01T00:00:00.1234567890Z",
        "\u0661970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z\n",
    ],
    ids=repr,
)
def test_any_other_time_is_refused(value: object) -> None:
    """Other spellings of ISO 8601, numbers and what is on no calendar are no times."""
    with pytest.raises(ValidationError):
        ONE.validate_python(value)


def test_a_time_is_answered_in_one_form() -> None:
    """UTC, three decimals, `Z`; null for none."""
    assert time_or_none(1_700_000_000_005) == "2023-11-14T22:13:20.005Z"
    assert time_or_none(None) is None


LINES = {
    "line": TypeAdapter[str](Line),
    "name": TypeAdapter[str](Name),
    "identifier": TypeAdapter[str](Identifier),
}


@pytest.mark.parametrize("kind", LINES.values(), ids=LINES.keys())
@pytest.mark.parametrize("text", ["a\0", "a\nb", "\x1b[0m", "\x7f"], ids=repr)
def test_a_line_has_no_control_characters(kind: TypeAdapter[str], text: str) -> None:
    """It is shown in lists and terminals."""
    with pytest.raises(ValidationError):
        kind.validate_python(text)


def test_a_text_may_be_long_and_have_lines() -> None:
    """All but NUL is text."""
    assert TypeAdapter(Text).validate_python("a\n\tb\x1b") == "a\n\tb\x1b"
    with pytest.raises(ValidationError):
        TypeAdapter(Text).validate_python("a\0b")
