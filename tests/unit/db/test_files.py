"""Stores as files: made whole or not at all, copied under another key, taken away."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from app.crypto.keys import Key
from app.db import files, looking, migrations, sqlite, upgrades
from app.db.files import Connection
from app.errors.stores import (
    DiskFullError,
    OutOfHandlesError,
    StoreBusyError,
    StoreDamagedError,
    StoreSwappedError,
)
from tests.support.probes import (
    KEY,
    KIND,
    OTHER_KEY,
    clock,
    make_store,
    open_store,
    opened,
)

_PAGE: Final = sqlite.PAGE_SIZE
_NONE: Final[sqlite.Params] = {}


@pytest.fixture(params=[pytest.param(KEY, id="encrypted"), pytest.param(None, id="plain")])
def key(request: pytest.FixtureRequest) -> Key | None:
    """Both kinds of store."""
    found: Key | None = request.param
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An encrypted store with 50 rows, closed."""
    path = make_store(tmp_path / "a.db")
    with opened(path) as connection:
        for number in range(50):
            connection.all(
                "INSERT INTO probes (id, body) VALUES (:id, :body)",
                {"id": f"{number:02}", "body": "canary" * 300},
            )
    return path


def _names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def _nothing(_: Connection) -> None:
    """Add no rows."""


# -- making ------------------------------------------------------------------------------------


def test_a_new_store_is_whole_and_closed(tmp_path: Path, key: Key | None) -> None:
    """One file of mode 0600, its first rows in it, and nothing beside it."""

    def fill(connection: Connection) -> None:
        connection.all("INSERT INTO counts VALUES (1, 'first', 1)")

    path = tmp_path / "a.db"
    salt = files.create(path, key, KIND, clock, fill)
    assert _names(tmp_path) == {"a.db"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert salt == (files.read_salt(path) if key else b"")
    with opened(path, key, reader=True) as reader:
        assert reader.all("SELECT writer FROM counts") == [("first",)]


@pytest.mark.parametrize("place", ["fill", "apply", "sync"])
def test_a_store_that_cannot_be_finished_is_not_there(
    tmp_path: Path, key: Key | None, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails on the way; and the next attempt at the same path succeeds."""
    path = tmp_path / "a.db"

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        if place == "apply":
            patch.setattr(migrations, "apply", fail)
        if place == "sync":
            patch.setattr(os, "fsync", fail)
            patch.setattr(files, "remove", lambda path: path.unlink())
        with pytest.raises(ZeroDivisionError):
            files.create(path, key, KIND, clock, fail if place == "fill" else _nothing)
    assert _names(tmp_path) == set()
    make_store(path, key)


def test_a_store_never_replaces_another(path: Path) -> None:
    """The one that stands there stays."""
    before = path.read_bytes()
    with pytest.raises(StoreBusyError):
        make_store(path)
    assert path.read_bytes() == before


def test_a_store_without_room_is_not_there(tmp_path: Path) -> None:
    """A child that may write 40 KiB to a file makes nothing, and says so."""
    code = f"""
import pathlib, resource, sys
sys.path.insert(0, {str(Path.cwd())!r})
from app.errors.stores import StoreError
from tests.support.probes import make_store
resource.setrlimit(resource.RLIMIT_FSIZE, (40960, 40960))
try:
    make_store(pathlib.Path({str(tmp_path / "a.db")!r}))
except StoreError as error:
    print(error.code)
"""
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "disk_full"
    assert _names(tmp_path) == set()


# -- opening -----------------------------------------------------------------------------------


def test_a_handle_refuses_the_other_faces_tables(path: Path) -> None:
    """And reads its own."""
    with closing(
        files.open_handle(path, KEY, KIND, clock, reader=True, denied_tables=frozenset({"counts"}))
    ) as connection:
        assert connection.scalar("SELECT count(*) FROM probes") == 50
        with pytest.raises(Exception, match="prohibited"):
            connection.all("SELECT number FROM counts")


def test_a_store_of_another_kind_is_swapped(path: Path) -> None:
    """Though the key opens it."""
    other = files.Kind(KIND.application_id + 1, KIND.buckets)
    with pytest.raises(StoreSwappedError):
        files.open_handle(path, KEY, other, clock, reader=True)


def test_a_zeroed_key_opens_nothing(path: Path) -> None:
    """It fails before any file is touched."""
    key = Key(bytes(32))
    key.zero()
    with pytest.raises(ValueError, match="zeroed"):
        open_store(path, key)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """By looking, never by opening."""
    path = tmp_path / "a.db"
    assert files.size(path) == 0
    assert files.read_salt(path) == b""
    path.write_bytes(b"12345")
    assert files.size(path) == 5


# -- another key -------------------------------------------------------------------------------


def _mark(connection: Connection) -> None:
    connection.all("INSERT INTO counts VALUES (1, 'copy', 1)")


def _copy(path: Path, amend: Callable[[Connection], None] = _mark) -> bytes:
    return files.copy_under_new_key(path, KEY, OTHER_KEY, KIND, clock, amend)


def test_a_copy_under_another_key_takes_the_stores_place(path: Path) -> None:
    """All rows, what was amended, another salt, the other key alone."""
    old_salt = files.read_salt(path)
    salt = _copy(path)
    new = path.with_name("a.db.new")
    assert _names(path.parent) == {"a.db", "a.db.new"}
    assert new.stat().st_mode & 0o777 == 0o600
    assert salt == files.read_salt(new) != old_salt
    with opened(path, reader=True) as reader:
        assert reader.all("SELECT * FROM counts") == []

    files.replace_with_new(path)
    assert _names(path.parent) == {"a.db"}
    assert files.read_salt(path) == salt
    with pytest.raises(StoreDamagedError):
        open_store(path)
    with opened(path, OTHER_KEY) as connection:
        assert connection.scalar("SELECT count(*) FROM probes") == 50
        assert connection.all("SELECT writer FROM counts") == [("copy",)]
        connection.all("DELETE FROM probes")
    assert b"canary" not in path.read_bytes()


def test_a_copy_includes_what_only_the_log_holds(path: Path) -> None:
    """Another handle that has the file open keeps its last writes out of the main file."""
    with opened(path) as connection:
        connection.all("INSERT INTO counts VALUES (2, 'in the log', 1)")
        _copy(path)
    files.replace_with_new(path)
    with opened(path, OTHER_KEY, reader=True) as reader:
        assert reader.scalar("SELECT count(*) FROM counts") == 2


def test_a_copy_begins_anew_over_an_unfinished_one(path: Path) -> None:
    """What a crash left under that name is no obstacle and no part of it."""
    new = path.with_name("a.db.new")
    for name in ("a.db.new", "a.db.new-wal", "a.db.new-shm"):
        path.with_name(name).write_bytes(b"half")
    assert _copy(path) == files.read_salt(new)
    assert _names(path.parent) == {"a.db", "a.db.new"}


def test_a_copy_that_fails_leaves_the_store_alone(path: Path) -> None:
    """Nothing of the copy stays."""

    def fail(_: Connection) -> None:
        raise ZeroDivisionError

    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        _copy(path, fail)
    assert _names(path.parent) == {"a.db"}
    assert path.read_bytes() == before


def test_a_damaged_store_is_not_copied(path: Path) -> None:
    """Damage anywhere stops it; a good copy is never made of a bad one."""
    content = bytearray(path.read_bytes())
    content[12 * _PAGE + 99] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreDamagedError):
        _copy(path)
    assert _names(path.parent) == {"a.db"}


@pytest.mark.parametrize("failing", ["cipher_integrity_check", "quick_check"])
def test_a_copy_that_does_not_pass_its_checks_is_none(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Each of the two checks is heeded."""
    run = Connection.all

    def doubt(self: Connection, sql: str, params: sqlite.Params = _NONE) -> list[sqlite.Row]:
        return [("page 7",)] if failing in sql else run(self, sql, params)

    monkeypatch.setattr(Connection, "all", doubt)
    with pytest.raises(StoreDamagedError):
        _copy(path)
    assert _names(path.parent) == {"a.db"}


def test_an_old_log_is_never_beside_the_new_file(path: Path) -> None:
    """A log of the old key, left by a crash, goes before the exchange."""
    _copy(path)
    for suffix in files.SIDECARS:
        path.with_name(path.name + suffix).write_bytes(b"old")
    files.replace_with_new(path)
    assert _names(path.parent) == {"a.db"}
    open_store(path, OTHER_KEY).close()


# -- checking ----------------------------------------------------------------------------------


def test_a_sound_store_passes_and_a_damaged_one_does_not(path: Path) -> None:
    """By SQLite's own check."""
    assert looking.integrity(path, KEY, KIND, clock) == []
    with closing(files.open_maintenance(path, KEY, KIND, clock)) as connection:
        connection.all("PRAGMA writable_schema = ON")
        connection.all(
            "UPDATE sqlite_schema SET sql = replace(sql, 'name TEXT', 'name TEXT NOT NULL')"
        )
    assert looking.integrity(path, KEY, KIND, clock)


def test_a_kinds_tables_are_known(tmp_path: Path) -> None:
    """Of the buckets that are asked for, views included."""
    probes = files.table_names(KIND, KIND.buckets, clock)
    runtime = files.table_names(KIND, KIND.buckets[:1], clock)
    assert probes - runtime == {"probes", "counts"}
    assert {"sys_events", "sys_changes"} <= runtime
    assert _names(tmp_path) == set()


# -- taking away -------------------------------------------------------------------------------


def test_a_removed_store_leaves_nothing_and_once_more_is_no_error(path: Path) -> None:
    """Its log, its unfinished copy and that one's log go with it; others stay."""
    other = path.with_name("b.db")
    other.write_bytes(b"another")
    for name in ("", "-wal", "-shm", "-journal", ".new", ".new-wal"):
        path.with_name(path.name + name).write_bytes(b"x")
    files.remove_all(path)
    files.remove_all(path)
    assert _names(path.parent) == {"b.db"}


def test_an_unfinished_copy_goes_alone(path: Path) -> None:
    """The store stays."""
    path.with_name("a.db.new").write_bytes(b"x")
    files.remove_new(path)
    assert _names(path.parent) == {"a.db"}
    open_store(path).close()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(errno.ENOSPC, DiskFullError, id="full"),
        pytest.param(errno.EMFILE, OutOfHandlesError, id="no descriptor"),
    ],
)
def test_a_folder_that_cannot_be_synced_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    """As one of the program's errors."""

    def refuse(*_: object) -> int:
        raise OSError(code, "no")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(error):
        files.sync_folder(tmp_path)


def test_every_change_of_a_name_is_made_durable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is synced after creating, exchanging and removing; the copy itself before."""
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    folder = path.parent.name
    make_store(path.with_name("b.db"))
    assert synced == [folder]
    synced.clear()
    _copy(path)
    assert synced[-2:] == ["a.db.new", folder]
    synced.clear()
    files.replace_with_new(path)
    files.remove(path)
    assert synced == [folder, folder]


def test_nothing_is_left_open(path: Path) -> None:
    """After all these operations this process has no descriptor of the store."""
    _copy(path)
    upgrades.drift(path, KEY, KIND, clock)
    looking.integrity(path, KEY, KIND, clock)
    with pytest.raises(StoreDamagedError):
        open_store(path, OTHER_KEY)
    held = [fd.readlink() for fd in list(Path("/proc/self/fd").iterdir()) if fd.is_symlink()]
    assert not [target for target in held if str(target).startswith(str(path.parent))]
