"""A schedule against a small model: clocks that jump, crashes, saves, pauses, in two processes."""

import tempfile
from pathlib import Path
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from typing_extensions import override

from app.runtime import schedules
from app.runtime.schedules import CatchUp, Definition, Watch
from app.runtime.timing import Timing
from tests.support.matrix import chosen
from tests.support.timetable import DAY, MINUTE, Timetable, timetable

PERIOD: Final = 10 * MINUTE
_CATCH_UPS: Final[list[CatchUp]] = ["skip", "once", "all"]


class CrashError(Exception):
    """The process ends amid a transaction."""


class ScheduleMachine(RuleBasedStateMachine):
    """One schedule of every ten minutes, by cron or by an interval.

    The model is a set of due times: every tenth minute from the start to the latest time at
    which somebody looked. Each is in exactly one row, whatever happens.
    """

    def __init__(self) -> None:
        super().__init__()
        folder = self._folder = tempfile.TemporaryDirectory()
        self._open = timetable(Path(folder.name))
        self.table: Timetable = self._open.__enter__()
        self.seen_through = self.table.start
        """The latest time at which the schedule was settled."""
        self.since = [self.table.start, self.table.start]
        """From when on each of two processes looks."""
        self.is_enabled = True

    @override
    def teardown(self) -> None:
        """Let the store go."""
        self._open.__exit__(None, None, None)
        self._folder.cleanup()

    @initialize(is_cron=st.booleans(), catch_up=st.sampled_from(_CATCH_UPS))
    def begin(self, is_cron: bool, catch_up: CatchUp) -> None:  # noqa: FBT001 - drawn
        """Make the schedule."""
        timing = Timing("*/10 * * * *", None) if is_cron else Timing(None, PERIOD // 1000)
        self.schedule_id = self.table.add(timing, catch_up)

    def _watch(self, process: int) -> Watch:
        self.table.since = self.since[process]
        return self.table.watch

    @rule(ms=st.one_of(st.integers(0, 3 * PERIOD), st.integers(0, 20 * DAY)))
    def pass_time(self, ms: int) -> None:
        """Time goes on."""
        self.table.clock.advance(ms)

    @rule(ms=st.integers(1, 2 * DAY))
    def set_back(self, ms: int) -> None:
        """Somebody sets the clock back, never before the schedule's making."""
        clock = self.table.clock
        clock.now_ms = max(clock.now_ms - ms, self.table.start)

    @rule(process=st.integers(0, 1))
    def settle(self, process: int) -> None:
        """A process looks, and settles what is due to its end."""
        is_more = True
        while is_more:
            with self.table.store.write() as tx:
                is_more = schedules.settle(tx, self.schedule_id, self._watch(process))
        self.seen_through = max(self.seen_through, self.table.clock.now_ms)

    @rule(process=st.integers(0, 1))
    def crash(self, process: int) -> None:
        """A process ends amid settling; it begins to look again from now on."""

        def die() -> None:
            with self.table.store.write() as tx:
                schedules.settle(tx, self.schedule_id, self._watch(process))
                raise CrashError

        try:
            die()
        except CrashError:
            self.since[process] = self.table.clock.now_ms

    @rule(is_enabled=st.booleans(), name=st.sampled_from("ab"))
    def save(self, is_enabled: bool, name: str) -> None:  # noqa: FBT001 - drawn
        """Somebody saves it again, what is due being settled before."""
        self.settle(0)
        row = self.table.row(self.schedule_id)
        new = Definition(
            name=name,
            timing=schedules.timing_of(row),
            kind=row.kind,
            is_outside=True,
            payload={},
            catch_up=next(each for each in _CATCH_UPS if each == row.catch_up),
            enabled=is_enabled,
        )
        with self.table.store.write() as tx:
            schedules.change(tx, row, new)
        self.is_enabled = is_enabled

    @rule()
    def finish(self) -> None:
        """A program outside does what waits."""
        self.table.finish()

    @precondition(lambda self: not schedules._is_busy(self.table.store.reader, self.schedule_id))
    @rule()
    def run_by_hand(self) -> None:
        """Somebody runs it beside its ticks."""
        with self.table.store.write() as tx:
            schedules.run_now(tx, self.schedule_id)

    @invariant()
    def each_due_tick_is_in_one_row(self) -> None:
        """No hole, no overlap, none of the future."""
        if not hasattr(self, "schedule_id"):
            return
        at = self.table.start
        for row in self.table.told(self.schedule_id):
            assert row.due_at == at + PERIOD
            assert row.last_due_at == row.due_at + (row.ticks - 1) * PERIOD
            assert row.ticks == 1 or row.reason is not None
            at = row.last_due_at
        assert at == self.table.start + (self.seen_through - self.table.start) // PERIOD * PERIOD
        assert self.table.row(self.schedule_id).next_due_at == at + PERIOD

    @invariant()
    def each_run_has_its_job(self) -> None:
        """And no job comes from anywhere else."""
        if not hasattr(self, "schedule_id"):
            return
        of_runs = self.table.store.rows(
            "SELECT job_id FROM sys_schedule_runs WHERE outcome = 'run' ORDER BY job_id"
        )
        jobs = self.table.store.rows("SELECT id FROM sys_jobs ORDER BY id")
        assert of_runs == jobs


TestSchedule = ScheduleMachine.TestCase
TestSchedule.settings = settings(
    max_examples=chosen([6], [300])[0], stateful_step_count=chosen([15], [40])[0]
)
