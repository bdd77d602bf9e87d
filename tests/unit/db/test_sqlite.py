"""The door to the driver, on real files: what opens, what does not, and why it says so."""

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
import sqlcipher3.dbapi2 as driver  # noqa: TID251 - makes what the program would refuse to make

from app.db import driver_errors, sqlite
from app.db.authorizer import authorizer
from app.db.sqlite import Connection, RawKey
from app.errors.conflicts import ConstraintError
from app.errors.inputs import PayloadTooLargeError
from app.errors.starting import DriverUnfitError
from app.errors.stores import (
    DiskFullError,
    OutOfHandlesError,
    OverloadedError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreMissingError,
    StoreReadOnlyError,
    StoreSwappedError,
)
from tests.support.probes import OTHER_RAW, RAW, clock

_ID: Final = 0x50524F42
_PAGE: Final = sqlite.PAGE_SIZE


def _open(path: Path, key: RawKey | None = RAW, *, reader: bool = False) -> Connection:
    return sqlite.open_existing(path, key, application_id=_ID, clock=clock, reader=reader)


def _create(path: Path, key: RawKey | None = RAW) -> Connection:
    return sqlite.create(path, key, application_id=_ID, clock=clock)


@pytest.fixture(params=[pytest.param(RAW, id="encrypted"), pytest.param(None, id="plain")])
def key(request: pytest.FixtureRequest) -> RawKey | None:
    """Both kinds of store."""
    found: RawKey | None = request.param
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of 100 rows over some 30 pages, encrypted, closed."""
    path = tmp_path / "a.db"
    with closing(_create(path)) as connection:
        _fill(connection)
    return path


def _child(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, for limits and signals."""
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)  # noqa: S603 - this very program


def _fill(connection: Connection) -> None:
    connection.all("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL)")
    connection.all("BEGIN")
    for number in range(100):
        connection.all("INSERT INTO t VALUES (:a, :b)", {"a": number, "b": "x" * 1_000})
    connection.all("COMMIT")


def _flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


# -- opening -----------------------------------------------------------------------------------


def test_a_store_opens_under_its_key(tmp_path: Path, key: RawKey | None) -> None:
    """What was written is read by the next handle, and the file is the owner's alone."""
    path = tmp_path / "a.db"
    with closing(_create(path, key)) as connection:
        _fill(connection)
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(_open(path, key)) as connection:
        assert connection.scalar("SELECT count(*) FROM t") == 100
    assert (b"xxxxxxxx" in path.read_bytes()) == (key is None)


def _truncate_to(size: int) -> Callable[[Path], object]:
    return lambda path: os.truncate(path, size)


def _make_plain(path: Path) -> None:
    path.unlink()
    with closing(_create(path, None)) as connection:
        _fill(connection)


def _make_foreign(path: Path) -> None:
    path.unlink()
    sqlite.create(path, RAW, application_id=1, clock=clock).close()


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


_RUINS = [
    pytest.param(lambda path: path.unlink(), StoreMissingError, id="missing"),
    pytest.param(_truncate_to(0), StoreDamagedError, id="empty"),
    pytest.param(_make_folder, StoreDamagedError, id="folder"),
    pytest.param(lambda path: path.write_bytes(b"no database" * 9), StoreDamagedError, id="text"),
    pytest.param(_truncate_to(10), StoreDamagedError, id="truncated in the salt"),
    pytest.param(_truncate_to(_PAGE + 10), StoreDamagedError, id="truncated"),
    pytest.param(lambda path: _flip(path, 3), StoreDamagedError, id="bit in the salt"),
    pytest.param(lambda path: _flip(path, 50), StoreDamagedError, id="bit in page 1"),
    pytest.param(_make_plain, StoreSwappedError, id="plain"),
    pytest.param(_make_foreign, StoreSwappedError, id="foreign kind"),
]


@pytest.mark.parametrize(("ruin", "error"), _RUINS)
def test_what_is_no_store_is_refused_by_its_name(
    path: Path, ruin: Callable[[Path], object], error: type[StoreError]
) -> None:
    """Missing, damaged and swapped are three errors, and opening changes nothing."""
    ruin(path)
    before = path.read_bytes() if path.is_file() else None
    for reader in (True, False):
        with pytest.raises(error):
            _open(path, reader=reader)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_wrong_key_is_damage_that_tells_the_files_salt(path: Path) -> None:
    """SQLCipher cannot tell a wrong key from damage; the file's salt tells whose it is."""
    with pytest.raises(StoreDamagedError) as caught:
        _open(path, OTHER_RAW)
    assert caught.value.file_salt == path.read_bytes()[:16]


def test_a_path_that_cannot_be_looked_at_is_no_missing_file(path: Path) -> None:
    """Nor one of the store's own troubles."""
    below_a_file = path / "b.db"
    with pytest.raises(NotADirectoryError):
        _open(below_a_file)


def test_a_file_that_goes_while_it_is_opened_is_missing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and the opening."""
    monkeypatch.setattr(sqlite, "require_content", lambda path: path.unlink())
    with pytest.raises(StoreMissingError):
        _open(path)


def test_a_key_that_cannot_be_set_leaves_nothing_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails before the first page is read."""
    run = Connection.all

    def fail(self: Connection, sql: str, params: sqlite.Params | None = None) -> list[sqlite.Row]:
        if "cipher_page_size" in sql:
            raise StoreError
        return run(self, sql, params or {})

    monkeypatch.setattr(Connection, "all", fail)
    with pytest.raises(StoreError):
        _open(path)
    held = [fd.readlink() for fd in list(Path("/proc/self/fd").iterdir()) if fd.is_symlink()]
    assert path not in held


def test_an_encrypted_file_does_not_open_without_a_key(path: Path) -> None:
    """Its salt is told as well: whose file stands in a plain one's place."""
    with pytest.raises(StoreDamagedError) as caught:
        _open(path, None)
    assert caught.value.file_salt == path.read_bytes()[:16]


def test_a_salt_that_cannot_be_asked_for_is_unknown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the one that was found first, and no other."""
    raw = sqlite.Connection.file_salt

    def refuse(self: Connection) -> bytes:
        raw(self)
        raise StoreError

    monkeypatch.setattr(Connection, "file_salt", refuse)
    for key in (OTHER_RAW, None):
        with pytest.raises(StoreDamagedError) as caught:
            _open(path, key)
        assert caught.value.file_salt == b""


def test_the_salt_is_the_beginning_of_the_file(path: Path) -> None:
    """`file_salt` is what anyone can read at the file's start."""
    with closing(_open(path)) as connection:
        assert connection.file_salt() == path.read_bytes()[:16]


@pytest.mark.parametrize("digits", [0, 62, 63, 65])
def test_a_raw_key_of_another_length_is_never_used(path: Path, digits: int) -> None:
    """SQLCipher would take it for a passphrase, without a word; nothing is made or read."""
    malformed = RawKey(f"x'{'a' * digits}'")
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        _open(path, malformed)
    other = path.with_name("other.db")
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        _create(other, malformed)
    assert not other.exists()


def test_a_wrong_key_writes_nothing_to_standard_error(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """SQLCipher's own log is silent."""
    with pytest.raises(StoreDamagedError):
        _open(path, OTHER_RAW)
    assert capfd.readouterr() == ("", "")


def test_no_statement_ever_holds_the_key(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of all SQL shows no key."""
    seen: list[str] = []
    connect = driver.connect

    def traced(*args: object, **options: object) -> object:
        raw = connect(*args, **options)
        raw.set_trace_callback(seen.append)
        return raw

    monkeypatch.setattr(driver, "connect", traced)
    with closing(_open(path)) as connection:
        connection.all("SELECT * FROM t")
    assert seen
    assert not any(RAW[2:20].lower() in text.lower() for text in seen)


def test_descriptors_that_run_out_are_not_a_missing_file(path: Path) -> None:
    """SQLite says 'unable to open' for both; with no descriptor left it is a passing lack."""
    code = f"""
import os, resource, pathlib
from app.db import sqlite
from app.errors.stores import OutOfHandlesError, StoreMissingError
path = pathlib.Path({str(path)!r})
def attempt(path):
    try:
        sqlite.open_existing(
            path, {RAW!r}, application_id={_ID}, clock=lambda: 0, reader=True
        ).close()
        return "opened"
    except (OutOfHandlesError, StoreMissingError) as error:
        return error.code
attempt(path)
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
held = []
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
answers = []
for free in range(4):
    answers.append(attempt(path))
    os.close(held.pop())
print(answers, attempt(path.with_name("absent.db")))
"""
    done = _child(code)
    lack = "out_of_handles"
    assert done.stdout.strip() == f"{[lack, lack, lack, 'opened']} store_missing"


def test_a_reader_recovers_what_a_killed_writer_left(path: Path) -> None:
    """The log of a killed process is replayed by the first handle, even one that only reads."""
    code = f"""
import os, pathlib, signal
from app.db import sqlite
connection = sqlite.open_existing(
    pathlib.Path({str(path)!r}), {RAW!r}, application_id={_ID}, clock=lambda: 0, reader=False
)
connection.all("INSERT INTO t VALUES (1000, 'kept')")
connection.all("BEGIN")
connection.all("INSERT INTO t VALUES (1001, 'never committed')")
os.kill(os.getpid(), signal.SIGKILL)
"""  # noqa: S608 - a program of the test
    done = _child(code)
    assert done.returncode == -9
    assert path.with_name("a.db-wal").stat().st_size > 0
    with closing(_open(path, reader=True)) as connection:
        assert connection.all("SELECT b FROM t WHERE a >= 1000") == [("kept",)]


def test_opening_waits_for_one_who_has_the_file_alone(path: Path) -> None:
    """Another's recovery, or its closing, is awaited and no error."""
    with closing(driver.connect(str(path), isolation_level=None, check_same_thread=False)) as raw:
        raw.execute("PRAGMA cipher_log_level = NONE")
        raw.set_key(RAW)
        raw.execute("PRAGMA locking_mode = EXCLUSIVE")
        raw.execute("BEGIN EXCLUSIVE").fetchall()
        raw.execute("COMMIT")
        waited = threading.Timer(0.05, raw.close)
        waited.start()
        with closing(_open(path, reader=True)) as connection:
            assert connection.scalar("SELECT count(*) FROM t") == 100
        waited.join()


# -- creating ----------------------------------------------------------------------------------


def test_creation_never_replaces(path: Path) -> None:
    """What stands at the path stays, whatever it is."""
    before = path.read_bytes()
    with pytest.raises(StoreBusyError):
        _create(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(errno.ENOSPC, DiskFullError, id="full"),
        pytest.param(errno.EROFS, StoreReadOnlyError, id="read-only"),
        pytest.param(errno.EMFILE, OutOfHandlesError, id="no descriptor"),
        pytest.param(errno.EIO, OSError, id="anything else"),
    ],
)
def test_a_file_that_cannot_be_made_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    """A full disk, a read-only one and a lack of descriptors are told apart."""

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(error):
        _create(tmp_path / "a.db")


def test_a_creation_that_fails_half_way_leaves_nothing(tmp_path: Path, key: RawKey | None) -> None:
    """A disk that takes no byte of the file leaves the path free for the next attempt."""
    code = f"""
import pathlib, resource
from app.db import sqlite
from app.errors.stores import StoreError
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
try:
    sqlite.create(
        pathlib.Path({str(tmp_path / "a.db")!r}), {key!r}, application_id=1, clock=lambda: 0
    )
except StoreError as error:
    print(error.code)
"""
    done = _child(code)
    assert done.stdout.strip() == "disk_full"
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_shared_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite answers the old journal mode there, without an error; nothing is left behind."""
    scalar = Connection.scalar

    def answer(self: Connection, sql: str) -> sqlite.Value:
        return "delete" if "journal_mode" in sql else scalar(self, sql)

    monkeypatch.setattr(Connection, "scalar", answer)
    with pytest.raises(StoreReadOnlyError):
        _create(tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []


# -- a handle ----------------------------------------------------------------------------------


@pytest.fixture
def connection(tmp_path: Path, key: RawKey | None) -> Iterator[Connection]:
    """A writing handle on a new store with one table."""
    with closing(_create(tmp_path / "h.db", key)) as connection:
        connection.register([])
        connection.all("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL UNIQUE)")
        yield connection


def test_a_handle_is_set_up_for_life(connection: Connection, key: RawKey | None) -> None:
    """References hold, triggers nest, commits reach the disk, deleted bytes go."""
    settings = {
        name: connection.scalar(f"PRAGMA {name}")
        for name in (
            "foreign_keys",
            "recursive_triggers",
            "trusted_schema",
            "cell_size_check",
            "synchronous",
            "journal_mode",
            "temp_store",
            "application_id",
        )
    }
    assert settings == {
        "foreign_keys": 1,
        "recursive_triggers": 1,
        "trusted_schema": 1,
        "cell_size_check": 1,
        "synchronous": 2,
        "journal_mode": "wal",
        "temp_store": 2,
        "application_id": _ID,
    }
    if key is None:
        assert connection.scalar("PRAGMA secure_delete") == 1


def test_deleted_bytes_leave_a_plain_file(tmp_path: Path) -> None:
    """A destroyed row of a plain store is in neither file nor log after a checkpoint."""
    path = tmp_path / "plain.db"
    with closing(_create(path, None)) as connection:
        connection.all("CREATE TABLE t (a)")
        connection.all("INSERT INTO t VALUES ('canary-in-the-file')")
        assert connection.checkpoint()
        assert b"canary" in path.read_bytes()
        connection.all("DELETE FROM t")
        assert connection.checkpoint()
        assert b"canary" not in path.read_bytes()
        assert path.with_name("plain.db-wal").read_bytes() == b""


def test_a_checkpoint_says_whether_a_reader_stood_in_the_way(
    connection: Connection, key: RawKey | None
) -> None:
    """While an old snapshot is read, the log is not empty."""
    assert connection.path is not None
    with closing(_open(connection.path, key, reader=True)) as reader:
        reader.all("BEGIN")
        reader.all("SELECT * FROM t")
        connection.all("INSERT INTO t VALUES (1, 'x')")
        connection.set_wait(0)
        assert not connection.checkpoint()
        reader.all("COMMIT")
        assert connection.checkpoint()


def test_a_reading_handle_cannot_write(connection: Connection, key: RawKey | None) -> None:
    """It is refused by SQLite itself."""
    assert connection.path is not None
    with closing(_open(connection.path, key, reader=True)) as reader:
        with pytest.raises(StoreReadOnlyError):
            reader.all("INSERT INTO t VALUES (1, 'x')")
        assert reader.all("SELECT * FROM t") == []


def test_a_reading_handle_waits_for_nobody_unless_told(
    connection: Connection, key: RawKey | None
) -> None:
    """It serves the event loop."""
    assert connection.path is not None
    with closing(_open(connection.path, key, reader=True)) as reader:
        assert reader.scalar("PRAGMA busy_timeout") == 0
        reader.set_wait(2)
        assert reader.scalar("PRAGMA busy_timeout") == 2_000


def test_returned_rows_are_drained(connection: Connection) -> None:
    """An unfinished RETURNING would make COMMIT fail, so `one` reads it to its end."""
    connection.all("BEGIN")
    assert connection.one("INSERT INTO t VALUES (1, 'x'), (2, 'y') RETURNING a") == (1,)
    connection.all("COMMIT")
    assert connection.scalar("SELECT count(*) FROM t") == 2
    assert connection.one("SELECT a FROM t WHERE a = 3") is None
    assert connection.scalar("SELECT a FROM t WHERE a = 3") is None


def test_an_error_inside_a_function_arrives_as_itself(connection: Connection) -> None:
    """SQLite says only that some function failed; the caller gets the cause, once."""
    connection.register([("reciprocal", 1, lambda number: 1 / number)])
    with pytest.raises(ZeroDivisionError):
        connection.all("SELECT reciprocal(0)")
    assert connection.scalar("SELECT reciprocal(2)") == 0.5
    with pytest.raises(driver.OperationalError, match="no such table"):
        connection.all("SELECT * FROM absent")


def test_functions_know_the_time_and_the_actor(connection: Connection) -> None:
    """Without an actor they fail, which fails the write."""
    assert connection.scalar("SELECT sys_now_ms()") == clock() == connection.now_ms
    assert isinstance(connection.scalar("SELECT sys_new_id()"), str)
    with pytest.raises(RuntimeError, match="actor"):
        connection.all("SELECT sys_actor_sub()")


def test_a_reader_is_interrupted_from_another_thread(connection: Connection) -> None:
    """A statement that runs for ever ends at once."""
    loop = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    started = threading.Event()

    def interrupt() -> None:
        assert started.wait(10)
        while alive.is_set():
            connection.interrupt()

    alive = threading.Event()
    alive.set()
    connection.register([("started", 0, started.set)])
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(driver_errors.InterruptedReadError):
            connection.all(f"SELECT started(), ({loop})")
    finally:
        alive.clear()
        thread.join()


def test_a_damaged_page_marks_the_handle(path: Path) -> None:
    """SQLCipher then refuses the sound pages too; a fresh handle reads them."""
    _flip(path, 10 * _PAGE + 100)
    with closing(_open(path)) as connection:
        with pytest.raises(StoreDamagedError):
            connection.all("SELECT * FROM t")
        assert connection.is_damaged
        with pytest.raises(StoreDamagedError):
            connection.all("SELECT b FROM t WHERE a = 99")
    with closing(_open(path)) as connection:
        assert connection.one("SELECT b FROM t WHERE a = 99")
        assert not connection.is_damaged


def test_a_copy_is_under_its_own_key(path: Path, tmp_path: Path) -> None:
    """`copy_to` encrypts anew: the old key does not open the copy."""
    target = tmp_path / "copy.db"
    with closing(_open(path)) as source, closing(_create(target, OTHER_RAW)) as copy:
        source.copy_to(copy)
    with pytest.raises(StoreDamagedError):
        _open(target)
    with closing(_open(target, OTHER_RAW)) as copy:
        assert copy.scalar("SELECT count(*) FROM t") == 100


# -- errors ------------------------------------------------------------------------------------


def test_two_writers_meet_as_busy_not_as_a_wrong_key(
    connection: Connection, key: RawKey | None
) -> None:
    """A lock is told by its name."""
    assert connection.path is not None
    with closing(_open(connection.path, key)) as other:
        other.set_wait(0)
        connection.all("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError):
            other.all("BEGIN IMMEDIATE")


def test_a_full_disk_is_named_and_writes_nothing(connection: Connection) -> None:
    """The transaction is gone with the error, and everything before it stands."""
    connection.all("INSERT INTO t VALUES (1, 'kept')")
    pages = connection.scalar("PRAGMA page_count")
    connection.all(f"PRAGMA max_page_count = {pages!r}")
    connection.all("BEGIN IMMEDIATE")
    with pytest.raises(DiskFullError):
        connection.all("INSERT INTO t VALUES (2, :b)", {"b": "x" * 100_000})
    assert not connection.in_transaction
    assert connection.all("SELECT b FROM t") == [("kept",)]


_BROKEN = [
    pytest.param("INSERT INTO r VALUES (1, 1, NULL)", "_UNIQUE", id="primary key"),
    pytest.param("INSERT INTO r VALUES (2, 1, NULL)", "_UNIQUE", id="unique"),
    pytest.param("INSERT INTO r VALUES (2, NULL, NULL)", "_NOTNULL", id="not null"),
    pytest.param("INSERT INTO r VALUES (2, 0, NULL)", "_CHECK", id="check"),
    pytest.param("INSERT INTO r VALUES (2, 2, 9)", "_FOREIGNKEY", id="reference"),
    pytest.param("INSERT INTO r VALUES (2, 'x', NULL)", "_DATATYPE", id="type"),
    pytest.param("INSERT INTO r VALUES (3, 3, NULL)", "", id="a trigger's own"),
]


@pytest.mark.parametrize(("sql", "kind"), _BROKEN)
def test_a_broken_rule_names_its_kind(connection: Connection, sql: str, kind: str) -> None:
    """A constraint is a conflict, which is no trouble of the store."""
    connection.all(
        "CREATE TABLE r (a INTEGER PRIMARY KEY, b INTEGER NOT NULL UNIQUE CHECK (b > 0), "
        "c INTEGER REFERENCES r) STRICT"
    )
    connection.all("INSERT INTO r VALUES (1, 1, NULL)")
    connection.all(
        "CREATE TRIGGER odd BEFORE INSERT ON r WHEN NEW.a = 3 "
        "BEGIN SELECT raise(ABORT, 'no third'); END"
    )
    with pytest.raises(ConstraintError) as caught:
        connection.all(sql)
    assert caught.value.kind == f"SQLITE_CONSTRAINT{kind}"


_NAMES = [
    ("SQLITE_BUSY", StoreBusyError),
    ("SQLITE_BUSY_SNAPSHOT", StoreBusyError),
    ("SQLITE_LOCKED_SHAREDCACHE", StoreBusyError),
    ("SQLITE_PROTOCOL", StoreBusyError),
    ("SQLITE_INTERRUPT", driver_errors.InterruptedReadError),
    ("SQLITE_CORRUPT_VTAB", StoreDamagedError),
    ("SQLITE_NOTADB", StoreDamagedError),
    ("SQLITE_FULL", DiskFullError),
    ("SQLITE_IOERR_WRITE", StoreError),
    ("SQLITE_READONLY_DBMOVED", StoreReadOnlyError),
    ("SQLITE_PERM", StoreReadOnlyError),
    ("SQLITE_CANTOPEN_ISDIR", OutOfHandlesError),
    ("SQLITE_NOMEM", OverloadedError),
    ("SQLITE_TOOBIG", PayloadTooLargeError),
]


@pytest.mark.parametrize(("name", "kind"), [pytest.param(*pair, id=pair[0]) for pair in _NAMES])
def test_errors_are_told_by_name(name: str, kind: type[Exception]) -> None:
    """Whatever their class."""
    error = driver.OperationalError("words that no caller sees")
    error.sqlite_errorname = name
    assert type(driver_errors.translated(error)) is kind


@pytest.mark.parametrize("name", ["SQLITE_ERROR", "SQLITE_AUTH", "SQLITE_MISUSE", None])
def test_a_programming_error_passes_unchanged(name: str | None) -> None:
    """Nobody outside can act on it."""
    error = driver.OperationalError("no such table")
    if name is not None:
        error.sqlite_errorname = name
    assert driver_errors.translated(error) is error


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        pytest.param({"a.db"}, StoreReadOnlyError, id="file"),
        pytest.param({"folder"}, StoreReadOnlyError, id="folder"),
        pytest.param(set(), OutOfHandlesError, id="neither"),
    ],
)
def test_a_file_that_is_there_and_does_not_open_is_forbidden_or_one_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: set[str], kind: type[Exception]
) -> None:
    """And never missing."""
    path = tmp_path / "folder" / "a.db"
    path.parent.mkdir()
    error = driver.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    assert type(driver_errors.translated(error, path)) is StoreMissingError
    path.touch()
    monkeypatch.setattr(os, "access", lambda asked, _: asked.name not in refused)
    assert type(driver_errors.translated(error, path)) is kind


def test_a_folder_in_the_place_of_the_log_is_damage(tmp_path: Path) -> None:
    """No lack of descriptors, which would pass."""
    path = tmp_path / "a.db"
    sqlite.create(path, None, application_id=1, clock=clock).close()
    Path(f"{path}-wal").mkdir()
    with pytest.raises(StoreDamagedError):
        sqlite.open_existing(path, None, application_id=1, clock=clock, reader=True)


def test_reading_fails_for_want_of_descriptors() -> None:
    """An input or output error while no descriptor is left is a passing lack of them."""
    error = driver.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        found = driver_errors.translated(error)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert type(found) is OutOfHandlesError


# -- the driver itself -------------------------------------------------------------------------


def test_the_installed_driver_is_fit() -> None:
    """It encrypts, does not corrupt, and keeps temporary tables in memory."""
    sqlite.require_fit_driver()


@pytest.mark.parametrize(
    ("version", "cipher", "option", "reason"),
    [
        pytest.param((3, 53, 0), [], "TEMP_STORE=2", "not SQLCipher", id="plain"),
        pytest.param((3, 51, 2), [("4",)], "TEMP_STORE=2", "older", id="old"),
        pytest.param((3, 53, 0), [("4",)], "TEMP_STORE=1", "temporary", id="temporary files"),
    ],
)
def test_an_unfit_driver_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, ...],
    cipher: list[tuple[str]],
    option: str,
    reason: str,
) -> None:
    """Before any file is touched, and with the reason."""

    def execute(sql: str) -> object:
        rows = cipher if "cipher" in sql else [(option,)]
        return (
            SimpleNamespace(fetchone=lambda: rows[0] if rows else None, __iter__=None)
            if ("cipher" in sql)
            else iter(rows)
        )

    raw = SimpleNamespace(execute=execute, close=lambda: None)
    fake = SimpleNamespace(connect=lambda _: raw, sqlite_version_info=version)
    monkeypatch.setattr(sqlite, "driver", fake)
    with pytest.raises(DriverUnfitError, match=reason):
        sqlite.require_fit_driver()


@pytest.mark.parametrize(
    ("sql", "complete"),
    [
        pytest.param("SELECT 1", False, id="no end"),
        pytest.param("SELECT 1;", True, id="ended"),
        pytest.param("CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1;", False, id="in a body"),
        pytest.param(
            "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END;", True, id="whole body"
        ),
    ],
)
def test_the_end_of_a_statement_is_known(sql: str, complete: bool) -> None:  # noqa: FBT001 - a table
    """A semicolon in a trigger's body ends nothing."""
    assert sqlite.is_complete(sql) is complete


# -- the authorizer ----------------------------------------------------------------------------

_REFUSED = [
    pytest.param("SELECT b FROM denied", id="read"),
    pytest.param("SELECT count(*) FROM denied", id="count"),
    pytest.param("SELECT count(*) FROM Denied", id="count in other letters"),
    pytest.param("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM DENIED)", id="inside"),
    pytest.param('SELECT 1 FROM t, "denied" AS harmless', id="by another name"),
    pytest.param("INSERT INTO denied VALUES (1)", id="insert"),
    pytest.param("UPDATE denied SET b = 2", id="update"),
    pytest.param("DELETE FROM denied", id="delete"),
    pytest.param("ATTACH ':memory:' AS other", id="attach"),
    pytest.param("DETACH other", id="detach"),
    pytest.param("CREATE TABLE more (a)", id="create"),
    pytest.param("CREATE TEMP TABLE more (a)", id="temporary"),
    pytest.param("CREATE VIRTUAL TABLE more USING fts5 (a)", id="virtual"),
    pytest.param("DROP TABLE t", id="drop"),
    pytest.param("ALTER TABLE t ADD COLUMN c", id="alter"),
    pytest.param("REINDEX t", id="reindex"),
    pytest.param("ANALYZE", id="analyze"),
    pytest.param("VACUUM", id="vacuum"),
    pytest.param("VACUUM INTO '/tmp/never'", id="vacuum into"),
    pytest.param("PRAGMA foreign_keys = OFF", id="pragma"),
    pytest.param("PRAGMA key = 'x'", id="key"),
    pytest.param("SELECT * FROM pragma_index_list('denied')", id="pragma as table"),
    pytest.param("SELECT load_extension('x')", id="extension"),
]


@pytest.mark.parametrize("sql", _REFUSED)
def test_a_guarded_handle_refuses(connection: Connection, sql: str) -> None:
    """Other tables, other files, other schemas, settings."""
    connection.all("CREATE TABLE denied (b)")
    connection.guard(authorizer(frozenset({"denied"})))
    with pytest.raises(driver.DatabaseError, match=r"prohibited|not authorized|authorization"):
        connection.all(sql)


def test_a_guarded_handle_does_its_work(connection: Connection) -> None:
    """Reading, writing, transactions, recursion, FTS5, checkpoints."""
    connection.all("CREATE VIRTUAL TABLE found USING fts5 (a)")
    connection.guard(authorizer(frozenset({"denied"})))
    connection.all("BEGIN IMMEDIATE")
    connection.all("SAVEPOINT s")
    connection.all("INSERT INTO t VALUES (1, 'x')")
    connection.all("INSERT INTO found VALUES ('word')")
    connection.all("RELEASE s")
    connection.all("COMMIT")
    assert connection.all("SELECT rowid FROM found WHERE found MATCH 'wo*'") == [(1,)]
    assert connection.checkpoint()
    assert connection.all("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT 2) SELECT * FROM n")
