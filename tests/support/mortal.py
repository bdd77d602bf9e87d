"""A process of the service, as far as its loops go, that can die at any moment.

What dies writes nothing more: its writer ends first, so whatever else of it is still on its way
meets a closed store. Its locks go with it, as the kernel would have it.
"""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from pydantic import BaseModel, ConfigDict

from app.bridge.notifications.deliveries import Message
from app.bridge.notifications.subscribers import Subscriber, Told
from app.bridge.strongroom import Strongroom
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.runtime import deliveries as owed
from app.runtime import jobs
from app.runtime.deliveries import Result
from app.worker.deliveries import Deliveries
from app.worker.handlers import Handlers, JobContext, Outcome, PermanentJobError
from app.worker.http_sender import Sender
from app.worker.orchestrator import Orchestrator
from app.worker.ticks import Ticker
from tests.support.forecast import How, Mode, Watcher
from tests.support.rig import Rig, enter

Home = Literal["group", "own"]
HOMES: Final[tuple[Home, ...]] = ("group", "own")
KIND: Final = "strongroom.whole"
JOB_EFFECT: Final = "job_effect"
PART: Final = "whole_part"
"""A part of the program that is told of the group's events."""
PART_EFFECT: Final = "part_effect"
POINTS: Final = (
    "job.claimed",
    "job.ran",
    "job.marked",
    "delivery.claimed",
    "delivery.sent",
    "delivery.marked",
    "schedule.due",
    "schedule.settled",
)
AMID_A_WRITE: Final = "schedule.written"
"""Is reached on the thread that writes: only a real process dies there."""
_LOOK_S: Final = 0.003
_RENEW_S: Final = 0.02


class Order(BaseModel):
    """What a job is to do; a schedule adds when it was due."""

    model_config = ConfigDict(extra="forbid", strict=True)

    how: How
    schedule_id: str = ""
    due_at: str = ""


class RefusedError(Exception):
    """What a handler fails with."""


@dataclass
class Outside:
    """What the world around the processes is like, and what it saw."""

    gate_is_open: bool = True
    """Whether jobs that wait go on."""
    modes: dict[str, Mode] = field(default_factory=lambda: {"far": "ok", PART: "ok"})
    told: Counter[str] = field(default_factory=Counter)
    """How often the webhooks' far end took each delivery, by its id."""
    begun: Counter[str] = field(default_factory=Counter)
    """How often each job and each delivery was begun, by its id."""
    faults: list[str] = field(default_factory=list)
    turned: threading.Condition = field(default_factory=threading.Condition)

    def turn(self, name: str, mode: Mode) -> None:
        """Have somebody who is told behave otherwise from now on."""
        with self.turned:
            self.modes[name] = mode
            self.turned.notify_all()

    def open(self) -> None:
        """Everybody is well, and every job that waits goes on."""
        self.gate_is_open = True
        for name in self.modes:
            self.turn(name, "ok")


@dataclass(eq=False)
class Run:
    """A handler or a try that is under way."""

    id: str
    of: object
    """The process."""
    is_lapsed: bool = False
    """Whether its lease was seen to be over: then another may have begun it anew."""


class Ledger:
    """What is under way in all processes together.

    What died leaves its own in it: its leases hold still, and nobody else may begin the same.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self.runs: list[Run] = []

    def begin(self, name: str, of: object) -> None:
        """Something begins; the same may be nobody else's whose lease still holds."""
        if any(run.id == name and not run.is_lapsed for run in self.runs):
            self._outside.faults.append(f"{name} runs twice")
        self._outside.begun[name] += 1
        self.runs.append(Run(name, of))

    def end(self, name: str, of: object) -> None:
        """The first of them that a process has is over."""
        self.runs.remove(next(run for run in self.runs if (run.id, run.of) == (name, of)))

    def note_leases(self, leases: Mapping[str, int], now: int) -> None:
        """Time has come to this: some leases are over."""
        for run in self.runs:
            run.is_lapsed |= leases.get(run.id, 0) <= now

    def note_rest(self, leases: Mapping[str, int], now: int, living: Collection[object]) -> None:
        """At rest: what was renewed has not lapsed, and what lapsed with the dead is gone."""
        self.runs = [run for run in self.runs if run.of in living or leases.get(run.id, 0) > now]
        count = Counter(run.id for run in self.runs)
        for run in self.runs:
            run.is_lapsed &= count[run.id] > 1 or leases.get(run.id, 0) <= now


class Mortal:
    """One process."""

    def __init__(self, rig: Rig, outside: Outside, ledger: Ledger) -> None:
        self._rig = rig
        self._outside = outside
        self._ledger = ledger
        self._stack = contextlib.AsyncExitStack()
        self._loops: list[asyncio.Task[None]] = []
        self._watched: dict[OwnerStore, Watcher] = {}
        self.name: object = self
        """As the ledger has it."""
        self.fuse: str | None = None
        """The point at which it dies."""
        self.is_dead = False
        self.owners: set[str] = set()
        """The names under which it claims."""
        self.parked: Counter[str] = Counter()
        """Jobs that wait here for the gate."""
        self.trying: Counter[str] = Counter()
        """Deliveries that are being told from here."""

    async def begin(self) -> None:
        """Start it."""
        self.room = room = await self._stack.enter_async_context(self._rig.open(self._reach))
        handlers = Handlers()
        handlers.handler(KIND, Order)(self._work)
        self._orchestrator = Orchestrator(room, handlers, lambda: 1.0)
        self._orchestrator._rules = replace(self._orchestrator._rules, renew_s=_RENEW_S)
        part = Subscriber(PART, ("memory_doc.*",), self._take)
        self._sender = Sender(room.settings.delivery_timeout_s, room.settings.webhook_networks)
        sender = cast("Sender", self)
        self._deliveries = Deliveries(room, [part], sender=sender, random=lambda _low, _high: 1.0)
        self._ticker = Ticker(room)
        room.stores.company += [self._orchestrator, self._deliveries]
        self.owners = {self._orchestrator._owner, self._deliveries._owner}
        self._loops = [
            asyncio.create_task(self._orchestrator.run()),
            asyncio.create_task(self._deliveries.run()),
        ]

    def store(self, home: Home) -> OwnerStore | None:
        """The member's store, or the group's; None while it is locked here."""
        if home == "group":
            return self.room.stores.group
        unlocked = list(self.room.stores.unlocked().values())
        return unlocked[0].store if unlocked else None

    def has(self, home: Home) -> bool:
        """Whether it can work in a store."""
        return self.store(home) is not None

    def watcher(self, home: Home) -> Watcher | None:
        """Since when it looks for ticks in a store; None when it does not."""
        store = self.store(home)
        return None if store is None else self._watched.get(store)

    async def unlock(self) -> None:
        """Have the member sign in."""
        await enter(self.room)

    async def lock(self) -> None:
        """Have the member's store locked here."""
        for user_id in self.room.stores.unlocked():
            await self.room.stores.lock(user_id)

    async def tick(self) -> None:
        """Look for ticks, once; it may die of it."""
        for store in self.room.stores.live():
            began_at = None if store is self.room.stores.group else self.room.stores.began_at
            self._watched.setdefault(store, Watcher(self._rig.clock(), began_at))
        with contextlib.suppress(asyncio.CancelledError):
            await self._ticker.round()

    async def refresh(self) -> None:
        """Know what of it is told here; nothing to be done in the same process."""

    # -- its end -------------------------------------------------------------------------------

    def die(self) -> None:
        """Do nothing more that anybody could see."""
        self.is_dead = True
        self.room.stores._writer.close()

    async def end(self) -> None:
        """Stop it in order, or clear away what is left of it when it died."""
        await asyncio.gather(self._orchestrator.close(), self._deliveries.close())
        await asyncio.gather(*self._loops)
        self._ticker.close()
        await self._stack.aclose()

    def _reach(self, point: str) -> None:
        if point == self.fuse and not self.is_dead:
            self.die()
        if self.is_dead and point != AMID_A_WRITE:
            raise asyncio.CancelledError

    async def _living(self) -> None:
        """Go on, unless it died: then never."""
        if self.is_dead:
            await asyncio.Event().wait()

    @contextlib.contextmanager
    def _running(self, name: str) -> Iterator[None]:
        """A handler or a try is under way."""
        self._ledger.begin(name, self.name)
        try:
            yield
        finally:
            if not self.is_dead:
                self._ledger.end(name, self.name)

    # -- what it does --------------------------------------------------------------------------

    async def _work(self, ctx: JobContext, order: Order) -> Outcome:
        await self._living()
        with self._running(ctx.job_id):
            if order.how == "wait":
                await self._park(ctx.job_id)
            if order.how == "permanent":
                code = "in_vain"
                raise PermanentJobError(code)
            if order.how == "broken":
                raise RefusedError
        return Outcome(effect=lambda tx: _leave_mark(tx, JOB_EFFECT, ctx.job_id))

    async def _park(self, job_id: str) -> None:
        self.parked[job_id] += 1
        try:
            while not self._outside.gate_is_open:  # noqa: ASYNC110 - knows nothing of loops
                await asyncio.sleep(_LOOK_S)
        finally:
            self.parked[job_id] -= 1
        await self._living()

    async def _take(self, room: Strongroom, told: Told) -> None:
        await self._living()
        self.trying[told.delivery_id] += 1
        try:
            with self._running(told.delivery_id):
                while self._outside.modes[PART] == "hang":  # noqa: ASYNC110 - as above
                    await asyncio.sleep(_LOOK_S)
                await self._living()
                if self._outside.modes[PART] == "fail":
                    raise RefusedError
                await room.stores.group.write(lambda tx: _take_once(tx, told), told.actor)
        finally:
            self.trying[told.delivery_id] -= 1

    async def send(self, message: Message) -> Result:
        """Send to a webhook."""
        await self._living()
        name = message.headers["webhook-id"]
        self.trying[name] += 1
        try:
            with self._running(name):
                result = await self._sender.send(message)
                await self._living()
                return result
        finally:
            self.trying[name] -= 1

    async def close(self) -> None:
        """Let every connection go."""
        await self._sender.close()


def _leave_mark(tx: OwnerTransactor, kind: str, of: str) -> None:
    jobs.enqueue(tx, kind, {"of": of}, is_outside=True)


def _take_once(tx: OwnerTransactor, told: Told) -> None:
    if not owed.handled(tx, told.delivery_id, PART):
        _leave_mark(tx, PART_EFFECT, told.delivery_id)
