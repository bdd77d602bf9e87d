"""Open handles: borrowed by threads and by the event loop, within a budget, and let go."""

import ctypes
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from app.db import budget
from app.db.pool import Handles, Pool, StoreClosedError, budget_for, descriptors_allowed
from app.db.sqlite import Connection
from app.errors.stores import (
    DiskFullError,
    OutOfHandlesError,
    StoreDamagedError,
    StoreMissingError,
    StoreSwappedError,
)
from tests.support.probes import KEY, make_store, open_store

_LONG_S: Final = 20.0
_ROUNDS: Final = 1_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store."""
    return make_store(tmp_path / "a.db")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Others that want the same."""
    with ThreadPoolExecutor(8) as threads:
        yield threads


def _handles(path: Path, pool: Pool | None = None, *, is_pinned: bool = False) -> Handles:
    return Handles(
        pool or Pool(100), lambda reader: open_store(path, reader=reader), is_pinned=is_pinned
    )


def _descriptors(path: Path) -> int:
    """How many descriptors this process has of the store and its sidecars."""
    held = list(Path("/proc/self/fd").iterdir())
    return sum(str(fd.readlink()).startswith(str(path)) for fd in held if fd.is_symlink())


def _use(connection: Connection) -> None:
    connection.all("SELECT count(*) FROM probes")


# -- borrowing ---------------------------------------------------------------------------------


def test_the_loop_gets_a_handle_only_when_one_is_free(path: Path) -> None:
    """It never opens, never waits."""
    handles = _handles(path)
    assert handles.try_reader() is None
    with handles.borrow_reader() as connection:
        _use(connection)
        assert handles.try_reader() is None
    taken = handles.try_reader()
    assert taken is connection
    assert handles.try_reader() is None
    handles.give_back(taken)
    handles.close()
    assert handles.try_reader() is None


def test_a_thread_waits_for_locks_and_the_loop_does_not(path: Path) -> None:
    """The same handle, set anew each time it is lent to a thread."""
    handles = Handles(Pool(100), lambda _: _unguarded(path))
    with handles.borrow_reader() as connection:
        assert connection.scalar("PRAGMA busy_timeout") == 5_000
    taken = handles.try_reader()
    assert taken is not None
    assert taken.scalar("PRAGMA busy_timeout") == 0
    handles.give_back(taken)
    handles.close()


def _unguarded(path: Path) -> Connection:
    connection = open_store(path, reader=True)
    connection.guard(lambda *_: 0)
    return connection


def test_readers_are_few_and_the_next_waits(path: Path, threads: ThreadPoolExecutor) -> None:
    """Two; a third gets one as soon as it is given back, by the loop too."""
    handles = _handles(path)

    def read() -> Connection:
        with handles.borrow_reader() as connection:
            _use(connection)
            return connection

    with handles.borrow_reader() as one, handles.borrow_reader() as two:
        third = threads.submit(read)
        assert handles._waiting or not third.done()
    assert third.result(_LONG_S) in {one, two}
    taken = [handles.try_reader(), handles.try_reader()]
    waiting = threads.submit(read)
    for connection in taken:
        assert connection is not None
        handles.give_back(connection)
    assert waiting.result(_LONG_S) in taken
    handles.close()


def test_the_writing_handle_is_lent_to_one_at_a_time(
    path: Path, threads: ThreadPoolExecutor
) -> None:
    """The next waits, and gets the same one."""
    handles = _handles(path)

    def write() -> Connection:
        with handles.borrow_writer() as connection:
            return connection

    with handles.borrow_writer() as connection:
        waiting = threads.submit(write)
        assert not waiting.done()
    assert waiting.result(_LONG_S) is connection
    handles.close()


def test_an_opening_that_fails_leaves_the_store_usable(path: Path) -> None:
    """The next attempt opens; nothing is counted twice."""
    pool = Pool(100)
    fails = True

    def open_handle(reader: bool) -> Connection:  # noqa: FBT001 - the pool's protocol
        if fails:
            raise DiskFullError
        return open_store(path, reader=reader)

    handles = Handles(pool, open_handle)
    with pytest.raises(DiskFullError), handles.borrow_reader():
        pass
    with pytest.raises(DiskFullError), handles.borrow_writer():
        pass
    assert pool.used == 0
    fails = False
    with handles.borrow_reader(), handles.borrow_writer():
        pass
    handles.close()
    assert pool.used == 0


def test_a_handle_that_met_damage_is_not_lent_again(tmp_path: Path) -> None:
    """A new one reads what is sound, from a thread; the loop gets none meanwhile."""
    path = make_store(tmp_path / "a.db")
    handles = _handles(path)
    with handles.borrow_reader() as damaged:
        damaged.is_damaged = True
    assert handles.try_reader() is None
    with handles.borrow_reader() as fresh:
        assert fresh is not damaged
    with handles.borrow_writer() as writer:
        writer.is_damaged = True
    with handles.borrow_writer() as other:
        assert other is not writer
    handles.close()
    assert handles._count == 0


@pytest.mark.parametrize("face", ["reader", "writer"])
def test_where_damage_was_met_nothing_is_written_at_the_end(path: Path, face: str) -> None:
    """The log beside the file may be another's: every handle is closed without it."""
    closed: list[Connection] = []

    def close_unwritten(connection: Connection) -> None:
        closed.append(connection)
        connection.close()

    handles = Handles(
        Pool(100),
        lambda reader: open_store(path, reader=reader),
        close_unwritten=close_unwritten,
    )
    with handles.borrow_reader() as one, handles.borrow_writer() as two:
        (one if face == "reader" else two).is_damaged = True
    handles.close()
    assert closed == ([one, two] if face == "reader" else [two, one])


def test_what_cannot_be_opened_in_an_exchanged_place_is_no_damage(path: Path) -> None:
    """It is another file; the handles on the one before go."""
    failures: list[type[Exception]] = []

    def open_handle(reader: bool) -> Connection:  # noqa: FBT001 - the pool's protocol
        if failures:
            raise failures.pop()
        return open_store(path, reader=reader)

    handles = Handles(Pool(100), open_handle)
    with handles.borrow_reader() as connection:
        _use(connection)
    failures.append(StoreDamagedError)
    with pytest.raises(StoreDamagedError), handles.borrow_writer():
        pass
    was_lost = handles.is_lost
    make_store(path.with_name("b.db")).replace(path)
    failures.append(StoreDamagedError)
    with pytest.raises(StoreSwappedError), handles.borrow_writer():
        pass
    assert (was_lost, handles.is_lost) == (False, True)
    handles.close()


def test_a_damaged_handle_goes_with_the_rest(path: Path) -> None:
    """Closing does not wait for somebody to find it."""
    handles = _handles(path)
    with handles.borrow_reader() as connection:
        connection.is_damaged = True
    assert handles.close_idle()
    assert _descriptors(path) == 0
    handles.close()


def test_a_writing_handle_left_inside_a_transaction_is_not_lent_again(path: Path) -> None:
    """What it began is undone with it."""
    handles = _handles(path)
    with handles.borrow_writer() as connection:
        connection.all("BEGIN IMMEDIATE")
        connection.all("INSERT INTO counts VALUES (1, 'w', 1)")
    with handles.borrow_writer() as other:
        assert other is not connection
        assert other.all("SELECT * FROM counts") == []
    handles.close()


# -- closing -----------------------------------------------------------------------------------


def test_closing_waits_for_who_has_a_handle(path: Path, threads: ThreadPoolExecutor) -> None:
    """A thread, and the event loop; afterwards nothing of the file is open."""
    handles = _handles(path)
    with handles.borrow_reader() as connection:
        pass
    with handles.borrow_writer():
        taken = handles.try_reader()
        closing = threads.submit(handles.close)
        while not handles._closed:
            pass
        assert not closing.done()
        for borrow in (handles.borrow_reader, handles.borrow_writer):
            with pytest.raises(StoreClosedError), borrow():
                pass
        assert handles.try_reader() is None
        _use(connection)
    assert not closing.done()
    assert taken is not None
    _use(taken)
    handles.give_back(taken)
    closing.result(_LONG_S)
    assert _descriptors(path) == 0


def test_who_waits_is_told_that_the_store_closed(path: Path, threads: ThreadPoolExecutor) -> None:
    """A thread that stood in line for a handle gets none any more."""
    handles = _handles(path)

    def borrow(lend: Callable[[], object]) -> type[BaseException] | None:
        try:
            with lend():  # type: ignore[attr-defined] # either way of borrowing
                return None
        except StoreClosedError as error:
            return type(error)

    with handles.borrow_reader(), handles.borrow_reader(), handles.borrow_writer():
        waiting = [
            threads.submit(borrow, lend) for lend in (handles.borrow_reader, handles.borrow_writer)
        ]
        while handles._waiting < 2:
            pass
        closing = threads.submit(handles.close)
        assert [each.result(_LONG_S) for each in waiting] == [StoreClosedError] * 2
    closing.result(_LONG_S)


def test_closing_can_interrupt_what_reads(path: Path, threads: ThreadPoolExecutor) -> None:
    """A statement that would run for ever ends; its caller is told the store closed."""
    handles = _handles(path)
    loop = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    begun = threading.Event()

    def read() -> None:
        with handles.borrow_reader() as connection:
            begun.set()
            connection.all(loop)

    reading = threads.submit(read)
    assert begun.wait(_LONG_S)
    handles.close(interrupt=True)
    assert type(reading.exception(_LONG_S)).__mro__[1] is StoreClosedError
    assert _descriptors(path) == 0


def test_closing_waits_for_an_eviction_under_way(
    path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes the file away next must find it closed, whichever thread closes it."""
    handles = _handles(path)
    with handles.borrow_reader():
        pass
    inside, go_on = threading.Event(), threading.Event()
    close = Connection.close

    def slow(self: Connection) -> None:
        inside.set()
        assert go_on.wait(_LONG_S)
        close(self)

    monkeypatch.setattr(Connection, "close", slow)
    evicting = threads.submit(handles.close_idle)
    assert inside.wait(_LONG_S)
    closing = threads.submit(handles.close)
    while not handles._closed:
        pass
    assert not closing.done()
    assert _descriptors(path)
    go_on.set()
    closing.result(_LONG_S)
    assert _descriptors(path) == 0
    assert evicting.result(_LONG_S)


def test_closing_twice_is_closing_once(path: Path) -> None:
    """A lock and a shutdown may both come."""
    pool = Pool(100)
    handles = _handles(path, pool)
    with handles.borrow_reader():
        pass
    handles.close()
    handles.close()
    assert pool.used == 0


def test_a_handle_in_use_on_the_loop_is_never_closed_under_it(
    path: Path, threads: ThreadPoolExecutor
) -> None:
    """Whatever evicts, closes idle writers and reads meanwhile."""
    pool = Pool(100)
    handles = _handles(path, pool)
    over = threading.Event()

    def again(act: Callable[[], object]) -> None:
        while not over.is_set():
            act()

    def read() -> None:
        with handles.borrow_reader() as connection:
            _use(connection)

    def write() -> None:
        with handles.borrow_writer() as connection:
            connection.all("INSERT INTO counts (writer) VALUES ('w')")

    acts: list[Callable[[], object]] = [handles.close_idle, handles.close_idle_writer, read, write]
    busy: list[Future[None]] = [threads.submit(again, act) for act in acts]
    for _ in range(_ROUNDS):
        connection = handles.try_reader()
        if connection is None:
            read()
        else:
            _use(connection)
            handles.give_back(connection)
    over.set()
    for each in busy:
        each.result(_LONG_S)
    handles.close()
    assert pool.used == 0
    assert _descriptors(path) == 0


# -- the budget --------------------------------------------------------------------------------


def test_what_is_counted_is_what_is_open(path: Path) -> None:
    """SQLite keeps a closed handle's descriptor of the database until the file's last goes."""
    pool = Pool(100)
    handles = _handles(path, pool)

    def count() -> tuple[int, int]:
        return pool.used, _descriptors(path)

    seen = [count()]
    with handles.borrow_reader() as one:
        _use(one)
        seen.append(count())
        with handles.borrow_reader() as two, handles.borrow_writer() as writer:
            _use(two)
            _use(writer)
            seen.append(count())
    handles.close_idle_writer()
    handles.close_idle_writer()
    seen.append(count())
    with handles.borrow_writer() as writer:
        _use(writer)
        seen.append(count())
    assert handles.close_idle()
    assert not handles.close_idle()
    seen.append(count())
    assert seen == [(number, number) for number in (0, 3, 7, 6, 7, 0)]
    handles.close()


def test_the_store_unused_for_longest_makes_room(tmp_path: Path) -> None:
    """Its handles go, it stays usable; who uses their own do not."""
    pool = Pool(6)
    paths = [make_store(tmp_path / f"{number}.db") for number in range(3)]
    stores = [_handles(path, pool) for path in paths]
    for store in stores[:2]:
        with store.borrow_reader() as connection:
            _use(connection)
    taken = stores[0].try_reader()
    assert taken is not None
    stores[0].give_back(taken)
    with stores[2].borrow_reader() as connection:
        _use(connection)
    assert [bool(_descriptors(path)) for path in paths] == [True, False, True]
    with stores[1].borrow_reader() as connection:
        _use(connection)
    assert [bool(_descriptors(path)) for path in paths] == [False, True, True]
    assert pool.used == 6
    for store in stores:
        store.close()
    assert pool.used == 0


def test_a_pinned_store_stays(tmp_path: Path) -> None:
    """What every request needs is never evicted, and one in use neither."""
    pool = Pool(3, wait_s=0)
    pinned = _handles(make_store(tmp_path / "a.db"), pool, is_pinned=True)
    other = _handles(make_store(tmp_path / "b.db"), pool)
    with pinned.borrow_reader():
        pass
    with pytest.raises(OutOfHandlesError), other.borrow_reader():
        pass
    assert pinned.try_reader() is not None
    assert pool.used == 3


def test_a_busy_store_is_waited_for(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    """Until it is idle; then its place is taken."""
    pool = Pool(3, wait_s=_LONG_S)
    busy = _handles(make_store(tmp_path / "a.db"), pool)
    other = _handles(make_store(tmp_path / "b.db"), pool)

    def read() -> None:
        with other.borrow_reader() as connection:
            _use(connection)

    with busy.borrow_reader():
        waiting = threads.submit(read)
        while not other._readers_opening:
            pass
        assert not waiting.done()
    waiting.result(_LONG_S)
    busy.close()
    other.close()
    assert pool.used == 0


def test_a_lack_of_descriptors_evicts_once_and_tries_again(tmp_path: Path) -> None:
    """Others of the process may have taken them; a missing file evicts nobody."""
    pool = Pool(100)
    idle = _handles(make_store(tmp_path / "a.db"), pool)
    with idle.borrow_reader():
        pass
    failures: list[type[Exception]] = [OutOfHandlesError]

    def open_handle(reader: bool) -> Connection:  # noqa: FBT001 - the pool's protocol
        if failures:
            raise failures.pop()
        return open_store(tmp_path / "b.db", reader=reader)

    make_store(tmp_path / "b.db")
    wanted = Handles(pool, open_handle)
    with wanted.borrow_reader() as connection:
        _use(connection)
    assert _descriptors(tmp_path / "a.db") == 0

    failures.append(OutOfHandlesError)
    with pytest.raises(OutOfHandlesError), wanted.borrow_writer():
        pass
    with idle.borrow_reader():
        pass
    failures.append(StoreMissingError)
    with pytest.raises(StoreMissingError), wanted.borrow_writer():
        pass
    assert _descriptors(tmp_path / "a.db")
    idle.close()
    wanted.close()
    assert pool.used == 0


def test_writing_handles_that_nobody_used_for_a_while_are_closed(path: Path) -> None:
    """Reading ones stay."""
    pool = Pool(100)
    handles = _handles(path, pool)
    with handles.borrow_reader(), handles.borrow_writer():
        pass
    pool.sweep(_LONG_S)
    assert pool.used == 5
    pool.sweep(-1)
    assert pool.used == 4
    with handles.borrow_writer():
        pool.sweep(-1)
        assert pool.used == 5
    handles.close()


def test_a_writing_handle_is_closed_though_its_store_is_read(path: Path) -> None:
    """Reading is no use of it."""
    pool = Pool(100)
    handles = _handles(path, pool)
    with handles.borrow_writer():
        pass
    with handles.borrow_reader():
        pool.sweep(_LONG_S)
        assert pool.used == 5
        time.sleep(0.05)
    with handles.borrow_reader():
        pool.sweep(0.05)
    assert pool.used == 4
    handles.close()


def test_the_budget_leaves_room_for_clients() -> None:
    """A quarter for them, some for the process, the rest for handles; never none."""
    assert budget_for(256) == 256 - 64 - budget.RESERVED
    assert budget_for(1_000_000) == 1_000_000 - 1024 - budget.RESERVED
    assert budget_for(10) == 8 * budget.FIRST_COST


@pytest.mark.parametrize(
    ("limit", "allowed"),
    [(64, 64), (-1, 1_000_000), (2**40, 1_000_000)],
    ids=["limited", "unlimited", "absurd"],
)
def test_descriptors_allowed_are_the_soft_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int, allowed: int
) -> None:
    """A million when there is none."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert descriptors_allowed() == allowed


def test_memory_is_given_back_now_and_then(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every few evictions, where the allocator can."""
    monkeypatch.setattr(budget, "_TRIM_EVERY", 2)
    trimmed: list[object] = []
    monkeypatch.setattr(ctypes, "CDLL", trimmed.append)
    pool = Pool(100)
    handles = _handles(path, pool)
    for _ in range(4):
        with handles.borrow_reader():
            pass
        assert pool.evict_one()
    assert len(trimmed) == 2
    assert not pool.evict_one()
    handles.close()


def test_forty_stores_fit_into_few_descriptors(tmp_path: Path) -> None:
    """In a process that may have 64: each is read and written, none is called missing."""
    for number in range(40):
        make_store(tmp_path / f"{number}.db", KEY)
    code = f"""
import pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
sys.path.insert(0, {str(Path.cwd())!r})
from app.db.pool import Handles, Pool
from tests.support.probes import open_store
pool = Pool(1_000)
folder = pathlib.Path({str(tmp_path)!r})
stores = [
    Handles(pool, lambda reader, n=number: open_store(folder / f"{{n}}.db", reader=reader))
    for number in range(40)
]
for _ in range(2):
    for store in stores:
        with store.borrow_writer() as connection:
            connection.all("INSERT INTO counts (writer) VALUES ('w')")
        with store.borrow_reader() as connection:
            assert connection.all("SELECT count(*) FROM counts")
print(sum(store._count for store in stores) < 40 * 2)
"""  # noqa: S608 - a program of the test
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "True"
