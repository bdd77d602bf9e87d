"""Random histories of everything that runs beside requests, each held against the model.

What is drawn depends on nothing that the processes did, for they run at their own pace.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from typing_extensions import override

from tests.support.endpoint import Endpoint
from tests.support.expected import PERIOD_MS
from tests.support.forecast import TELL_LEASE_MS, CatchUp, How, Mode
from tests.support.mortal import HOMES, PART, POINTS, Home, Mortal
from tests.support.whole import Make, World

_SECOND: Final = 1_000
_FORWARD: Final = (1, 30, 130, 310, 610, 3_600)
_BACK: Final = (1, 90, 1_000)
_HOWS: Final[tuple[How, ...]] = ("wait", "well", "broken", "permanent", "wait")
_MODES: Final[tuple[Mode, ...]] = ("ok", "fail", "hang")
_CATCH_UPS: Final[tuple[CatchUp, ...]] = ("skip", "once", "all")
_DRAINS: Final = 6

homes = st.sampled_from(HOMES)
numbers = st.integers(0, 1)


class WholeMachine(RuleBasedStateMachine):
    """Jobs, deliveries, schedules, a feed, processes that come and die, and a clock."""

    template: ClassVar[Path]
    far: ClassVar[Endpoint]
    processes: ClassVar[int]
    make: ClassVar[Make] = Mortal
    points: ClassVar[tuple[str, ...]] = POINTS

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.is_sound = False
        """Whether everything was as it should be until now."""
        self.latest = 0
        """Unix milliseconds; the latest time that was."""
        self.loop = asyncio.new_event_loop()
        root, make = self.folder / "root", type(self).make
        self.world = World(root, self.template, self.far, self.processes, make)

    def _await(self, *works: Coroutine[Any, Any, None]) -> None:
        """Do these, and let everything come to rest."""

        async def main() -> None:
            for work in works:
                await work
            await self.world.settle()

        self.is_sound = False
        self.loop.run_until_complete(main())
        self.is_sound = True

    @initialize(
        hows=st.tuples(st.sampled_from(["well", "wait"]), st.sampled_from(["well", "broken"])),
        catch_ups=st.tuples(st.sampled_from(_CATCH_UPS), st.sampled_from(_CATCH_UPS)),
        gate_is_open=st.booleans(),
    )
    def begin(
        self,
        hows: tuple[How, How],
        catch_ups: tuple[CatchUp, CatchUp],
        gate_is_open: bool,  # noqa: FBT001 - drawn
    ) -> None:
        """A schedule in each store, and every process runs."""
        self.world.outside.gate_is_open = gate_is_open
        self._await(self.world.begin(hows, catch_ups))

    def _number(self, number: int) -> int:
        return number % self.processes

    @rule(
        home=homes,
        hows=st.lists(st.sampled_from(_HOWS), min_size=1, max_size=3),
        later_s=st.sampled_from([0, 0, 0, 20]),
        number=numbers,
    )
    def enqueue(self, home: Home, hows: list[How], later_s: int, number: int) -> None:
        """Something is to be done."""
        world, ms = self.world, later_s * _SECOND
        self._await(*(world.enqueue(home, how, ms, self._number(number)) for how in hows))

    @rule(home=homes, names=st.text("abc", min_size=1, max_size=5), number=numbers)
    def write(self, home: Home, names: str, number: int) -> None:
        """Notes are written, which are events of which others are told."""
        self._await(self.world.write(home, names, self._number(number)))

    @rule(home=homes, names=st.text("abc", min_size=2, max_size=6), number=numbers)
    def die_amid_writes(self, home: Home, names: str, number: int) -> None:
        """Some are on the disk, some are not; who asked knows which."""
        self._await(self.world.write(home, names, self._number(number), dies=True))

    @rule(seconds=st.sampled_from(_FORWARD))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self._move(seconds * _SECOND)

    @rule(seconds=st.sampled_from(_BACK))
    def set_back(self, seconds: int) -> None:
        """Somebody sets the clock back."""
        self._move(-seconds * _SECOND)

    def _move(self, ms: int) -> None:
        if ms >= TELL_LEASE_MS:
            # Else each lease that is over would add one more try that hangs.
            self.world.outside.turn("far", "ok")
            self.world.outside.turn(PART, "ok")
        self.latest = max(self.latest, self.world.clock())
        self.world.move(ms)
        self._await()

    @rule(name=st.sampled_from(["far", PART]), mode=st.sampled_from(_MODES))
    def turn(self, name: str, mode: Mode) -> None:
        """Who is told of events is well, fails, or does not answer."""
        self.world.outside.turn(name, mode)
        self._await()

    @rule(is_open=st.booleans())
    def turn_gate(self, is_open: bool) -> None:  # noqa: FBT001 - drawn
        """Jobs that wait go on, or wait."""
        self.world.outside.gate_is_open = is_open
        self._await()

    @rule(number=numbers, point=st.integers(0, 8), home=homes, again=st.booleans())
    def die_at(self, number: int, point: int, home: Home, again: bool) -> None:  # noqa: FBT001 - drawn
        """A process is to die where it next comes by, and there is something to come by for."""
        number, world = self._number(number), self.world
        worker = world.workers[number]
        if worker is not None:
            worker.fuse = self.points[point % len(self.points)]
        self._await(world.enqueue(home, "well", 0, number), world.write(home, "ab", number))
        if again:
            self._await(world.start(number))

    @rule(number=numbers, in_order=st.booleans(), again=st.booleans())
    def stop(self, number: int, in_order: bool, again: bool) -> None:  # noqa: FBT001 - drawn
        """A process ends, or is killed; another may come in its place."""
        number = self._number(number)
        self._await(self.world.stop(number) if in_order else self.world.kill(number))
        if again:
            self._await(self.world.start(number))

    @rule(number=numbers)
    def start(self, number: int) -> None:
        """A process begins, unless it runs."""
        self._await(self.world.start(self._number(number)))

    @rule(number=numbers, again=st.booleans())
    def lock(self, number: int, again: bool) -> None:  # noqa: FBT001 - drawn
        """The member's store is locked there; nothing of theirs moves until it is opened."""
        number = self._number(number)
        self._await(self.world.lock(number))
        if again:
            self._await(self.world.unlock(number))

    @rule(number=numbers)
    def unlock(self, number: int) -> None:
        """The member comes back."""
        self._await(self.world.unlock(self._number(number)))

    @override
    def teardown(self) -> None:
        """Every door opens and time passes: nothing was lost, and everything ends."""
        try:
            if self.is_sound:
                self._drain()
        finally:
            self.loop.run_until_complete(self.world.end())
            self.loop.close()
            shutil.rmtree(self.folder)

    def _drain(self) -> None:
        world = self.world
        world.outside.open()
        for number, worker in enumerate(world.workers):
            if worker is not None:
                worker.fuse = None
            self._await(world.start(number), world.unlock(number))
        self._move(max(self.latest - world.clock(), 0) + PERIOD_MS)
        for _ in range(_DRAINS):
            self._move(PERIOD_MS + 7 * _SECOND)
        world.require_ended()
