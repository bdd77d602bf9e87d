"""What a worker does beside answering: watch, lock what is idle, lead.

No loop is cut in the middle of a round, for a round may be repairing: each is asked to
stop, and awaited.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from app import telemetry
from app.bridge.generations import Generations
from app.bridge.maintenance.janitor import Janitor
from app.bridge.notifications.subscribers import SUBSCRIBERS, Subscribers
from app.bridge.stores import Stores
from app.bridge.strongroom import Strongroom
from app.bridge.work import waiting
from app.db.locks import ROLE_LEADER
from app.ids import UserId
from app.worker import duties, housekeeping, ticks
from app.worker.control import serve_control
from app.worker.deliveries import Deliveries
from app.worker.exposition import serve_metrics
from app.worker.handlers import OWN, Handlers
from app.worker.housekeeping import Housekeeper
from app.worker.orchestrator import Orchestrator
from app.worker.ticks import Ticker

LEADER_POLL_S: Final = 1.0
"""Within this time another process takes over from a dead leader."""
_IDLE_POLL_MAX_S: Final = 15.0
_IDLE_PARTS: Final = 10
_IDLE_WRITER_S: Final = 30.0
"""After this a writing handle is given up; its store stays unlocked, its readers open."""
_PLAIN_POLL_S: Final = 5.0
"""Between two looks for plain stores that are closed and have work that is due."""
_AFTER_ERROR_S: Final = 1.0


@contextlib.asynccontextmanager
async def run_loops(
    room: Strongroom, handlers: Handlers = OWN, subscribers: Subscribers = SUBSCRIBERS
) -> AsyncIterator[None]:
    """Run a worker's loops until the end of the context.

    Args:
        room: The service.
        handlers: What the program's own jobs do.
        subscribers: Parts of the program that are told of events.

    Yields:
        Once they have begun.
    """
    settings = room.settings
    closings, generations = _Closings(room.stores), Generations(room.stores)
    orchestrator = Orchestrator(room, handlers)
    deliveries = Deliveries(room, subscribers)
    room.stores.company += [orchestrator, deliveries]
    ticker, housekeeper = Ticker(room), Housekeeper(room)
    stopping = asyncio.Event()

    async def watch() -> None:
        closings.begin(await generations.find_changed())

    async def lock_idle() -> None:
        closings.begin(room.stores.idle_since(settings.idle_lock_s))
        await room.stores.on_thread(lambda: room.stores.pool.sweep(_IDLE_WRITER_S))

    async def lead() -> None:
        if room.stores.locks.try_role(ROLE_LEADER):
            await _lead(room, stopping)

    idle_poll_s = min(settings.idle_lock_s / _IDLE_PARTS, _IDLE_POLL_MAX_S)
    loops = [
        asyncio.create_task(_repeat(stopping, settings.generation_poll_ms / 1000, "watch", watch)),
        asyncio.create_task(_repeat(stopping, idle_poll_s, "idle", lock_idle)),
        asyncio.create_task(_repeat(stopping, LEADER_POLL_S, "leader", lead)),
        asyncio.create_task(orchestrator.run()),
        asyncio.create_task(_repeat(stopping, ticks.POLL_S, "schedules", ticker.round)),
        asyncio.create_task(
            _repeat(stopping, housekeeping.POLL_S, "housekeeping", housekeeper.round)
        ),
        asyncio.create_task(deliveries.run()),
    ]
    try:
        yield
    finally:
        stopping.set()
        await asyncio.gather(orchestrator.close(), deliveries.close())
        await asyncio.gather(*loops)
        ticker.close()
        await closings.settle()


async def _lead(room: Strongroom, stopping: asyncio.Event) -> None:
    """Do what one process does for all; the role is free again when it returns."""

    async def serve() -> None:
        async with serve_control(room):
            await stopping.wait()

    async def expose() -> None:
        if room.settings.metrics_address is not None:
            async with serve_metrics(room.settings.metrics_address, room.settings.metrics_folder):
                await stopping.wait()

    janitor = Janitor(room.settings, room.stores)
    try:
        await duties.declare(room)
        await asyncio.gather(
            # Each second, for any worker may have been killed amid an operation.
            _repeat(stopping, LEADER_POLL_S, "settle", janitor.settle),
            _repeat(stopping, room.settings.janitor_s, "janitor", janitor.compare),
            _repeat(stopping, LEADER_POLL_S, "control", serve),
            _repeat(stopping, LEADER_POLL_S, "metrics", expose),
            _repeat(stopping, _PLAIN_POLL_S, "plain", lambda: waiting.open_plain_due(room)),
        )
    finally:
        room.stores.locks.release_role(ROLE_LEADER)


async def _repeat(
    stopping: asyncio.Event, pause_s: float, name: str, work: Callable[[], Awaitable[None]]
) -> None:
    """Do the work again and again until asked to stop; no error ends it."""
    while not stopping.is_set():
        wait_s = pause_s
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the boundary of a loop
            telemetry.unexpected(name, error)
            wait_s = max(pause_s, _AFTER_ERROR_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await stopping.wait()


class _Closings:
    """Stores on their way out of this process; one that takes long delays no other."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._under_way: dict[UserId, asyncio.Task[None]] = {}

    def begin(self, user_ids: list[UserId]) -> None:
        """Let these stores go, unless that is under way."""
        for user_id in user_ids:
            if user_id not in self._under_way:
                self._under_way[user_id] = asyncio.create_task(self._close(user_id))

    async def _close(self, user_id: UserId) -> None:
        try:
            await self._stores.lock(user_id)
        except Exception as error:  # noqa: BLE001 - the boundary of a task
            telemetry.unexpected("closing", error)
        finally:
            del self._under_way[user_id]

    async def settle(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._under_way.values())
