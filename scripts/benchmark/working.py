"""How fast the program's own jobs are done: enqueued, claimed, run, marked."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from app.bridge import start
from app.bridge.strongroom import Strongroom
from app.crypto.kdf import KdfParams
from app.db.context import system_actor
from app.db.owner.store import OwnerTransactor
from app.runtime import due, jobs
from app.settings import Settings
from app.worker.handlers import Handlers, JobContext, Outcome
from app.worker.orchestrator import Orchestrator
from scripts.benchmark.cases import Bench
from scripts.benchmark.meter import Figures

_ACTOR: Final = system_actor("bench")
_JOBS: Final = 500
_KIND: Final = "strongroom.bench"
_CHEAP: Final = KdfParams(memory_kib=64, time_cost=1)
_LOOK_S: Final = 0.02
_WORK: Final = Handlers()


class _Nothing(BaseModel):
    """The payload of a job that does nothing."""


@_WORK.handler(_KIND, _Nothing)
async def _work(_ctx: JobContext, _payload: _Nothing) -> Outcome:
    return Outcome()


def working(bench: Bench) -> None:
    """(j): jobs that do nothing, in one store, in as many processes as one."""
    figures = Figures("j: a job, enqueue to done", 1)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(root=Path(folder))
        start.prepare(settings, kdf_params=_CHEAP)
        asyncio.run(_measure(settings, figures, bench.effort.rounds))
    bench.report.figures.append(figures)


async def _measure(settings: Settings, figures: Figures, rounds: int) -> None:
    async with start.running(settings, kdf_params=_CHEAP) as room:
        orchestrator = Orchestrator(room, _WORK)
        loop = asyncio.create_task(orchestrator.run())
        for _ in range(rounds):
            await _round(room, figures)
        await orchestrator.close()
        await loop


async def _round(room: Strongroom, figures: Figures) -> None:
    """Enqueue one by one and wait until all are done; a figure is one job's share."""
    began, spent = time.perf_counter(), time.process_time()
    group = room.stores.group

    def enqueue(tx: OwnerTransactor) -> None:
        jobs.enqueue(tx, _KIND, {})

    await asyncio.gather(*(group.write(enqueue, _ACTOR) for _ in range(_JOBS)))
    while (await group.watch(due.next_due)) != (None, None):  # noqa: ASYNC110 - as a client would
        await asyncio.sleep(_LOOK_S)
    took = time.perf_counter() - began
    figures.micros.append(int(took / _JOBS * 1e6))
    figures.rates.append(_JOBS / took)
    figures.cpu_us.append((time.process_time() - spent) / _JOBS * 1e6)
