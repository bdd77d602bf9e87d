"""Bytes that lie on the disk for a while: in a file without a name, and under a key."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.crypto.segments import SEGMENT_BYTES
from app.db.spool import Spool
from app.errors.conflicts import AlreadyExistsError
from app.errors.stores import DiskFullError

SIZES = st.sampled_from([0, 1, SEGMENT_BYTES - 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 150_000])


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """One that is begun."""
    with Spool(tmp_path) as made:
        yield made


def content_of(size: int) -> bytes:
    """Bytes of which no two segments are the same."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


@given(size=SIZES, start=st.integers(0, 160_000), count=st.integers(0, 70_000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_what_was_written_is_read_from_any_place(
    tmp_path: Path, size: int, start: int, count: int
) -> None:
    """As a file, in pieces, and from a place on."""
    content = content_of(size)
    with Spool(tmp_path) as spool:
        for at in range(0, size, 50_000):
            spool.write(content[at : at + 50_000])
        spool.flush()
        spool.finish()
        assert spool.size_bytes == size
        assert b"".join(spool.pieces(start)) == content[start:]
        assert content[start:].startswith(spool.read_at(start, count))
        with spool.reader() as file:
            assert file.seekable()
            assert file.read() == content
            file.seek(start)
            assert file.tell() == start
            assert file.read(count) == content[start : start + count]
            assert file.seek(-min(3, size), os.SEEK_END) == size - min(3, size)
            assert file.read() == content[-3:]


def test_it_has_no_name_and_nothing_of_it_stands_in_clear(spool: Spool, tmp_path: Path) -> None:
    """And nothing is left when it is closed, as when its process ends."""
    spool.write(b"private" * 20_000)
    spool.finish()
    assert list(tmp_path.iterdir()) == []
    descriptor = spool._file.fileno()
    raw = os.pread(descriptor, 1 << 20, 0)
    assert len(raw) > 140_000
    assert b"private" not in raw
    spool.close()
    spool.close()
    with pytest.raises(ValueError, match="closed"):
        spool.read_at(0, 1)


def test_what_was_changed_on_the_disk_is_found(spool: Spool) -> None:
    """It does not open; nor does a part of it in another place."""
    spool.write(b"x" * 100_000)
    spool.finish()
    os.pwrite(spool._file.fileno(), b"y", 70_000)
    assert spool.read_at(0, 9) == b"x" * 9
    with pytest.raises(ValueError, match="segment"):
        spool.read_at(99_999, 1)


def test_it_goes_to_and_comes_from_files(spool: Spool, tmp_path: Path) -> None:
    """A new one, for its owner alone; and no more of one than may come."""
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(content_of(130_000))
    assert spool.load(source, 130_000)
    spool.finish()
    spool.save(target)
    assert target.read_bytes() == content_of(130_000)
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(AlreadyExistsError):
        spool.save(target)
    with Spool(tmp_path) as small:
        assert not small.load(source, 129_999)


def test_a_file_that_cannot_be_finished_is_not_there(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks for it finds nothing, rather than a part."""
    spool.write(b"x")
    spool.finish()

    def fail(_descriptor: int) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        spool.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_as_such(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of every other file."""

    def fail(_descriptor: int, _content: object) -> int:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(DiskFullError):
        spool.finish()
