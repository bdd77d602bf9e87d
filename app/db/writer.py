"""The writers of a process: a FIFO a file, a few threads, one commit for what queued meanwhile.

An answer is given after COMMIT has returned, so an acknowledged write is on the disk.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, cast

from app.db.bell import Bell
from app.db.context import Actor
from app.db.driver_errors import StoreClosedError
from app.db.sqlite import Connection
from app.errors.stores import OverloadedError, StoreBusyError

ResultT = TypeVar("ResultT")
Work = Callable[[Connection], ResultT]
"""Runs inside a transaction and returns plain data; may be run again if its commit fails."""

QUEUE_MAX: Final = 2_000
"""Writes that may wait for one file in one process; beyond, 503 rather than memory."""


class WriteTarget(Protocol):
    """One face of a file, able to lend its writing handle."""

    def borrow_writer(self) -> AbstractContextManager[Connection]:
        """Lend the handle that writes, opening it when it is closed."""

    def require_in_place(self) -> None:
        """Refuse to go on when the file at the path is no longer the one that is open."""


@dataclass(slots=True, eq=False)
class _Job:
    target: WriteTarget
    work: Work[Any]
    actor: Actor
    future: asyncio.Future[Any]
    submitted_at: float = field(default_factory=time.monotonic)
    result: Any = None
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class Lane:
    """The queue of one file's writes in this process; its faces share it."""

    exclusion: Callable[[], AbstractContextManager[None]]
    """The file's write lock among processes, taken before BEGIN IMMEDIATE."""
    jobs: deque[_Job] = field(default_factory=deque)
    is_served: bool = False
    """Whether a thread has it, or it stands in line for one."""
    bell: Bell = field(default_factory=Bell)
    """Rung after each commit of this process."""


class Writer:
    """The writing threads of this process."""

    def __init__(self, *, threads: int, nice: int, batch_max: int, slice_ms: int) -> None:
        """Start them.

        Args:
            threads: How many files can be written at the same time.
            nice: Their niceness, so that reads keep the processor.
            batch_max: Most writes in one commit.
            slice_ms: After so long a batch commits and lets other processes have the file.
        """
        self._nice = nice
        self._batch_max = batch_max
        self._slice_s = slice_ms / 1000
        self._changed = threading.Condition()
        self._ready: deque[Lane] = deque()
        self._is_closing = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"writer-{n}", daemon=True)
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def submit(
        self, lane: Lane, target: WriteTarget, work: Work[ResultT], actor: Actor
    ) -> ResultT:
        """Run the work in a transaction, in the order of arrival, and wait for its commit.

        Returns:
            What the work returned.

        Raises:
            OverloadedError: Too many writes wait for this file; nothing was done.
            StoreClosedError: The store, or the writer, was closed; nothing was done.
        """
        job = _Job(target, work, actor, asyncio.get_running_loop().create_future())
        with self._changed:
            if self._is_closing:
                raise StoreClosedError
            if len(lane.jobs) >= QUEUE_MAX:
                raise OverloadedError
            lane.jobs.append(job)
            self._line_up(lane)
        return cast("ResultT", await job.future)

    def close(self) -> None:
        """Finish what waits, then end the threads; what comes later is refused."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _line_up(self, lane: Lane) -> None:
        if lane.jobs and not lane.is_served:
            lane.is_served = True
            self._ready.append(lane)
            self._changed.notify()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._nice)
        while (lane := self._next_lane()) is not None:
            job = self._next_job(lane)
            if job is not None:
                _settle(self._run_batch(lane, job))
            with self._changed:
                lane.is_served = False
                self._line_up(lane)

    def _next_lane(self) -> Lane | None:
        """Wait for a lane with work; None when there is none and there will be none."""
        with self._changed:
            while not self._ready:
                if self._is_closing:
                    return None
                self._changed.wait()
            return self._ready.popleft()

    def _next_job(self, lane: Lane, target: WriteTarget | None = None) -> _Job | None:
        """The next job, or None; with a target, only when the next is for that face."""
        with self._changed:
            while lane.jobs:
                if target is not None and lane.jobs[0].target is not target:
                    return None
                job = lane.jobs.popleft()
                if not job.future.cancelled():
                    return job
        return None

    def _run_batch(self, lane: Lane, first: _Job) -> list[_Job]:
        """Run a job, and those behind it, in one commit if it can be; else one by one."""
        batch = [first]
        began = time.monotonic()
        failure = self._commit(lane, batch, self._batch_max)
        if failure is not None and len(batch) > 1:
            for job in batch:
                job.error = self._commit(lane, [job], 1) or job.error
        elif failure is not None:
            if first.error is None and isinstance(failure, StoreBusyError):
                # Whoever waited as long as the first is not made to wait as long again.
                batch += self._take_older(lane, first.target, began)
            for job in batch:
                job.error = failure
        return batch

    def _take_older(self, lane: Lane, target: WriteTarget, began: float) -> list[_Job]:
        """Take the jobs for this face that stood in line when the one before them began."""
        found = []
        with self._changed:
            while lane.jobs and lane.jobs[0].target is target:
                if lane.jobs[0].submitted_at > began:
                    break
                found.append(lane.jobs.popleft())
        return found

    def _commit(self, lane: Lane, batch: list[_Job], batch_max: int) -> Exception | None:
        """Run a batch in one transaction, taking more into it while there is time.

        Returns:
            Why nothing of it was written; None when it is on the disk.
        """
        is_committed = False
        try:
            with lane.exclusion(), batch[0].target.borrow_writer() as connection:
                until = time.monotonic() + self._slice_s
                connection.all("BEGIN IMMEDIATE")
                try:
                    _attempt(connection, batch[0])
                    while len(batch) < batch_max and time.monotonic() < until:
                        job = self._next_job(lane, batch[0].target)
                        if job is None:
                            break
                        batch.append(job)
                        _attempt(connection, job)
                    # Before, so that nothing is written to a file that nobody will read;
                    # and after, so that nothing that was is called written.
                    batch[0].target.require_in_place()
                    connection.all("COMMIT")
                    batch[0].target.require_in_place()
                    is_committed = True
                    lane.bell.ring()
                finally:
                    if connection.in_transaction:
                        connection.all("ROLLBACK")
        except Exception as error:  # noqa: BLE001 - a batch may fail, its thread never
            # What happens after the commit is no reason to call it undone.
            return None if is_committed else error
        return None


def _attempt(connection: Connection, job: _Job) -> None:
    """Run one job inside the open transaction; its failure undoes its own changes alone.

    Raises:
        Exception: The job's own error, when it took the whole transaction with it.
    """
    connection.all("SAVEPOINT job")
    job.error = None
    connection.actor = job.actor
    try:
        job.result = job.work(connection)
        # Fails when the work kept to itself that the transaction is gone.
        connection.all("RELEASE job")
    except Exception as error:
        job.error = error
        if not connection.in_transaction:
            raise
        connection.all("ROLLBACK TO job")
        connection.all("RELEASE job")
    finally:
        connection.actor = None


def _settle(batch: Sequence[_Job]) -> None:
    """Answer every caller, each on its own loop."""

    def answer(jobs: Sequence[_Job]) -> None:
        for job in jobs:
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)

    for loop in {job.future.get_loop() for job in batch}:
        jobs = [job for job in batch if job.future.get_loop() is loop]
        # The loop may have ended meanwhile; then nobody waits for the answer.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(answer, jobs)
