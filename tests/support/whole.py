"""A root, the processes on it, and the model of what they are to do; everything in one loop."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from app.bridge import start
from app.clock import Millis
from app.db.driver_errors import StoreClosedError
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.owner import identity
from app.owner import notes as owner_notes
from app.owner.notes import Condition
from app.runtime import events, jobs, schedules
from app.runtime.events import Page
from app.runtime.schedules import Definition
from app.runtime.timing import Timing
from app.settings import Settings
from tests.support import forecast, post_office
from tests.support.endpoint import NETWORKS, Endpoint, Received
from tests.support.expected import PERIOD_MS, Facts, Known
from tests.support.forecast import CatchUp, How, State, Watcher
from tests.support.mortal import HOMES, KIND, Home, Ledger, Mortal, Outside
from tests.support.moving import JobRow, Rest, Snapshot, look
from tests.support.rig import ACTOR, Rig, add, enter
from tests.support.rooms import CHEAP

CHOSEN: Final[dict[str, Any]] = {
    "job_poll_s": 0.01,
    "delivery_poll_s": 0.01,
    "delivery_look_s": 0.02,
    "webhook_networks": " ".join(NETWORKS),
    "job_lease_s": forecast.LEASE_MS // 1000,
    "job_attempts": forecast.ATTEMPTS_MAX,
    "job_backoff_max_s": forecast.BACKOFF_MAX_MS // 1000,
    "jobs_at_once": 128,
    "jobs_per_store": 64,
    "delivery_retries_s": " ".join(str(ms // 1000) for ms in forecast.PAUSES_MS),
    "delivery_lease_s": forecast.TELL_LEASE_MS // 1000,
    "delivery_timeout_s": 300,
    "deliveries_at_once": 128,
    "deliveries_per_subscriber": 32,
    "schedule_catch_up_max": 1_000,
}
"""Room for everything at once, for what waits for room is no part of this."""
Make = Callable[[Rig, Outside, Ledger], Mortal]
"""Makes a process that has not begun."""
_BOUND_S: Final = 30.0
_LOOK_S: Final = 0.004
_PAGE: Final = 7


def make_template(folder: Path, far: Endpoint) -> Path:
    """A root with a member who has a webhook in either store."""
    empty = folder / "empty"
    empty.mkdir()
    start.prepare(Settings.model_validate({"root": empty}), kdf_params=CHEAP)
    rig = Rig(folder / "template", empty, **CHOSEN)

    async def main() -> None:
        async with rig.open() as room:
            await add(room)
            ana = await enter(room)
            await post_office.add_webhook(room, ana, far)
            await post_office.add_webhook(room, ana, far, "group")

    asyncio.run(main())
    return rig.settings.root


class World:
    """Everything; also somebody beside the processes, who has both stores and does no work."""

    def __init__(
        self, root: Path, template: Path, far: Endpoint, count: int, make: Make = Mortal
    ) -> None:
        self.rig = Rig(root, template, **CHOSEN)
        self.clock = self.rig.clock
        self.outside = Outside()
        self.workers: list[Mortal | None] = [None] * count
        self._make = make
        self._ledger = Ledger(self.outside)
        self._known: dict[Home, Known] = {"group": Known(subscribers=2), "own": Known(1)}
        self._died_with: set[Home] | None = None
        """What those had who died since everything was last at rest; None: nobody did."""
        self._stack = contextlib.AsyncExitStack()
        self._texts = 0
        far.answer = self._answer

    def _answer(self, received: Received) -> int:
        with self.outside.turned:
            while self.outside.modes["far"] == "hang":
                self.outside.turned.wait()
            is_well = self.outside.modes["far"] == "ok"
            self.outside.told[received.id] += is_well
        return 204 if is_well else 500

    # -- begin and end -------------------------------------------------------------------------

    async def begin(self, hows: tuple[How, How], catch_ups: tuple[CatchUp, CatchUp]) -> None:
        """Every process begins, with the member's store open and a schedule in each."""
        observer = await self._stack.enter_async_context(self.rig.open())
        user_id = (await enter(observer)).user_id
        self._stores: dict[Home, OwnerStore] = {
            "group": observer.stores.group,
            "own": observer.stores.unlocked()[user_id].store,
        }
        for home, how, catch_up in zip(HOMES, hows, catch_ups, strict=True):
            await self._add_schedule(home, how, catch_up)
            await self._read_feed(home)
            # Of what was before there were subscribers nobody is told.
            self._known[home].told_of.clear()
        for number in range(len(self.workers)):
            await self.start(number)
        await post_office.declared(self._stores["group"])

    async def _add_schedule(self, home: Home, how: How, catch_up: CatchUp) -> None:
        new = Definition(
            name="x",
            timing=Timing(None, PERIOD_MS // 1000),
            kind=KIND,
            is_outside=False,
            payload={"how": how},
            catch_up=catch_up,
        )

        def add(tx: OwnerTransactor) -> int:
            return schedules.add(tx, tx.new_id(), new).next_due_at or 0

        self._known[home].catch_up = catch_up
        self._known[home].next_due_at = await self._stores[home].write(add, ACTOR)

    def require_ended(self) -> None:
        """Nothing is left to do, and nobody who was owed something was left without."""
        for known in self._known.values():
            known.require_ended()

    async def end(self) -> None:
        """Everything ends, whatever became of it."""
        self.outside.open()
        for worker in self.workers:
            if worker is not None:
                await worker.end()
        await self._stack.aclose()

    # -- processes -----------------------------------------------------------------------------

    async def start(self, number: int) -> None:
        """Have a process run, with the member's store open."""
        if self.workers[number] is None:
            worker = self._make(self.rig, self.outside, self._ledger)
            self.workers[number] = worker
            await worker.begin()
            await worker.unlock()

    async def stop(self, number: int) -> None:
        """Have it end in order; what it has it gives back."""
        worker = self.workers[number]
        if worker is not None:
            for home in HOMES:
                self._known[home].give_back(worker.owners)
            self.workers[number] = None
            await worker.end()

    async def kill(self, number: int) -> None:
        """Have it die."""
        worker = self.workers[number]
        if worker is not None:
            worker.die()
            await self._bury()
            # Nothing was on its way, so nothing is uncertain.
            self._died_with = None

    async def lock(self, number: int) -> None:
        """Have the member's store locked there; what is claimed in it is given back."""
        worker = self.workers[number]
        if worker is not None:
            self._known["own"].give_back(worker.owners)
            await worker.lock()

    async def unlock(self, number: int) -> None:
        """Have the member open it there."""
        worker = self.workers[number]
        if worker is not None and not worker.has("own"):
            await worker.unlock()

    async def _bury(self) -> None:
        for number, worker in enumerate(self.workers):
            if worker is not None and worker.is_dead:
                had = {home for home in HOMES if worker.has(home)}
                self._died_with = had | (self._died_with or set())
                self.workers[number] = None
                await worker.end()

    def _living(self) -> list[Mortal]:
        return [each for each in self.workers if each is not None and not each.is_dead]

    def _holders(self, home: Home) -> list[Mortal]:
        return [worker for worker in self._living() if worker.has(home)]

    def _place(self, home: Home, number: int) -> OwnerStore:
        """A store as a process has it, or else as somebody beside it."""
        worker = self.workers[number]
        found = None if worker is None or worker.is_dead else worker.store(home)
        return self._stores[home] if found is None else found

    # -- what is done in it --------------------------------------------------------------------

    async def enqueue(self, home: Home, how: How, later_ms: int, number: int) -> None:
        """Have something to be done."""
        run_at = Millis(self.clock() + later_ms)
        name = await self._place(home, number).write(
            lambda tx: jobs.enqueue(tx, KIND, {"how": how}, run_at=run_at)[0], ACTOR
        )
        self._known[home].jobs[name] = JobRow(name, how, State("pending", 0, 0, run_at), None)

    async def write(self, home: Home, names: str, number: int, *, dies: bool = False) -> None:
        """Write notes at the same time while somebody reads the feed; the process may die amid it.

        What was acknowledged is an event; what was refused is none.
        """
        place, worker = self._place(home, number), self.workers[number]
        writes: list[asyncio.Task[bool]] = []
        for count, name in enumerate(names):
            if dies and worker is not None and count == len(names) // 2:
                await asyncio.sleep(0)
                worker.die()
            writes.append(asyncio.create_task(self._write(place, f"{name}.md")))
        await self._read_feed(home)
        self._known[home].written += sum(await asyncio.gather(*writes))

    async def _write(self, place: OwnerStore, path: str) -> bool:
        self._texts += 1
        text = str(self._texts)
        try:
            await place.write(
                lambda tx: owner_notes.put_note(tx, path, text, "test", Condition()), ACTOR
            )
        except StoreClosedError:
            return False
        return True

    async def _read_feed(self, home: Home) -> None:
        """Go on from where the reader was, page by page, to the end."""
        known = self._known[home]

        def read(reader: OwnerReader) -> Page:
            epoch = identity.get_identity(reader).epoch
            return events.read_page(reader, epoch, known.place, _PAGE, lambda _event: True)

        is_end = False
        while not is_end:
            page = await self._stores[home].read(read)
            known.read(page)
            is_end = page.is_end

    def move(self, ms: int) -> None:
        """Time passes, or is set back."""
        self.clock.advance(ms)
        self._ledger.note_leases(self._leases(), self.clock())

    def _leases(self) -> dict[str, int]:
        return self._known["group"].leases() | self._known["own"].leases()

    # -- rest, and what is found then ----------------------------------------------------------

    async def settle(self) -> None:
        """Let everything come to rest, ticks included, and hold it against the model."""
        await self._observe()
        await self._tick()
        await self._observe()

    async def _observe(self) -> None:
        for home in HOMES:
            found = await self._rest(home)
            known, facts = self._known[home], self._facts(home)
            known.compare_jobs(found, facts, self.outside)
            await self._read_feed(home)
            known.compare_deliveries(found, facts, self.outside)
        assert not self.outside.faults
        living = {worker.name for worker in self._living()}
        self._ledger.note_rest(self._leases(), self.clock(), living)
        self._died_with = None

    def _facts(self, home: Home) -> Facts:
        holders = self._holders(home)
        died_with = self._died_with or set()
        return Facts(
            now=self.clock(),
            owners=frozenset(name for worker in holders for name in worker.owners),
            is_worked=bool(holders) or home in died_with,
            is_cut=self._died_with is not None,
        )

    async def _rest(self, home: Home) -> Snapshot:
        """A store, once nothing in it moves."""
        async with asyncio.timeout(_BOUND_S):
            while True:
                found = await self._stores[home].watch(look)
                for worker in self._living():
                    await worker.refresh()
                has_buried = any(each is not None and each.is_dead for each in self.workers)
                await self._bury()
                holders = self._holders(home)
                is_at_rest = Rest(holders, self.outside, self.clock()).is_at_rest(found)
                if not has_buried and (not holders or is_at_rest):
                    return found
                await asyncio.sleep(_LOOK_S)

    async def _tick(self) -> None:
        """Have every process look for ticks at the same time, and hold what comes of it."""
        living = self._living()
        await asyncio.gather(*(worker.tick() for worker in living))
        watchers: dict[Home, list[Watcher]] = {home: [] for home in HOMES}
        for worker, home in itertools.product(living, HOMES):
            watcher = worker.watcher(home)
            if watcher is not None:
                watchers[home].append(watcher)
        is_cut = any(worker is not None and worker.is_dead for worker in self.workers)
        for home in HOMES:
            found = await self._stores[home].watch(look)
            self._known[home].compare_ticks(found, watchers[home], self.clock(), is_cut=is_cut)
