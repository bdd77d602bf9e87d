"""A store's asynchronous face: what runs on the loop, what on a thread, and how it fails."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from app.db.pool import Handles, Pool, StoreClosedError
from app.db.queries import StatementSet, parse
from app.db.runtime.store import LATER, RuntimeReader, RuntimeStore, RuntimeTransactor
from app.db.sqlite import Connection
from app.db.writer import Lane, Writer
from app.errors.stores import StoreBusyError, StoreDamagedError
from app.ids import is_uuid
from tests.support.probes import ACTOR, NOW, make_store, open_store

pytestmark = pytest.mark.anyio

Store = RuntimeStore[RuntimeReader, RuntimeTransactor]


class _Probe(NamedTuple):
    id: str
    name: str | None


_STATEMENTS = StatementSet(
    {
        block.name: block
        for block in parse(
            """\
-- name: find
-- One.
-- inline: one row by primary key
SELECT id, name FROM probes WHERE id = :id;

-- name: list
-- All.
SELECT id, name FROM probes ORDER BY id;

-- name: add
-- One more.
INSERT INTO probes (id, name) VALUES (:id, :name) RETURNING id, name;
"""
        )
    }
)
FIND = _STATEMENTS.bind("find", _Probe)
LIST = _STATEMENTS.bind("list", _Probe)
ADD = _STATEMENTS.bind("add", _Probe)


@pytest.fixture
def anyio_backend() -> str:
    """The loop that serves."""
    return "asyncio"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store nobody has opened yet."""
    path = make_store(tmp_path / "a.db")
    writer = Writer(threads=1, nice=0, batch_max=64, slice_ms=50)
    with ThreadPoolExecutor(2) as threads:
        store = Store(
            handles=Handles(Pool(100), lambda reader: open_store(path, reader=reader)),
            lane=Lane(nullcontext),
            writer=writer,
            threads=threads,
            reader=RuntimeReader,
            transactor=RuntimeTransactor,
        )
        yield store
        await asyncio.to_thread(writer.close)
        await asyncio.to_thread(store.handles.close)


async def _add(store: Store, key: str, name: str | None = None) -> list[_Probe]:
    return await store.write(lambda tx: tx.run(ADD, id=key, name=name), ACTOR)


async def test_what_is_written_is_read(store: Store) -> None:
    """Rows come as their statement's type, and None where there is none."""
    assert await _add(store, "a", "n") == [_Probe("a", "n")]
    assert await store.read(lambda reader: reader.all(LIST)) == [_Probe("a", "n")]
    assert await store.read(lambda reader: reader.one(FIND, id="a")) == _Probe("a", "n")
    assert await store.read(lambda reader: reader.one(FIND, id="b")) is None


async def test_the_loop_reads_by_itself_once_the_store_is_open(store: Store) -> None:
    """Until then, and for a statement that may not, a thread must."""
    assert store.try_one(FIND, id="a") is LATER
    assert await store.one(FIND, id="a") is None
    assert store.try_one(FIND, id="a") is None
    await _add(store, "a")
    assert store.try_one(FIND, id="a") == _Probe("a", None)
    assert await store.one(FIND, id="a") == _Probe("a", None)
    assert store.try_one(LIST) is LATER
    assert await store.one(LIST) == _Probe("a", None)


@pytest.mark.parametrize("error", [StoreBusyError, StoreDamagedError])
async def test_what_stands_in_the_loops_way_is_met_on_a_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """A lock or damage is no answer yet."""
    await store.one(FIND, id="a")

    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "one", refuse)
        assert store.try_one(FIND, id="a") is LATER
    assert store.try_one(FIND, id="a") is None


async def test_a_commit_is_news_once(store: Store) -> None:
    """Whichever handle is asked; and what cannot be told is news."""
    assert store.has_news()
    await store.one(FIND, id="a")
    assert [store.has_news(), store.has_news()] == [True, False]
    with store.handles.borrow_reader(), store.handles.borrow_reader():
        assert store.has_news()  # both are lent
    for _ in range(2):
        store.has_news()
    assert not store.has_news()
    await _add(store, "a")
    assert store.has_news()
    assert not store.has_news()
    with store.handles.borrow_reader():
        assert store.has_news()  # of the other handle, for the first time since
        assert not store.has_news()


@pytest.mark.parametrize("error", [StoreBusyError, StoreDamagedError])
async def test_what_cannot_be_asked_has_news(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """A lock or damage; the handle is given back."""
    await store.one(FIND, id="a")
    assert [store.has_news(), store.has_news()] == [True, False]

    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "one", refuse)
        assert store.has_news()
    assert not store.has_news()


async def test_an_error_on_the_loop_gives_the_handle_back(store: Store) -> None:
    """A mistaken parameter does not cost the store a handle."""
    await store.one(FIND, id="a")
    with pytest.raises(Exception, match="binding"):
        store.try_one(FIND)
    assert store.try_one(FIND, id="a") is None


async def test_a_read_sees_one_snapshot(store: Store) -> None:
    """What is written meanwhile is not in it."""
    between, go_on = threading.Event(), threading.Event()

    def read(reader: RuntimeReader) -> tuple[int, int]:
        first = len(reader.all(LIST))
        between.set()
        assert go_on.wait(20)
        return first, len(reader.all(LIST))

    reading = asyncio.create_task(store.read(read))
    await asyncio.to_thread(between.wait, 20)
    await _add(store, "a")
    assert not await store.checkpoint()
    go_on.set()
    assert await reading == (0, 0)
    assert len(await store.read(lambda reader: reader.all(LIST))) == 1
    assert await store.checkpoint()


async def test_a_read_that_fails_ends_its_snapshot(store: Store) -> None:
    """The handle is good for the next."""
    with pytest.raises(ZeroDivisionError):
        await store.read(lambda _: 1 / 0)
    assert await store.read(lambda reader: reader.all(LIST)) == []


async def test_a_transaction_knows_time_and_actor(store: Store) -> None:
    """And names new rows; outside of a write there is no actor."""

    def work(tx: RuntimeTransactor) -> tuple[object, ...]:
        return tx.now_ms, tx.actor, is_uuid(tx.new_id())

    assert await store.write(work, ACTOR) == (NOW, ACTOR, True)
    with store.handles.borrow_writer() as connection, pytest.raises(RuntimeError, match="actor"):
        _ = RuntimeTransactor(connection).actor


async def test_a_closed_store_says_so(store: Store) -> None:
    """To readers and writers alike."""
    await _add(store, "a")
    await asyncio.to_thread(store.handles.close)
    assert store.try_one(FIND, id="a") is LATER
    for attempt in (store.one(FIND, id="a"), _add(store, "b"), store.checkpoint()):
        with pytest.raises(StoreClosedError):
            await attempt
