"""Files beside a store: whole and durable or not there, and damage is told."""

import errno
import os
import threading
from pathlib import Path
from typing import Final

import pytest

from app.crypto.keys import Key
from app.crypto.segments import SEALED_BYTES, SEGMENT_BYTES
from app.db import blobs
from app.db.blobs import NewFile
from app.errors.stores import DiskFullError, FileDamagedError, StoreBusyError
from tests.support.stores import MovedClock

KEY: Final = Key(bytes(range(32)))
SIZES: Final = [0, 1, SEGMENT_BYTES - 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 3 * SEGMENT_BYTES + 7]


def _content(size: int) -> bytes:
    return (b"some content of a file. " * (size // 24 + 1))[:size]


def _written(folder: Path, content: bytes, piece: int = 10_000) -> Path:
    file = NewFile(folder, KEY, MovedClock())
    for at in range(0, len(content), piece):
        file.add(content[at : at + piece])
    file.finish()
    return folder / file.name


def _read(path: Path, size: int) -> bytes:
    return blobs.read(path, KEY, size, 0, 100)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [7_919, SEGMENT_BYTES, 1 << 20])
def test_what_was_written_is_read(tmp_path: Path, size: int, piece: int) -> None:
    """However it came, whole and in parts; on the disk nothing of it can be seen."""
    content = _content(size)
    path = _written(tmp_path / "files" / "owner", content, piece)
    assert _read(path, size) == content
    assert path.stat().st_size == blobs.sealed_size(size)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert b"content" not in path.read_bytes()
    for first in range(len(content) // SEGMENT_BYTES + 1):
        part = content[first * SEGMENT_BYTES :][:SEGMENT_BYTES]
        assert blobs.read(path, KEY, size, first, 1) == part


def test_a_file_bears_the_time_of_the_clock(tmp_path: Path) -> None:
    """Its age is judged by the clock that all rows are judged by."""
    _written(tmp_path, b"x")
    [found] = blobs.list_folder(tmp_path)
    assert found.changed_at == MovedClock()()
    assert not found.is_new


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _cut_a_segment(path: Path) -> None:
    os.truncate(path, SEALED_BYTES)


def _lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[SEALED_BYTES + 5] ^= 1
    path.write_bytes(raw)


def _reorder(path: Path) -> None:
    raw = path.read_bytes()
    first, second = raw[:SEALED_BYTES], raw[SEALED_BYTES : 2 * SEALED_BYTES]
    path.write_bytes(second + first + raw[2 * SEALED_BYTES :])


def _repeat(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:SEALED_BYTES] * 2 + raw[2 * SEALED_BYTES :])


def _exchange(path: Path) -> None:
    _written(path.parent, _content(2 * SEGMENT_BYTES + 9)).rename(path)


@pytest.mark.parametrize(
    "damage", [_cut, _cut_a_segment, _lengthen, _flip, _reorder, _repeat, _exchange, Path.unlink]
)
def test_damage_is_told(tmp_path: Path, damage: object) -> None:
    """Cut, added to, changed, its segments or the whole file exchanged, gone: never other bytes."""
    size = 2 * SEGMENT_BYTES + 9
    path = _written(tmp_path, _content(size))
    assert callable(damage)
    damage(path)
    with pytest.raises(FileDamagedError):
        _read(path, size)


def test_a_file_that_was_cut_to_fewer_segments_is_told_though_its_row_says_so(
    tmp_path: Path,
) -> None:
    """The last segment is marked, so no other can end a file."""
    path = _written(tmp_path, _content(2 * SEGMENT_BYTES + 9))
    os.truncate(path, SEALED_BYTES)
    with pytest.raises(FileDamagedError):
        _read(path, SEGMENT_BYTES)


def test_what_is_discarded_leaves_nothing(tmp_path: Path) -> None:
    """Begun or finished, once or twice."""
    for is_finished in (False, True):
        file = NewFile(tmp_path, KEY, MovedClock())
        file.add(_content(SEGMENT_BYTES + 1))
        [found] = blobs.list_folder(tmp_path)
        assert found.is_new
        if is_finished:
            file.finish()
        file.discard()
        file.discard()
        assert blobs.list_folder(tmp_path) == []
        with pytest.raises(FileDamagedError):
            file.add(_content(2 * SEGMENT_BYTES))


def test_a_piece_that_comes_too_late_is_written_to_no_other_file(tmp_path: Path) -> None:
    """A thread may still write when the request is gone; the descriptor is another's by then."""
    file = NewFile(tmp_path, KEY, MovedClock())
    other = tmp_path / "other"
    failures: list[FileDamagedError] = []

    def write() -> None:
        try:
            for _ in range(50):
                file.add(_content(4 * SEGMENT_BYTES))
        except FileDamagedError as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    file.discard()
    with other.open("xb") as taken:
        thread.join()
        taken.write(b"another's")
    assert other.read_bytes() == b"another's"
    assert failures


def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a store."""
    file = NewFile(tmp_path, KEY, MovedClock())

    def refuse(_descriptor: int, _content: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(DiskFullError):
        file.add(_content(SEGMENT_BYTES + 1))
    file.discard()
    assert blobs.list_folder(tmp_path) == []


def test_a_write_that_is_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take less than it was given."""
    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, content: whole(fd, content[:1000]))
    path = _written(tmp_path, _content(SEGMENT_BYTES + 1))
    assert _read(path, SEGMENT_BYTES + 1) == _content(SEGMENT_BYTES + 1)


def test_a_folder_that_goes_meanwhile_is_no_place_for_a_file(tmp_path: Path) -> None:
    """Its owner is being erased."""
    folder = tmp_path / "files" / "owner"
    file = NewFile(folder, KEY, MovedClock())
    assert blobs.remove_folder(folder) == 0
    with pytest.raises(StoreBusyError):
        file.finish()
    file.discard()
    assert not folder.exists()


def test_a_folder_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    """Twice is once; and an empty one alone is taken for empty."""
    folder = tmp_path / "files" / "owner"
    path = _written(folder, b"abc")
    blobs.remove_empty(folder)
    assert path.exists()
    assert blobs.size_of_folder(folder) == blobs.sealed_size(3)
    assert blobs.remove_folder(folder) == blobs.sealed_size(3)
    assert blobs.remove_folder(folder) == 0
    assert blobs.list_folder(folder) == []
    folder.mkdir()
    blobs.remove_empty(folder)
    assert not folder.exists()


def test_files_are_taken_away_by_name(tmp_path: Path) -> None:
    """Finished ones and others by their own call; what is not there is no harm."""
    path = _written(tmp_path, b"abc")
    left = NewFile(tmp_path, KEY, MovedClock())
    blobs.remove(tmp_path, [path.name, "nobody"])
    assert [each.name for each in blobs.list_folder(tmp_path)] == [left.name]
    blobs.remove_new(tmp_path, [left.name])
    blobs.remove_new(tmp_path, [])
    assert blobs.list_folder(tmp_path) == []
    left.discard()
