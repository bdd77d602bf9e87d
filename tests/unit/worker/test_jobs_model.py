"""Jobs against a small model, in two processes on one store, at a time that the test moves.

Nothing is lost, nothing is held twice, attempts are counted, the dead stay dead.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.owner.store import OwnerTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError, JobOverError, LeaseLostError
from app.runtime import jobs
from app.runtime.jobs import Claim, Terms
from tests.support.matrix import chosen
from tests.support.rig import ACTOR, Rig

T = TypeVar("T")
TERMS: Final = Terms(lease_ms=10_000, attempts_max=3, backoff_max_ms=8_000)
_KIND: Final = "strongroom.model"
_PROCESSES: Final = 2


@dataclass
class Known:
    """One job as the model has it."""

    key: str | None
    priority: int
    run_at: int
    status: str = "pending"
    attempts: int = 0
    generation: int = 0
    lease_until: int = 0

    @property
    def is_live(self) -> bool:
        """Whether it is not over."""
        return self.status in {"pending", "running"}


class JobsMachine(RuleBasedStateMachine):
    """Two processes that enqueue, claim, keep, lose, settle; and time that passes."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.rig = Rig(self.folder / "root", self.template)
        self.clock = self.rig.clock
        self.loop = asyncio.new_event_loop()
        self.open = AsyncExitStack()
        self.rooms: list[Strongroom] = []
        self.model: dict[str, Known] = {}

    claims = Bundle("claims")

    @initialize()
    def start(self) -> None:
        """Two processes on one root."""
        for _ in range(_PROCESSES):
            self.rooms.append(self._await(self.open.enter_async_context(self.rig.open())))

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def _write(self, process: int, work: Callable[[OwnerTransactor], T]) -> T:
        return self._await(self.rooms[process].stores.group.write(work, ACTOR))

    process = st.integers(0, _PROCESSES - 1)

    @rule(
        process=process,
        key=st.sampled_from([None, None, "a", "b"]),
        priority=st.integers(0, 1),
        later_ms=st.sampled_from([0, 0, 5_000]),
    )
    def enqueue(self, process: int, key: str | None, priority: int, later_ms: int) -> None:
        """A live key names the job that has it."""
        # Ids of one moment have no order, and a history is to go the same way again.
        self.clock.advance(1)
        run_at = Millis(self.clock() + later_ms)
        job_id, is_new = self._write(
            process,
            lambda tx: jobs.enqueue(
                tx, _KIND, {}, dedupe_key=key, run_at=run_at, priority=priority
            ),
        )
        live = [i for i, job in self.model.items() if key and job.key == key and job.is_live]
        assert is_new == (not live)
        if is_new:
            self.model[job_id] = Known(key, priority, run_at)
        else:
            assert [job_id] == live

    @rule(target=claims, process=process)
    def claim(self, process: int) -> Claim | None:
        """The first that is due, once the silent claims are ended."""

        def take(tx: OwnerTransactor) -> list[Claim]:
            jobs.expire(tx, TERMS)
            return jobs.claim(tx, "w", TERMS, 1)

        found = self._write(process, take)
        self._expire()
        due = [
            (-job.priority, job.run_at, job_id)
            for job_id, job in self.model.items()
            if job.status == "pending" and job.run_at <= self.clock()
        ]
        if not due:
            assert found == []
            return None
        job = self.model[min(due)[2]]
        [taken] = found
        assert taken.id == min(due)[2]
        job.status, job.lease_until = "running", self.clock() + TERMS.lease_ms
        job.attempts, job.generation = job.attempts + 1, job.generation + 1
        assert (taken.attempts, taken.generation) == (job.attempts, job.generation)
        return taken

    def _expire(self) -> None:
        for job in self.model.values():
            if job.status == "running" and job.lease_until <= self.clock():
                job.status = "dead" if job.attempts >= TERMS.attempts_max else "pending"

    @rule(
        process=process,
        claim=claims,
        act=st.sampled_from(["finish", "fail", "permanent", "release", "renew"]),
    )
    def settle(self, process: int, claim: Claim | None, act: str) -> None:
        """Only by the present claim, from whatever process."""
        if claim is None:
            return
        job = self.model.get(claim.id)
        holds = job and job.status == "running" and job.generation == claim.generation

        def write(tx: OwnerTransactor) -> None:
            held = (tx, claim.id, claim.generation)
            match act:
                case "finish":
                    jobs.finish(*held)
                case "release":
                    jobs.release(*held)
                case "renew":
                    jobs.renew(*held, TERMS)
                case _:
                    jobs.fail(*held, "x", TERMS, lambda: 1.0, is_permanent=act == "permanent")

        if job is None or not holds:
            with pytest.raises(NotFoundError if job is None else LeaseLostError):
                self._write(process, write)
            return
        self._write(process, write)
        self._settled(job, act)

    def _settled(self, job: Known, act: str) -> None:
        match act:
            case "finish":
                job.status = "done"
            case "release":
                job.status, job.attempts = "pending", job.attempts - 1
            case "renew":
                job.lease_until = self.clock() + TERMS.lease_ms
            case _:
                is_dead = act == "permanent" or job.attempts >= TERMS.attempts_max
                job.status = "dead" if is_dead else "pending"
                pause_ms = min(2**job.attempts * 1000, TERMS.backoff_max_ms)
                job.run_at = self.clock() + pause_ms

    @rule(
        process=process,
        data=st.data(),
        act=st.sampled_from(["cancel", "retry", "remove"]),
    )
    def operate(self, process: int, data: st.DataObject, act: str) -> None:
        """What the state of the job admits, and nothing else."""
        if not self.model:
            return
        job_id = data.draw(st.sampled_from(sorted(self.model)))
        job = self.model[job_id]
        refusal = self._refusal(job, act)
        acts = {"cancel": jobs.cancel, "retry": jobs.retry, "remove": jobs.remove}
        if refusal is not None:
            with pytest.raises(refusal):
                self._write(process, lambda tx: acts[act](tx, job_id))
            return
        self._write(process, lambda tx: acts[act](tx, job_id))
        if act == "remove":
            del self.model[job_id]
        elif act == "cancel":
            job.status = "cancelled"
        else:
            job.status, job.attempts, job.run_at = "pending", 0, self.clock()

    def _refusal(self, job: Known, act: str) -> type[ConflictError] | None:
        """What stands against an operator's act; None when nothing does."""
        if act == "cancel":
            return None if job.is_live else JobOverError
        if act == "remove":
            return ConflictError if job.is_live else None
        if job.status == "done":
            return JobOverError
        has_twin = job.key is not None and any(
            other.is_live and other.key == job.key and other is not job
            for other in self.model.values()
        )
        return ConflictError if job.status == "running" or has_twin else None

    @rule(ms=st.sampled_from([1, 2_000, 5_000, 10_000]))
    def wait(self, ms: int) -> None:
        """Time passes."""
        self.clock.advance(ms)

    @rule(process=process)
    def restart(self, process: int) -> None:
        """Processes end and others come; what was claimed stays so until its time is over."""
        self._await(self.open.aclose())
        self.rooms.clear()
        self.start()
        assert len(self.rooms) > process

    @invariant()
    def nothing_is_lost_or_otherwise(self) -> None:
        """Every job is there as the model has it, and no other."""
        if not self.rooms:
            return
        rows = self._await(
            self.rooms[-1].stores.group.read(
                lambda reader: jobs.list_page(reader, before=None, limit=10_000)
            )
        )
        assert {row.id: (row.status, row.attempts, row.generation) for row in rows} == {
            job_id: (job.status, job.attempts, job.generation) for job_id, job in self.model.items()
        }

    @override
    def teardown(self) -> None:
        """Both processes end."""
        self._await(self.open.aclose())
        self.loop.close()
        shutil.rmtree(self.folder)


def test_jobs_are_as_their_model(template: Path) -> None:
    """Whatever two processes do, in whatever order."""
    JobsMachine.template = template
    examples, steps = chosen([(3, 25)], [(150, 60)])[0]
    run_state_machine_as_test(
        JobsMachine,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )
