"""Identifiers."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ids import is_uuid, new_uuid7

_TIMES = st.integers(min_value=0, max_value=2**48 - 1)


@given(now_ms=_TIMES)
def test_an_id_is_a_uuid7_that_carries_its_time(now_ms: int) -> None:
    """An id is canonical, of version 7 and the RFC's variant, and begins with its milliseconds."""
    text = new_uuid7(now_ms)
    parsed = uuid.UUID(text)
    assert is_uuid(text)
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == now_ms


@given(earlier=_TIMES, later=_TIMES)
def test_ids_sort_by_time(earlier: int, later: int) -> None:
    """Of two ids, the one of the earlier millisecond sorts first as text."""
    earlier, later = sorted((earlier, later))
    assert earlier == later or new_uuid7(earlier) < new_uuid7(later)


def test_ids_of_one_millisecond_differ() -> None:
    """Ten thousand ids of one millisecond are all different."""
    assert len({new_uuid7(1) for _ in range(10_000)}) == 10_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("0190163D-8694-739B-AEA5-966C26F8AD91", id="upper case"),
        pytest.param("0190163d8694739baea5966c26f8ad91", id="no dashes"),
        pytest.param("{0190163d-8694-739b-aea5-966c26f8ad91}", id="braces"),
        pytest.param("urn:uuid:0190163d-8694-739b-aea5-966c26f8ad91", id="urn"),
        pytest.param("0190163d-8694-739b-aea5-966c26f8ad91\n", id="newline"),
        pytest.param("../0190163d-8694-739b-aea5-966c26f8ad91", id="path"),
        pytest.param("\u0660190163d-8694-739b-aea5-966c26f8ad91", id="another script's zero"),
    ],
)
def test_only_the_canonical_form_is_an_id(text: str) -> None:
    """Another spelling of an id, or anything else, is none."""
    assert not is_uuid(text)
