"""The writers: order, shared commits, failures that stay alone, and what a kill leaves."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Final

import pytest

from app.db import files, looking
from app.db.context import Actor
from app.db.locks import LockFile
from app.db.pool import Handles, Pool, StoreClosedError
from app.db.sqlite import Connection
from app.db.writer import QUEUE_MAX, Lane, Work, Writer
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConstraintError
from app.errors.stores import DiskFullError, OverloadedError, StoreBusyError
from tests.support.probes import ACTOR, KEY, KIND, clock, make_store, open_store, opened

pytestmark = pytest.mark.anyio

_LONG_S: Final = 20.0


@pytest.fixture
def anyio_backend() -> str:
    """The loop that serves."""
    return "asyncio"


class Bench:
    """One store, one lane, one writing thread that can be held up."""

    def __init__(self, path: Path, *, batch_max: int = 64, slice_ms: int = 10_000) -> None:
        self.path = path
        self.handles = Handles(Pool(100), lambda reader: open_store(path, reader=reader))
        self.turns = 0
        self.go = threading.Event()
        self.go.set()
        self.is_refused = False
        self.lane = Lane(self._exclusion)
        self.writer = Writer(threads=1, nice=0, batch_max=batch_max, slice_ms=slice_ms)

    @contextmanager
    def _exclusion(self) -> Iterator[None]:
        assert self.go.wait(_LONG_S)
        self.turns += 1
        if self.is_refused:
            raise StoreBusyError
        yield

    def submit(self, work: Work[Any], actor: Actor = ACTOR) -> asyncio.Task[Any]:
        """Put a write in line."""
        return asyncio.create_task(self.writer.submit(self.lane, self.handles, work, actor))

    async def together(self, *works: Work[Any]) -> list[Any]:
        """Put writes in line while the first of them waits for its turn; their answers."""
        self.go.clear()
        tasks = [self.submit(work) for work in works]
        await asyncio.sleep(0)  # each is in line now
        self.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    def ids(self) -> list[str]:
        """What is on the disk, by another handle."""
        with opened(self.path, reader=True) as reader:
            return [key for (key,) in reader.all("SELECT id FROM probes ORDER BY rowid")]

    def close(self) -> None:
        """End the thread and let the file go."""
        self.go.set()
        self.writer.close()
        self.handles.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A store that is written by itself."""
    bench = Bench(make_store(tmp_path / "a.db"))
    try:
        yield bench
    finally:
        bench.close()


def _add(key: str) -> Work[str]:
    def work(connection: Connection) -> str:
        connection.all("INSERT INTO probes (id) VALUES (:id)", {"id": key})
        return key

    return work


def _fail_after(key: str, error: Exception) -> Work[None]:
    def work(connection: Connection) -> None:
        _add(key)(connection)
        raise error

    return work


async def test_a_write_is_answered_once_it_is_on_the_disk(bench: Bench) -> None:
    """With what it returned; another handle reads it."""
    assert await bench.submit(_add("a")) == "a"
    assert bench.ids() == ["a"]


async def test_writes_that_queued_share_one_commit_in_their_order(bench: Bench) -> None:
    """One turn, one transaction, every answer."""
    keys = [f"k{number}" for number in range(20)]
    assert await bench.together(*map(_add, keys)) == keys
    assert bench.ids() == keys
    assert bench.turns == 1


@pytest.mark.parametrize("broken", [0, 1, 2], ids=["first", "middle", "last"])
async def test_a_write_that_fails_in_a_shared_commit_fails_alone(bench: Bench, broken: int) -> None:
    """It leaves nothing, the others stand, and all in one turn."""
    works: list[Work[Any]] = [_add("a"), _add("b"), _add("c")]
    works[broken] = _fail_after("never", NotFoundError())
    answers = await bench.together(*works)
    assert isinstance(answers.pop(broken), NotFoundError)
    assert bench.ids() == answers
    assert bench.turns == 1


async def test_each_write_has_its_own_actor(bench: Bench) -> None:
    """In one commit, too; and the handle has none afterwards."""
    bench.go.clear()
    names = ["ana", "ben", "cyd"]
    tasks = [bench.submit(_add(name), Actor("human", name, "x")) for name in names]
    await asyncio.sleep(0)
    bench.go.set()
    await asyncio.gather(*tasks)
    with opened(bench.path, reader=True) as reader:
        rows = reader.all("SELECT entity_id, actor_sub FROM sys_events ORDER BY seq")
    assert rows == [(name, name) for name in names]
    with bench.handles.borrow_writer() as connection:
        assert connection.actor is None


def _lose_transaction(connection: Connection) -> None:
    connection.all("INSERT INTO counts VALUES (1, 'lost', 1)")
    connection.all("INSERT OR ROLLBACK INTO counts VALUES (1, 'twice', 1)")


def _fill_disk(connection: Connection) -> None:
    pages = connection.scalar("PRAGMA page_count")
    connection.all(f"PRAGMA max_page_count = {pages!r}")
    try:
        connection.all("INSERT INTO probes (id, body) VALUES ('big', zeroblob(200000) || '')")
    finally:
        connection.all("PRAGMA max_page_count = 1073741823")


def _hide_loss(connection: Connection) -> str:
    try:
        _lose_transaction(connection)
    except ConstraintError:
        return "all is well"
    return "it is not"


def _defer_breach(connection: Connection) -> None:
    connection.all("INSERT INTO probes (id, parent) VALUES ('orphan', 'nobody')")


_FATAL = [
    pytest.param(_lose_transaction, ConstraintError, id="error that ends the transaction"),
    pytest.param(_fill_disk, DiskFullError, id="full disk"),
    pytest.param(_hide_loss, Exception, id="loss that is kept quiet"),
    pytest.param(_defer_breach, ConstraintError, id="commit that fails"),
]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("fatal", "error"), _FATAL)
async def test_an_error_that_takes_the_transaction_fails_only_its_own_write(
    tmp_path: Path, fatal: Work[Any], error: type[Exception], place: int
) -> None:
    """The rest runs again, one by one, and the handle is good afterwards."""
    path = make_store(tmp_path / "a.db")
    bench = Bench(path)
    bench.handles = Handles(
        Pool(100), lambda reader: files.open_maintenance(path, KEY, KIND, clock, reader=reader)
    )
    try:
        works: list[Work[Any]] = [_add("a"), _add("b")]
        works.insert(place, fatal)
        answers = await bench.together(*works)
        assert isinstance(answers.pop(place), error)
        assert answers == bench.ids() == ["a", "b"]
        assert await bench.submit(_add("c")) == "c"
    finally:
        bench.close()


async def test_a_batch_ends_at_its_most(tmp_path: Path) -> None:
    """So that others get their turn."""
    bench = Bench(make_store(tmp_path / "a.db"), batch_max=4)
    try:
        keys = [f"k{number}" for number in range(10)]
        assert await bench.together(*map(_add, keys)) == keys
        assert bench.turns == 3
    finally:
        bench.close()


async def test_a_batch_ends_with_its_time(tmp_path: Path) -> None:
    """A slice of no length makes every write a commit of its own."""
    bench = Bench(make_store(tmp_path / "a.db"), slice_ms=0)
    try:
        assert await bench.together(_add("a"), _add("b"), _add("c")) == ["a", "b", "c"]
        assert bench.turns == 3
    finally:
        bench.close()


async def test_two_faces_of_a_file_share_a_queue_and_no_commit(bench: Bench) -> None:
    """Arrival decides; a transaction belongs to one face."""
    other = Handles(Pool(100), lambda reader: open_store(bench.path, reader=reader))
    bench.go.clear()
    first, second = bench.handles, other
    order: list[str] = []

    def note(key: str) -> Work[str]:
        def work(connection: Connection) -> str:
            order.append(key)
            return _add(key)(connection)

        return work

    tasks = [
        asyncio.create_task(bench.writer.submit(bench.lane, face, note(key), ACTOR))
        for key, face in [("a", first), ("b", first), ("c", second), ("d", first)]
    ]
    await asyncio.sleep(0)
    bench.go.set()
    await asyncio.gather(*tasks)
    other.close()
    assert order == ["a", "b", "c", "d"]
    assert bench.turns == 3


async def test_a_write_that_was_given_up_before_its_turn_never_runs(bench: Bench) -> None:
    """And one given up while it runs is done, for it cannot be told any more."""
    bench.go.clear()
    kept, dropped, last = (bench.submit(_add(key)) for key in ("kept", "dropped", "last"))
    await asyncio.sleep(0)
    dropped.cancel()
    await asyncio.wait({dropped})
    bench.go.set()
    await asyncio.gather(kept, last)
    assert bench.ids() == ["kept", "last"]

    running, finish = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        _add("slow")(connection)
        running.set()
        assert finish.wait(_LONG_S)

    task = bench.submit(slow)
    await asyncio.to_thread(running.wait, _LONG_S)
    task.cancel()
    await asyncio.wait({task})
    finish.set()
    await bench.submit(_add("after"))
    assert bench.ids() == ["kept", "last", "slow", "after"]


async def test_a_queue_has_an_end(bench: Bench) -> None:
    """Beyond it a write is refused at once, undone, rather than kept in memory."""
    bench.go.clear()
    tasks = [bench.submit(lambda _: None) for _ in range(QUEUE_MAX + 1)]
    await asyncio.sleep(0)
    more = [bench.submit(_add("never")) for _ in range(3)]
    await asyncio.wait(more)
    refused = [task for task in [*tasks, *more] if task.done()]
    bench.go.set()
    assert {type(task.exception()) for task in refused} == {OverloadedError}
    await asyncio.gather(*tasks, return_exceptions=True)
    assert bench.ids() == []


async def test_writes_of_a_closed_store_are_refused_and_never_run(bench: Bench) -> None:
    """Those that waited when it closed as well; none is lost in silence."""
    bench.go.clear()
    tasks = [bench.submit(_add(key)) for key in ("a", "b", "c")]
    await asyncio.sleep(0)
    bench.handles.close()
    bench.go.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreClosedError] * 3
    with pytest.raises(StoreClosedError):
        await bench.submit(_add("d"))
    assert bench.ids() == []


async def test_a_closed_face_does_not_fail_the_other(bench: Bench) -> None:
    """What waits for the file's other face is written."""
    other = Handles(Pool(100), lambda reader: open_store(bench.path, reader=reader))
    bench.go.clear()
    closed = bench.submit(_add("never"))
    written = asyncio.create_task(bench.writer.submit(bench.lane, other, _add("b"), ACTOR))
    await asyncio.sleep(0)
    bench.handles.close()
    bench.go.set()
    answers = await asyncio.gather(closed, written, return_exceptions=True)
    other.close()
    assert type(answers[0]) is StoreClosedError
    assert answers[1] == "b"


async def test_a_turn_that_does_not_come_is_awaited_once(bench: Bench) -> None:
    """Whoever waited as long as the first is told busy with it; later ones try anew."""
    bench.is_refused = True
    answers = await bench.together(_add("a"), _add("b"), _add("c"))
    assert {type(answer) for answer in answers} == {StoreBusyError}
    assert bench.turns == 1
    bench.is_refused = False
    assert await bench.submit(_add("d")) == "d"
    assert bench.ids() == ["d"]


async def test_closing_finishes_what_waits_and_refuses_the_rest(bench: Bench) -> None:
    """No write hangs for ever."""
    bench.go.clear()
    tasks = [bench.submit(_add(f"k{number}")) for number in range(200)]
    await asyncio.sleep(0)
    closing_thread = asyncio.create_task(asyncio.to_thread(bench.writer.close))
    await asyncio.sleep(0)
    bench.go.set()
    answers = await asyncio.gather(*tasks)
    await closing_thread
    assert bench.ids() == answers
    with pytest.raises(StoreClosedError):
        await bench.submit(_add("late"))


async def test_many_stores_share_the_threads(tmp_path: Path) -> None:
    """Each in its order, none forgotten."""
    benches = [Bench(make_store(tmp_path / f"{number}.db", None)) for number in range(3)]
    writer = Writer(threads=2, nice=19, batch_max=3, slice_ms=50)
    for bench in benches:
        bench.handles = Handles(Pool(100), _opener(bench.path))
    works = [
        writer.submit(bench.lane, bench.handles, _add(f"k{number}"), ACTOR)
        for number in range(30)
        for bench in benches
    ]
    await asyncio.gather(*works)
    writer.close()
    for bench in benches:
        with opened(bench.path, None, reader=True) as reader:
            keys = reader.all("SELECT id FROM probes ORDER BY rowid")
        assert keys == [(f"k{number}",) for number in range(30)]
        bench.close()


def _opener(path: Path) -> Callable[[bool], Connection]:
    return lambda reader: open_store(path, None, reader=reader)


def test_an_answer_for_a_loop_that_ended_is_dropped(tmp_path: Path) -> None:
    """The write is done; the thread goes on."""
    bench = Bench(make_store(tmp_path / "a.db"))
    bench.go.clear()

    async def leave() -> None:
        task = bench.submit(_add("left"))
        await asyncio.sleep(0)
        task.remove_done_callback(lambda _: None)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    pending = asyncio.all_tasks(loop)
    loop.close()
    bench.go.set()
    bench.close()
    assert bench.ids() == ["left"]
    for task in pending:  # it never ends, which is no news here
        task._log_destroy_pending = False  # type: ignore[attr-defined] # of the standard library


# -- other processes ---------------------------------------------------------------------------


def test_a_kill_keeps_every_write_that_was_acknowledged(tmp_path: Path) -> None:
    """Sent in the middle of shared commits; the file opens and has at least those."""
    path = make_store(tmp_path / "a.db")
    code = f"""
import asyncio, pathlib, sys
sys.path.insert(0, {str(Path.cwd())!r})
from tests.unit.db.test_writer import Bench, _add
async def main():
    bench = Bench(pathlib.Path({str(path)!r}), slice_ms=50)
    async def client(name):
        for number in range(100_000):
            key = f"{{name}}-{{number}}"
            await bench.submit(_add(key))
            print(key, flush=True)
    await asyncio.gather(*(client(name) for name in "abcdefgh"))
asyncio.run(main())
"""
    child = subprocess.Popen(  # noqa: S603 - this very program
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().strip() for _ in range(300)]
    child.send_signal(signal.SIGKILL)
    acknowledged += [line.strip() for line in child.stdout if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    with closing(open_store(path)) as connection:
        kept = {key for (key,) in connection.all("SELECT id FROM probes")}
        events = {key for (key,) in connection.all("SELECT entity_id FROM sys_events")}
        assert connection.all("PRAGMA wal_checkpoint")
    assert set(acknowledged) <= kept
    assert events == kept
    assert looking.integrity(path, KEY, KIND, clock) == []


def _compete(folder: Path, name: str, both: Barrier) -> None:
    locks = LockFile(folder / "locks")
    path = folder / "a.db"
    with closing(open_store(path)) as connection:
        both.wait(_LONG_S)
        for number in range(150):
            with locks.write_lock(1, _LONG_S):
                connection.all("BEGIN IMMEDIATE")
                connection.all(
                    "INSERT INTO counts (writer, number) VALUES (:w, :n)", {"w": name, "n": number}
                )
                connection.all("COMMIT")
    locks.close()


def test_two_processes_write_one_store_in_turns(tmp_path: Path) -> None:
    """None starves: while both want it, neither gets far ahead."""
    path = make_store(tmp_path / "a.db")
    spawn = multiprocessing.get_context("spawn")
    both = spawn.Barrier(2)
    children = [spawn.Process(target=_compete, args=(tmp_path, name, both)) for name in "ab"]
    for child in children:
        child.start()
    for child in children:
        child.join(_LONG_S)
        assert child.exitcode == os.EX_OK
    with opened(path, reader=True) as reader:
        order = [name for (name,) in reader.all("SELECT writer FROM counts ORDER BY place")]
    assert len(order) == 300
    half = order[:150]
    assert 35 < half.count("a") < 115
