"""A file's segments: each opens in its own place of its own file, and nowhere else."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crypto.keys import Key
from app.crypto.segments import (
    SEALED_BYTES,
    SEGMENT_BYTES,
    TAG_BYTES,
    SegmentError,
    Segments,
    count,
    sealed_size,
)

VECTORS: list[dict[str, str | int | bool]] = json.loads(
    (Path(__file__).parent / "vectors" / "segments.json").read_text("utf-8")
)
KEY = Key(bytes(range(32)))


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["name"])
def test_a_segment_of_form_1_stays(row: dict[str, str | int | bool]) -> None:
    """The same key, file and place give for ever the same bytes."""
    segments = Segments(Key(bytes.fromhex(str(row["key"]))), str(row["file"]))
    number, is_last = int(row["number"]), bool(row["is_last"])
    plaintext, segment = (bytes.fromhex(str(row[each])) for each in ("plaintext", "segment"))
    assert segments.seal(number, plaintext, is_last=is_last) == segment
    assert segments.open(number, segment, is_last=is_last) == plaintext


def test_a_segment_opens_in_its_place_alone() -> None:
    """Not under another number, as last where it is not, in another file, or under another key."""
    here = Segments(KEY, "a")
    segment = here.seal(1, b"content", is_last=False)
    assert here.open(1, segment, is_last=False) == b"content"
    wrong: list[Callable[[], bytes]] = [
        lambda: here.open(0, segment, is_last=False),
        lambda: here.open(1, segment, is_last=True),
        lambda: Segments(KEY, "b").open(1, segment, is_last=False),
        lambda: Segments(Key.generate(), "a").open(1, segment, is_last=False),
        lambda: here.open(1, segment[:-1], is_last=False),
        lambda: here.open(1, b"", is_last=False),
        lambda: here.open(1, bytes([segment[0] ^ 1]) + segment[1:], is_last=False),
    ]
    for attempt in wrong:
        with pytest.raises(SegmentError) as caught:
            attempt()
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("size", "segments"),
    [(0, 1), (1, 1), (SEGMENT_BYTES, 1), (SEGMENT_BYTES + 1, 2), (5 * SEGMENT_BYTES, 5)],
)
def test_a_file_has_as_many_segments_as_its_content_fills(size: int, segments: int) -> None:
    """At least one: an empty file is an empty last segment."""
    assert count(size) == segments
    assert sealed_size(size) == size + segments * TAG_BYTES


@given(st.integers(min_value=0, max_value=1 << 40))
def test_two_sizes_of_content_are_two_sizes_of_files(size: int) -> None:
    """So a file that was cut is told before anything is opened."""
    assert sealed_size(size + 1) > sealed_size(size)
    assert sealed_size(size) <= count(size) * SEALED_BYTES
