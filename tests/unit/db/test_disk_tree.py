"""Files below one folder: read and changed as they are there, and never through a link."""

import contextlib
import errno
import itertools
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from app.db import disk_steps, disk_tree
from app.db.disk_steps import Step
from app.errors.callers import NotFoundError
from app.errors.conflicts import NotTextError, PathConflictError
from app.errors.inputs import InvalidPathError
from app.errors.root import StrongroomError
from app.errors.stores import DiskFullError, OutOfHandlesError, StoreReadOnlyError
from tests.support.matrix import chosen

MAX: Final = 1_000
SECRET: Final = "what lies outside"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Where a folder of texts is to be."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text(SECRET)
    return tmp_path / "database" / "shared" / "one"


@pytest.fixture
def root(base: Path) -> Iterator[int]:
    """It, open."""
    base.parent.parent.mkdir()
    with disk_tree.opened(base, make=True) as descriptor:
        yield descriptor


def _put(root: int, key: str, text: str) -> Step:
    step = disk_steps.stage(root, text.encode(), key)
    assert disk_steps.do(root, step)
    return step


def _read(root: int, key: str) -> str:
    return disk_tree.read(root, key, MAX).content


def test_a_folder_is_made_only_where_that_is_asked(base: Path) -> None:
    """And one that is a link is none."""
    base.parent.parent.mkdir()
    with pytest.raises(NotFoundError), disk_tree.opened(base):
        pass
    assert disk_tree.names_in(base.parent) == []
    with disk_tree.opened(base, make=True):
        pass
    assert disk_tree.names_in(base.parent) == ["one"]
    base.rmdir()
    base.symlink_to(base.parents[2] / "outside")
    for make in (False, True):
        with pytest.raises(NotFoundError), disk_tree.opened(base, make=make):
            pass


@pytest.mark.parametrize("is_back", [False, True])
def test_a_name_taken_off_amid_reading_shows_no_file_from_outside(
    base: Path, root: int, monkeypatch: pytest.MonkeyPatch, *, is_back: bool
) -> None:
    """A file held by a second name has one name again by the time it is judged: another's."""
    outside = base.parents[2] / "outside.md"
    outside.write_text("what lies outside")
    os.link(outside, base / "second.md")

    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        second = base / "second.md"
        second.unlink(missing_ok=True)
        status = real(descriptor)
        if is_back:
            os.link(outside, second)
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    if is_back:
        with pytest.raises(NotTextError):
            disk_tree.find(root, "second.md", MAX)
    else:
        assert disk_tree.find(root, "second.md", MAX) is None


def test_a_text_that_is_replaced_amid_reading_is_one_or_the_other(
    base: Path, root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often; replaced all the while, it is refused at last."""
    _put(root, "x.md", "old")
    turns = itertools.count()
    most = 3

    def fstat(descriptor: int) -> os.stat_result:
        status = os.stat(descriptor)
        if next(turns) < most:
            (base / "other").write_text("new")
            (base / "other").rename(base / "x.md")
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    assert disk_tree.read(root, "x.md", MAX).content == "new"
    most = 1_000
    with pytest.raises(NotTextError):
        disk_tree.read(root, "x.md", MAX)


def test_a_text_is_read_as_it_was_written(root: int) -> None:
    """With its size, a digest of its content, and its file's mark."""
    _put(root, "a/b.md", "één\n")
    text = disk_tree.read(root, "a/b.md", MAX)
    assert (text.content, text.size_bytes) == ("één\n", 6)
    assert 1 <= text.digest < 1 << 53
    assert disk_tree.read(root, "a/b.md", MAX) == text
    _put(root, "a/b.md", "één\n")
    again = disk_tree.read(root, "a/b.md", MAX)
    assert again.digest == text.digest
    assert again.mark != text.mark
    _put(root, "a/b.md", "")
    assert disk_tree.read(root, "a/b.md", MAX)[:2] == ("", 0)
    assert disk_tree.kind_of(root, "a") == "folder"
    assert disk_tree.kind_of(root, "a/b.md") == "file"
    assert disk_tree.kind_of(root, "a/b.md/c") is None


def _link(path: Path) -> None:
    path.symlink_to(path.parents[2] / ".." / "outside" / "secret.md")


def _hard_link(path: Path) -> None:
    other = path.parent.parent.parent.parent / "outside" / "secret.md"
    path.hardlink_to(other)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's address is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize(
    "plant",
    [
        _link,
        _hard_link,
        os.mkfifo,
        _socket,
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_bytes(b"a\0b"),
        lambda path: path.write_bytes(b"x" * (MAX + 1)),
    ],
    ids=["link", "hard link", "fifo", "socket", "not UTF-8", "NUL", "too large"],
)
def test_what_is_no_text_of_its_own_is_never_read(
    base: Path, root: int, plant: Callable[[Path], None]
) -> None:
    """Whoever planted it; and the call does not wait for anybody."""
    plant(base / "x.md")
    with pytest.raises(NotTextError):
        disk_tree.read(root, "x.md", MAX)


def test_nothing_that_is_no_file_is_listed(base: Path, root: int) -> None:
    """Links, pipes, second names and the program's own names are left out."""
    for key in ("b.md", "a/one.md", "a/deep/two.md"):
        _put(root, key, "text")
    _link(base / "link.md")
    _hard_link(base / "second.md")
    os.mkfifo(base / "pipe")
    (base / "outside").symlink_to(base.parents[2] / "outside")
    disk_steps.stage(root, b"staged", "c.md")
    shown = [entry.key for entry in disk_tree.listing(root, "", 9)]
    assert shown == ["a", "a/deep", "a/deep/two.md", "a/one.md", "b.md"]
    assert [entry.key for entry in disk_tree.listing(root, "a", 1)] == ["a/deep", "a/one.md"]
    assert len(disk_tree.listing(root, "", 9, limit=2)) == 2
    for key in ("outside", "nothing", "b.md", "link.md"):
        with pytest.raises(NotFoundError):
            disk_tree.listing(root, key, 1)


def test_no_folder_is_entered_through_a_link(base: Path, root: int) -> None:
    """Neither to read nor to write, nor to take away what lies there."""
    outside = base.parents[2] / "outside"
    (base / "door").symlink_to(outside)
    with pytest.raises(NotFoundError):
        _read(root, "door/secret.md")
    with pytest.raises(PathConflictError):
        disk_tree.require_folders_above(root, "door/new.md")
    assert not disk_steps.do(root, disk_steps.stage(root, b"new", "door/new.md"))
    gone = Step("remove", "door/secret.md", disk_steps.gone_name(), "1.1")
    assert disk_steps.do(root, gone)
    mark = disk_steps.mark_of(root, "door")
    assert mark is not None
    assert disk_steps.do(root, Step("remove", "door", disk_steps.gone_name(), mark))
    disk_steps.clear_gone(root)
    assert [each.name for each in outside.iterdir()] == ["secret.md"]
    assert (outside / "secret.md").read_text() == SECRET


def test_a_link_in_a_texts_place_gives_way_to_the_text(base: Path, root: int) -> None:
    """What it led to stays as it is."""
    _link(base / "x.md")
    _put(root, "x.md", "mine")
    assert (base / "x.md").read_text() == "mine"
    assert not (base / "x.md").is_symlink()
    assert (base.parents[2] / "outside" / "secret.md").read_text() == SECRET


def test_a_step_that_is_done_twice_is_done_once(base: Path, root: int) -> None:
    """Whichever it is, and whoever does it again."""
    placed = _put(root, "a/x.md", "one")
    assert disk_steps.do(root, placed)
    mark = disk_steps.mark_of(root, "a/x.md")
    assert mark is not None
    move = Step("move", "a/x.md", "b/c/y.md", mark)
    for _ in range(2):
        assert disk_steps.do(root, move)
        assert _read(root, "b/c/y.md") == "one"
    assert not (base / "a").exists()
    remove = Step("remove", "b/c/y.md", disk_steps.gone_name(), mark)
    for _ in range(2):
        assert disk_steps.do(root, remove)
    assert disk_steps.own_names(root) == [remove.target]
    assert disk_steps.clear_gone(root) == 1
    assert list(base.iterdir()) == []
    # What came to stand there since is not what was to go.
    _put(root, "b/c/y.md", "another")
    assert disk_steps.do(root, remove)
    assert _read(root, "b/c/y.md") == "another"


def test_a_step_that_cannot_be_done_any_more_says_so(base: Path, root: int) -> None:
    """The folder was changed beside the program; nothing of it is overwritten."""
    (base / "dir.md").mkdir()
    (base / "dir.md" / "in.md").write_text("theirs")
    assert not disk_steps.do(root, disk_steps.stage(root, b"new", "dir.md"))
    (base / "file").write_text("theirs")
    assert not disk_steps.do(root, disk_steps.stage(root, b"new", "file/x.md"))
    _put(root, "mine.md", "mine")
    mark = disk_steps.mark_of(root, "mine.md")
    assert mark is not None
    assert not disk_steps.do(root, Step("move", "mine.md", "file", mark))
    assert not disk_steps.do(root, Step("move", "lost.md", "new.md", mark))
    assert (base / "file").read_text() == "theirs"
    assert (base / "dir.md" / "in.md").read_text() == "theirs"
    staged = disk_steps.own_names(root)
    assert disk_steps.clear_own(root, staged[:1]) == len(staged) - 1
    assert disk_steps.own_names(root) == staged[:1]


def test_a_folder_goes_with_all_that_is_in_it(base: Path, root: int) -> None:
    """And what its links lead to stays."""
    _put(root, "a/b/c.md", "text")
    (base / "a" / "out").symlink_to(base.parents[2] / "outside")
    for _ in range(2):
        disk_steps.remove_root(base)
    assert disk_tree.names_in(base.parent) == []
    assert (base.parents[2] / "outside" / "secret.md").read_text() == SECRET
    disk_steps.remove_root(base.parents[1] / "projects" / "none")


def test_a_full_disk_leaves_nothing_behind(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's words become the program's."""

    def full(_descriptor: int, _part: memoryview) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFullError):
        disk_steps.stage(root, b"text", "x.md")
    assert disk_steps.own_names(root) == []


def test_what_the_disk_refuses_is_to_be_tried_again(
    root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no step that cannot be done any more."""
    step = disk_steps.stage(root, b"text", "x.md")

    def refused(*_args: object, **_more: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", refused)
        with pytest.raises(StoreReadOnlyError):
            disk_steps.do(root, step)
    assert disk_steps.do(root, step)
    assert _read(root, "x.md") == "text"


def _swap(base: Path, outside: Path) -> None:
    """A folder, then a link in its place, then neither."""
    door, aside = base / "door", base / "aside"
    with contextlib.suppress(OSError):
        door.mkdir(exist_ok=True)
        (door / "secret.md").write_text("inside")
        door.rename(aside)
        door.symlink_to(outside)
    with contextlib.suppress(OSError):
        door.unlink()
    shutil.rmtree(aside, ignore_errors=True)


def _attempt(root: int, turn: int) -> str | None:
    found = disk_tree.find(root, "door/secret.md", MAX)
    disk_steps.do(root, disk_steps.stage(root, b"new", f"door/new-{turn}.md"))
    disk_tree.listing(root, "", 3)
    mark = disk_steps.mark_of(root, "door/secret.md")
    if mark is not None:
        disk_steps.do(root, Step("remove", "door/secret.md", disk_steps.gone_name(), mark))
    disk_steps.clear_own(root, ())
    return None if found is None else found.content


def test_whoever_swaps_folders_for_links_all_the_time_leads_nobody_out(
    base: Path, root: int
) -> None:
    """Nothing outside is read, written, listed or removed, whatever the moment."""
    outside = base.parents[2] / "outside"
    ending = threading.Event()

    def swap() -> None:
        while not ending.is_set():
            _swap(base, outside)

    hostile = threading.Thread(target=swap)
    hostile.start()
    seen = set()
    try:
        for turn in range(*chosen([40], [2_000])):
            with contextlib.suppress(StrongroomError, OSError):
                seen.add(_attempt(root, turn))
    finally:
        ending.set()
        hostile.join()
    assert SECRET not in seen
    assert [each.name for each in outside.iterdir()] == ["secret.md"]
    assert (outside / "secret.md").read_text() == SECRET


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.ENAMETOOLONG, InvalidPathError), (errno.EMFILE, OutOfHandlesError)],
    ids=["a name too long for the disk", "no descriptor left"],
)
def test_a_disk_in_trouble_is_no_missing_text(
    base: Path, root: int, number: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked: what cannot be looked at is not called absent."""

    def fail(*_args: object, **_more: object) -> int:
        raise OSError(number, "as the system says")

    calls: tuple[Callable[[], object], ...] = (
        lambda: disk_tree.find(root, "a/b.md", MAX),
        lambda: disk_tree.kind_of(root, "a/b.md"),
        lambda: disk_tree.listing(root, "a", 1),
        lambda: disk_tree.opened(base).__enter__(),
    )
    monkeypatch.setattr(disk_tree, "descend", fail)
    for call in calls:
        with pytest.raises(error):
            call()


def test_a_file_that_grows_while_it_is_read_is_no_text(
    base: Path, root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read no further than a text may be long."""
    (base / "x.md").write_text("x")
    monkeypatch.setattr(os, "read", lambda _descriptor, size: b"x" * size)
    with pytest.raises(NotTextError):
        disk_tree.read(root, "x.md", MAX)
