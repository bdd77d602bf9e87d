"""What a store can hold as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors.inputs import InvalidInputError
from app.owner.text import measure


@given(st.text(st.characters(exclude_characters="\x00", codec="utf-8")))
def test_size_is_that_of_utf_8(text: str) -> None:
    """A text's size is its bytes in UTF-8."""
    assert measure(text) == len(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\x00b", id="NUL"),
        pytest.param("é\ud800", id="high surrogate"),
        pytest.param("\udfff", id="low surrogate"),
    ],
)
def test_what_no_store_can_hold_is_refused(text: str) -> None:
    """NUL and lone surrogates are an input error, not the driver's."""
    with pytest.raises(InvalidInputError):
        measure(text)
