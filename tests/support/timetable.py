"""Schedules in one store, settled by hand at a time that the test moves."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from app.clock import Millis
from app.runtime import jobs, schedules
from app.runtime.jobs import Json
from app.runtime.schedules import CatchUp, Definition, Schedule, Watch
from app.runtime.timing import Timing
from tests.support.stores import MovedClock, OwnerFile

MINUTE: Final = 60_000
DAY: Final = 86_400_000
LATE: Final = 60_000
TERMS: Final = jobs.Terms(lease_ms=300_000, attempts_max=3, backoff_max_ms=1_000)
_CATCH_UP_MAX: Final = 100


class Told(NamedTuple):
    """One row of what became of ticks."""

    due_at: int
    ticks: int
    last_due_at: int
    reason: str | None
    """None for a run."""


class Timetable:
    """A store with schedules; `start` is a whole minute."""

    def __init__(self, store: OwnerFile) -> None:
        self.store = store
        self.start = store.clock.now_ms = 1_704_067_200_000  # 2024-01-01, a Monday
        self.since = self.start
        """From when on somebody looks."""
        self.locked_since: int | None = None

    @property
    def clock(self) -> MovedClock:
        """The store's."""
        return self.store.clock

    @property
    def watch(self) -> Watch:
        """What ticks are held against now."""
        now = self.clock.now_ms
        late_before = max(min(self.since, now - 2_000), now - LATE)
        locked = None if self.locked_since is None else Millis(self.locked_since)
        return Watch(Millis(late_before), locked, _CATCH_UP_MAX)

    def add(
        self,
        timing: Timing,
        catch_up: CatchUp = "once",
        *,
        single_run: bool = False,
        enabled: bool = True,
    ) -> str:
        """Make a schedule; its id."""
        new = Definition(
            name="x",
            timing=timing,
            kind="work",
            is_outside=True,
            payload={"prompt": "p"},
            catch_up=catch_up,
            enabled=enabled,
            single_run=single_run,
        )
        with self.store.write() as tx:
            return schedules.add(tx, tx.new_id(), new).id

    def row(self, schedule_id: str) -> Schedule:
        """It, as it stands."""
        return schedules.get(self.store.reader, schedule_id)

    def settle(self, schedule_id: str) -> int:
        """Settle all that is due; in how many transactions."""
        count, is_more = 0, True
        while is_more:
            with self.store.write() as tx:
                is_more = schedules.settle(tx, schedule_id, self.watch)
            count += 1
        return count

    def away(self, ms: int) -> None:
        """Be down for so long, and look again from then on."""
        self.clock.advance(ms)
        self.since = self.clock.now_ms

    def told(self, schedule_id: str) -> list[Told]:
        """Every row of its ticks, oldest first."""
        rows = self.store.rows(
            "SELECT due_at, ticks, last_due_at, reason FROM sys_schedule_runs"  # noqa: S608 - an id
            f" WHERE schedule_id = '{schedule_id}' AND by_hand = 0 ORDER BY due_at"
        )
        return [Told(*row) for row in rows]

    def reasons(self, schedule_id: str) -> list[str | None]:
        """Those of its rows, oldest first; None for a run."""
        return [row.reason for row in self.told(schedule_id)]

    def jobs(self) -> list[tuple[str, dict[str, str]]]:
        """Every job's status and payload, oldest first."""
        rows = self.store.rows("SELECT status, payload FROM sys_jobs ORDER BY id")
        return [(str(status), json.loads(str(payload))) for status, payload in rows]

    def finish(self, result: Json = None) -> int:
        """Do every job that waits; how many there were."""
        count = 0
        with self.store.write() as tx:
            while claim := jobs.claim_outside(tx, ["work"], "w", TERMS):
                jobs.finish(tx, claim.id, claim.generation, result)
                count += 1
        return count


@contextmanager
def timetable(folder: Path) -> Iterator[Timetable]:
    """A store of one's own, closed at the end of the block."""
    store = OwnerFile(folder / "s.db", clock=MovedClock())
    try:
        yield Timetable(store)
    finally:
        store.close()
