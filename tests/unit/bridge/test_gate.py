"""The gate before password derivations: its number, its queue, its refusals, its leavings."""

import asyncio
import multiprocessing
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from argon2.low_level import Type, hash_secret_raw

from app.bridge.gate import (
    MAX_WAITING,
    MAX_WAITING_UNTRUSTED,
    DerivationGate,
    _Derivation,
)
from app.db.locks import ROLE_DERIVATIONS, LockFile
from app.errors.stores import OverloadedError, StoreBusyError

pytestmark = pytest.mark.anyio

SPAWN = multiprocessing.get_context("spawn")
LONG_S = 20.0  # a deadline no healthy run meets


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop of the program."""
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the lock file of the test stands."""
    return tmp_path / ".stores.lock"


@pytest.fixture
def locks(path: Path) -> Iterator[LockFile]:
    """The lock file as this process has it open."""
    file = LockFile(path)
    yield file
    file.close()


@pytest.fixture
def stranger(path: Path) -> Iterator[LockFile]:
    """A second open file of the same path: to the kernel, what another process is."""
    file = LockFile(path)
    yield file
    file.close()


@pytest.fixture
def gate(locks: LockFile) -> Iterator[DerivationGate]:
    """The gate of this process."""
    gate = DerivationGate(locks)
    yield gate
    gate.close()


async def _until(claim: Callable[[], bool]) -> None:
    """Let the loop and the threads run until the claim holds."""
    async with asyncio.timeout(LONG_S):
        while not claim():  # noqa: ASYNC110  threads set no event of the loop
            await asyncio.sleep(0.001)


async def _waiting(gate: DerivationGate, count: int) -> None:
    await _until(lambda: gate._waiting == count)


def _take_slots(stranger: LockFile, count: int = 2) -> None:
    for slot in ROLE_DERIVATIONS[:count]:
        assert stranger.try_role(slot)


class Derivation:
    """A call that runs until told to end, and gives a key."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.end = threading.Event()

    def __call__(self) -> str:
        """Derive."""
        self.running.set()
        assert self.end.wait(LONG_S)
        return "key"


async def test_a_result_and_an_error_reach_the_caller(gate: DerivationGate) -> None:
    """What the function returns is returned, and what it raises is raised, lock errors too."""
    assert await gate.run("a", lambda: 7) == 7

    def fail() -> None:
        raise StoreBusyError

    with pytest.raises(ZeroDivisionError):
        await gate.run("a", lambda: 1 / 0)
    with pytest.raises(StoreBusyError):
        await gate.run("a", fail)
    assert await gate.run("a", lambda: "still served") == "still served"


async def test_derivations_run_on_patient_threads_of_their_own(gate: DerivationGate) -> None:
    """They run beside the event loop, at a niceness of 10, in no more than two threads."""

    def look() -> tuple[int, int]:
        thread = threading.get_native_id()
        return thread, os.getpriority(os.PRIO_PROCESS, thread)

    seen = await asyncio.gather(*(gate.run("a", look) for _ in range(8)))
    threads = {thread for thread, _ in seen}
    assert threading.get_native_id() not in threads
    assert len(threads) <= 2
    assert {niceness for _, niceness in seen} == {10}


async def test_a_refused_niceness_is_no_matter(
    locks: LockFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the priority cannot be changed, derivations run all the same."""

    def refuse(_which: int, _who: int, _priority: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    gate = DerivationGate(locks)
    assert await gate.run("a", lambda: 7) == 7
    gate.close()


async def test_strangers_fill_no_more_than_half_the_queue(
    gate: DerivationGate, stranger: LockFile
) -> None:
    """Ten wait, whoever they are; ten more after a recent success only; then nobody."""
    _take_slots(stranger)
    ran: list[str] = []
    async with asyncio.TaskGroup() as group:
        for number in range(MAX_WAITING_UNTRUSTED):
            group.create_task(gate.run(f"{number}", lambda: ran.append("stranger")))
        await _waiting(gate, 10)
        with pytest.raises(OverloadedError):
            await gate.run("one more", lambda: ran.append("refused"))
        for _ in range(MAX_WAITING - MAX_WAITING_UNTRUSTED):
            group.create_task(gate.run("known", lambda: ran.append("known"), trusted=True))
        await _waiting(gate, 20)
        with pytest.raises(OverloadedError):
            await gate.run("known", lambda: ran.append("refused"), trusted=True)
        assert ran == []
        stranger.close()
    assert sorted(ran) == ["known"] * 10 + ["stranger"] * 10


async def test_networks_are_served_in_turn(gate: DerivationGate, stranger: LockFile) -> None:
    """However many calls of one network wait, another's first comes after one of them."""
    _take_slots(stranger)
    ran: list[str] = []
    async with asyncio.TaskGroup() as group:
        for network in "aaaabbc":
            group.create_task(gate.run(network, partial(ran.append, network)))
        await _waiting(gate, 7)
        stranger.release_role(ROLE_DERIVATIONS[0])  # one thread, so that the order is told
    assert "".join(ran) == "abcabaa"


async def test_who_is_cancelled_leaves_the_queue(gate: DerivationGate, stranger: LockFile) -> None:
    """A caller that goes while waiting makes room, and nothing is derived for it."""
    _take_slots(stranger)
    ran: list[str] = []
    gone = [asyncio.create_task(gate.run("a", lambda: ran.append("gone"))) for _ in range(10)]
    await _waiting(gate, 10)
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)
    assert all(task.cancelled() for task in gone)
    assert (gate._waiting, dict(gate._queues)) == (0, {})
    stranger.close()
    await gate.run("a", lambda: ran.append("here"))
    assert ran == ["here"]


async def test_a_running_derivation_outlives_its_caller(gate: DerivationGate) -> None:
    """A caller that goes too late gets nothing; the key that comes is dropped, by its owner."""
    derivation = Derivation()
    dropped: list[str] = []
    task = asyncio.create_task(gate.run("a", derivation, on_dropped=dropped.append))
    await _until(derivation.running.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert dropped == []
    derivation.end.set()
    await _until(lambda: dropped == ["key"])


async def test_a_result_nobody_takes_needs_no_drop(gate: DerivationGate) -> None:
    """Without `on_dropped` a late result, or a late error, is let go in silence."""
    for late in (Derivation(), Derivation()):
        task = asyncio.create_task(gate.run("a", late))
        await _until(late.running.is_set)
        task.cancel()
        await asyncio.wait([task])
        late.end.set()
    failing = Derivation()
    failed = asyncio.create_task(gate.run("a", lambda: [failing(), 1 / 0]))
    await _until(failing.running.is_set)
    failed.cancel()
    await asyncio.wait([failed])
    failing.end.set()
    assert await gate.run("a", lambda: 7) == 7


@pytest.mark.parametrize("good", [True, False], ids=["result", "error"])
async def test_a_cancellation_in_the_turn_of_the_result_drops_it(*, good: bool) -> None:
    """A key that was answered, but not taken before its caller was cancelled, is dropped."""
    dropped: list[float] = []
    derivation = _Derivation(lambda: 1 / good, dropped.append)
    task = asyncio.create_task(derivation.outcome())
    await asyncio.sleep(0)
    derivation.work()
    asyncio.get_running_loop().call_soon(task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert dropped == ([1.0] if good else [])


@pytest.mark.parametrize("good", [True, False], ids=["result", "error"])
def test_a_closed_loop_gets_nothing(*, good: bool) -> None:
    """When the event loop is gone, the key is dropped on the thread that derived it."""
    dropped: list[float] = []

    async def enter() -> _Derivation[float]:
        return _Derivation(lambda: 1 / good, dropped.append)

    derivation = asyncio.run(enter())
    derivation.work()
    derivation.refuse()
    assert dropped == ([1.0] if good else [])


async def test_an_idle_gate_remembers_no_call(gate: DerivationGate) -> None:
    """Once answered, nothing of the gate refers to the call, which knows a password."""
    derivation = Derivation()
    derivation.end.set()
    assert await gate.run("a", derivation) == "key"
    remains = weakref.ref(derivation)
    del derivation
    await _until(lambda: remains() is None)


async def test_closing_refuses_who_waits_and_who_comes(
    gate: DerivationGate, stranger: LockFile
) -> None:
    """A closed gate answers at once, and what was running still reaches its caller."""
    _take_slots(stranger, 1)
    derivation = Derivation()
    running = asyncio.create_task(gate.run("a", derivation))
    await _until(derivation.running.is_set)
    waiting = [asyncio.create_task(gate.run(network, lambda: 7)) for network in "abb"]
    await _waiting(gate, 3)
    gate.close()
    gate.close()
    for task in waiting:
        with pytest.raises(OverloadedError):
            await task
    with pytest.raises(OverloadedError):
        await gate.run("a", lambda: 7, trusted=True)
    derivation.end.set()
    assert await running == "key"


@pytest.mark.parametrize(
    "trouble",
    [StoreBusyError(), OSError("No locks available"), RuntimeError("can't start new thread")],
    ids=["held for long", "no lock", "no thread"],
)
async def test_a_slot_that_cannot_be_had_is_asked_for_again(
    gate: DerivationGate, locks: LockFile, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    """Trouble with the locks ends no derivation thread: who waits is served when it is over."""
    real = locks.role_lock
    met = threading.Event()

    def role_lock(index: int, timeout_s: float) -> AbstractContextManager[None]:
        if not met.is_set():
            met.set()
            raise trouble
        return real(index, timeout_s)

    monkeypatch.setattr(locks, "role_lock", role_lock)
    assert await gate.run("a", lambda: 7) == 7
    assert met.is_set()


async def test_two_gates_share_two_slots(gate: DerivationGate, stranger: LockFile) -> None:
    """While one process fills both slots another derives nothing; then it does."""
    other = DerivationGate(stranger)
    first, second, third = Derivation(), Derivation(), Derivation()
    mine = [asyncio.create_task(gate.run("a", fn)) for fn in (first, second)]
    await _until(lambda: first.running.is_set() and second.running.is_set())
    theirs = asyncio.create_task(other.run("a", third))
    await _until(lambda: stranger._askers == 2)
    assert not third.running.is_set()
    first.end.set()
    await _until(third.running.is_set)
    second.end.set()
    third.end.set()
    assert await asyncio.gather(*mine, theirs) == ["key"] * 3
    other.close()


def _derive_in_child(path: Path, start: Barrier, pipe: Connection) -> None:
    spans: list[tuple[int, int]] = []

    def derive() -> None:
        began = time.monotonic_ns()
        hash_secret_raw(b"password", b"salt" * 4, 2, 1 << 13, 1, 32, Type.ID)
        spans.append((began, time.monotonic_ns()))

    async def derive_all() -> None:
        gate = DerivationGate(LockFile(path))
        start.wait()
        await asyncio.gather(*(gate.run(f"{number}", derive) for number in range(10)))

    asyncio.run(derive_all())
    pipe.send(spans)


def test_two_processes_derive_two_at_a_time_in_all(path: Path) -> None:
    """Over all processes of a server no moment sees a third derivation."""
    start = SPAWN.Barrier(2)
    pipes, processes = [], []
    for _ in range(2):
        mine, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=_derive_in_child, args=(path, start, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)
    spans = [span for pipe in pipes for span in pipe.recv()]
    for process, pipe in zip(processes, pipes, strict=True):
        process.join()
        pipe.close()
    assert len(spans) == 20
    for began, _ in spans:
        assert sum(other <= began < ended for other, ended in spans) <= 2
