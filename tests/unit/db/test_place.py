"""A store's file deleted or exchanged under the program: told, and nothing acknowledged."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from typing_extensions import override

from app.db.place import Place, place_of, require_content, require_place
from app.db.pool import Handles, Pool
from app.db.sqlite import Connection
from app.db.writer import Lane, Writer
from app.errors.stores import StoreDamagedError, StoreError, StoreMissingError, StoreSwappedError
from tests.support.probes import ACTOR, make_store, open_store, opened

_ADD: Final = "INSERT INTO probes (id) VALUES ('{}')"


class _Shaken(Handles):
    """Handles under which something happens when the path is looked at for the n-th time."""

    def __init__(self, path: Path, at: int, happens: Callable[[], None]) -> None:
        super().__init__(Pool(100), lambda reader: open_store(path, reader=reader))
        self._looks = 0
        self._at = at
        self._happens = happens

    @override
    def require_in_place(self, within_s: float = 0) -> None:
        self._looks += 1
        if self._looks == self._at:
            self._happens()
        super().require_in_place(within_s)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store."""
    return make_store(tmp_path / "a.db")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another one, under the same key."""
    return make_store(tmp_path / "b.db")


@pytest.fixture
def writer() -> Iterator[Writer]:
    """One writing thread."""
    writer = Writer(threads=1, nice=0, batch_max=64, slice_ms=10_000)
    yield writer
    writer.close()


def _handles(path: Path) -> Handles:
    return Handles(Pool(100), lambda reader: open_store(path, reader=reader))


def _add(name: str) -> Callable[[Connection], str]:
    def work(connection: Connection) -> str:
        connection.all(_ADD.format(name))
        return name

    return work


def _write(writer: Writer, handles: Handles, *names: str) -> list[Any]:
    """Write, in one batch when it can be; the answers."""

    async def run() -> list[Any]:
        lane = Lane(contextlib.nullcontext)
        tasks = [
            asyncio.create_task(writer.submit(lane, handles, _add(name), ACTOR)) for name in names
        ]
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(run())


def _ids(path: Path) -> list[str]:
    with opened(path, reader=True) as reader:
        return [key for (key,) in reader.all("SELECT id FROM probes ORDER BY rowid")]


def _exchange(path: Path, other: Path) -> None:
    # Beside it first, for a file that is gone leaves its inode to the next.
    Path(shutil.copy(other, path.with_name("new.db"))).replace(path)


def _descriptors(path: Path) -> list[str]:
    held = [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return [str(name) for name in held if str(name).startswith(str(path))]


def test_a_file_is_known_by_device_and_inode(path: Path, other: Path, tmp_path: Path) -> None:
    """Moved and moved back it is the same; a copy of it is not."""
    place = place_of(path)
    away = path.rename(tmp_path / "away.db")
    with pytest.raises(StoreMissingError):
        require_place(path, place)
    away.rename(path)
    require_place(path, place)
    with path.open("ab") as file:
        file.write(bytes(4096))
    require_place(path, place)
    os.truncate(path, place.size_bytes - 1)
    with pytest.raises(StoreDamagedError):
        require_place(path, place)
    _exchange(path, other)
    with pytest.raises(StoreSwappedError):
        require_place(path, place)


def test_what_is_no_store_is_told_before_it_is_opened(tmp_path: Path) -> None:
    """An empty file, or a folder, would become a new database, or an error without a name."""
    (tmp_path / "empty.db").touch()
    for name in ("empty.db", "."):
        with pytest.raises(StoreDamagedError):
            require_content(tmp_path / name)
    with pytest.raises(StoreMissingError):
        require_content(tmp_path / "none.db")


@pytest.mark.parametrize("is_exchanged", [False, True], ids=["deleted", "exchanged"])
@pytest.mark.parametrize("look", [1, 2], ids=["before the commit", "amid the commit"])
def test_nothing_is_acknowledged_that_went_into_a_file_that_is_gone(
    path: Path, other: Path, writer: Writer, *, is_exchanged: bool, look: int
) -> None:
    """Every write of the batch is told, nothing of it stands, and no handle stays."""

    def happen() -> None:
        if is_exchanged:
            _exchange(path, other)
        else:
            path.unlink()

    handles = _Shaken(path, look, happen)
    answers = _write(writer, handles, "a", "b")
    wanted = StoreSwappedError if is_exchanged else StoreMissingError
    assert [type(answer) for answer in answers] == [wanted, wanted]
    assert handles.is_lost
    handles.close()
    assert _descriptors(path) == []
    if is_exchanged and look == 1:
        assert _ids(path) == []


def test_the_same_file_put_back_is_served_again(path: Path, tmp_path: Path, writer: Writer) -> None:
    """It is the one that the handles know; what was acknowledged is in it."""
    handles = _handles(path)
    assert _write(writer, handles, "a") == ["a"]
    with handles.borrow_writer() as connection:
        assert connection.checkpoint()
    away = path.rename(tmp_path / "away.db")
    [answer] = _write(writer, handles, "b")
    assert isinstance(answer, StoreMissingError)
    away.rename(path)
    assert _write(writer, handles, "c") == ["c"]
    assert not handles.is_lost
    handles.close()
    assert _ids(path) == ["a", "c"]


@pytest.mark.parametrize("is_exchanged", [False, True], ids=["deleted", "exchanged"])
def test_a_thread_reads_nothing_from_a_file_that_is_gone(
    path: Path, other: Path, *, is_exchanged: bool
) -> None:
    """The next one who borrows a handle is told; those that lie free go too."""
    handles = _handles(path)
    with handles.borrow_reader(), handles.borrow_reader():
        pass
    _exchange(path, other) if is_exchanged else path.unlink()
    wanted = StoreSwappedError if is_exchanged else StoreMissingError
    for _ in range(3):
        with pytest.raises(wanted), handles.borrow_reader():
            raise AssertionError
    assert handles.try_reader() is None
    assert _descriptors(path) == []
    handles.close()


def test_every_handle_of_a_store_is_on_one_file(path: Path, other: Path) -> None:
    """One that is opened later, on the path alone, is not let in."""
    handles = _handles(path)
    with handles.borrow_reader():
        _exchange(path, other)
        with pytest.raises(StoreSwappedError), handles.borrow_writer():
            raise AssertionError
    with pytest.raises(StoreError), handles.borrow_reader():
        raise AssertionError
    handles.close()


def test_a_file_exchanged_while_it_is_opened_is_told(
    path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look before and the look after."""
    from app.db import sqlite  # noqa: PLC0415 - to reach into it

    def look_and_exchange(at: Path) -> Place:
        place = place_of(at)
        _exchange(at, other)
        return place

    monkeypatch.setattr(sqlite, "require_content", look_and_exchange)
    with pytest.raises(StoreSwappedError):
        open_store(path)
    assert _descriptors(path) == []
