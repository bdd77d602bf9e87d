"""Places in lists."""

import pytest

from app.owner.cursor import END, place_before


@pytest.mark.parametrize(
    ("number", "place"),
    [
        pytest.param(None, END, id="the newest"),
        pytest.param(7, 7, id="a row"),
        pytest.param(10**30, END, id="too large"),
        pytest.param(-(10**30), 0, id="too small"),
    ],
)
def test_any_number_is_a_place(number: int | None, place: int) -> None:
    """A forged cursor gives a page, not an error of the driver."""
    assert place_before(number) == place
