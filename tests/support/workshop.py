"""Jobs of the tests' own, and a process that runs them."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ConfigDict

from app.bridge.strongroom import Strongroom
from app.db.context import system_actor
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.errors.callers import NotPermittedError
from app.runtime import jobs
from app.runtime.jobs import Job, Json
from app.worker.handlers import Handlers, JobContext, Outcome, PermanentJobError
from app.worker.orchestrator import Orchestrator

ACTOR: Final = system_actor("test")
KIND: Final = "strongroom.test"
EFFECT: Final = "effect"
"""The kind of what a test's job writes in its own store: once, however often it ran."""
_BOUND_S: Final = 60.0
_LONG_S: Final = 2.5
"""More than twice the lease that a test of it chooses."""


class Order(BaseModel):
    """What a test's job is to do."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    how: str = "well"


@dataclass
class Workshop:
    """Handles the tests' jobs, and keeps count."""

    runs: Counter[str] = field(default_factory=Counter)
    """How often a handler ran to its end, by the job's id."""
    begun: Counter[str] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)
    """Of the orders, as they began."""
    at_once: Counter[int] = field(default_factory=Counter)
    """Running now, by store."""
    most: int = 0
    most_of_one: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """What `wait` waits for."""
    handlers: Handlers = field(default_factory=Handlers)

    def __post_init__(self) -> None:
        self.handlers.handler(KIND, Order)(self.handle)

    async def handle(self, ctx: JobContext, order: Order) -> Outcome:
        """Do as the order says."""
        self.begun[ctx.job_id] += 1
        self.names.append(order.name)
        self.at_once[id(ctx.store)] += 1
        self.most = max(self.most, self.at_once.total())
        self.most_of_one = max(self.most_of_one, self.at_once[id(ctx.store)])
        try:
            return await self._do(ctx, order)
        finally:
            self.at_once[id(ctx.store)] -= 1

    async def _do(self, ctx: JobContext, order: Order) -> Outcome:
        match order.how:
            case "permanent":
                code = "in_vain"
                raise PermanentJobError(code)
            case "refused":
                raise NotPermittedError
            case "broken":
                message = "a secret"
                raise RuntimeError(message)
            case "wait":
                await self.gate.wait()
            case "long":
                await asyncio.sleep(_LONG_S)
            case "bad_effect":
                return Outcome(effect=_fall)
            case _:
                await asyncio.sleep(0)
        self.runs[ctx.job_id] += 1
        return Outcome({"attempt": ctx.attempt}, lambda tx: _leave_mark(tx, ctx.job_id))


def _fall(tx: OwnerTransactor) -> None:
    _leave_mark(tx, "never")
    raise NotPermittedError


def _leave_mark(tx: OwnerTransactor, job_id: str) -> None:
    jobs.enqueue(tx, EFFECT, {"of": job_id}, is_outside=True)


async def enqueue(
    store: OwnerStore, payload: Json = None, kind: str = KIND, **more: int | str
) -> str:
    """Enqueue one of the tests' jobs."""
    order = {} if payload is None else payload

    def work(tx: OwnerTransactor) -> str:
        return jobs.enqueue(tx, kind, order, **more)[0]  # type: ignore[arg-type]

    return await store.write(work, ACTOR)


async def effects(store: OwnerStore) -> Counter[str]:
    """How often each job's effect was written, by its id."""

    def read(reader: OwnerReader) -> Counter[str]:
        rows = jobs.list_page(reader, before=None, limit=10_000, kind=EFFECT)
        found = (json.loads(jobs.get(reader, row.id).payload)["of"] for row in rows)
        return Counter(found)

    return await store.read(read)


async def job(store: OwnerStore, job_id: str) -> Job:
    """One job as it is now."""
    return await store.read(lambda reader: jobs.get(reader, job_id))


async def ended(store: OwnerStore, job_id: str) -> Job:
    """One job, once it is over."""
    return await reached(store, job_id, lambda found: found.finished_at is not None)


async def reached(store: OwnerStore, job_id: str, is_so: Callable[[Job], bool]) -> Job:
    """One job, once something is so; waits a bounded time."""
    async with asyncio.timeout(_BOUND_S):
        while not is_so(found := await job(store, job_id)):  # noqa: ASYNC110 - a row, not an event
            await asyncio.sleep(0.005)
    return found


async def until(is_so: Callable[[], bool]) -> None:
    """Let the other tasks run until something is so; waits a bounded time."""
    async with asyncio.timeout(_BOUND_S):
        while not is_so():  # noqa: ASYNC110 - what is waited for knows nothing of the test
            await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def working(
    room: Strongroom, handlers: Handlers, random: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[Orchestrator]:
    """Run jobs in a process until the end of the context."""
    orchestrator = Orchestrator(room, handlers, random)
    room.stores.company.append(orchestrator)
    loop = asyncio.create_task(orchestrator.run())
    try:
        yield orchestrator
    finally:
        await orchestrator.close()
        await loop
