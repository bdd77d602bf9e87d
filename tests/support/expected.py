"""One store as the model has it, and how it is held against what is found."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Final

from app.runtime.events import Cursor, Page
from tests.support import forecast
from tests.support.forecast import (
    CatchUp,
    DeliveryPath,
    JobPath,
    Key,
    Scene,
    State,
    Tick,
    Watcher,
)
from tests.support.mortal import PART, Outside
from tests.support.moving import DeliveryRow, JobRow, Snapshot

PERIOD_MS: Final = 600_000
"""Of the one schedule."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was so while everything came to rest."""

    now: int
    owners: frozenset[str]
    """The names under which those claim who live and have the store."""
    is_worked: bool
    """Whether anybody had it."""
    is_cut: bool
    """Whether somebody died meanwhile."""

    def scenes(self, owner: str | None) -> list[Scene]:
        """What holds of something; who died meanwhile may have done its part before."""
        scene = Scene(self.now, self.is_worked, owner in self.owners, self.is_cut)
        return [scene, replace(scene, is_held=True)] if self.is_cut else [scene]


@dataclass
class Known:
    """One store as the model has it."""

    subscribers: int
    catch_up: CatchUp = "once"
    next_due_at: int = 0
    jobs: dict[str, JobRow] = field(default_factory=dict)
    deliveries: dict[tuple[int, str], DeliveryRow] = field(default_factory=dict)
    is_blocked: bool = False
    """Whether a breaker was open."""
    written: int = 0
    """Notes that were acknowledged, each of which is an event."""
    place: Cursor | None = None
    """Where the reader of the feed is."""
    told_of: list[int] = field(default_factory=list)
    """Places of events of notes, as the reader came by them."""
    runs: list[tuple[int, str | None, str | None]] = field(default_factory=list)
    scheduled: set[str] = field(default_factory=set)
    """Jobs of the schedule."""

    def leases(self) -> dict[str, int]:
        """Until when each job and delivery is somebody's, by its id."""
        rows: list[JobRow | DeliveryRow] = [*self.jobs.values(), *self.deliveries.values()]
        return {row.id: row.state.lease_until for row in rows}

    def give_back(self, owners: set[str]) -> None:
        """What somebody had is nobody's: the store is locked there, or the process ends."""
        for name, job in self.jobs.items():
            if job.owner in owners:
                self.jobs[name] = replace(job, state=job.state.given_back("pending"), owner=None)
        for key, each in self.deliveries.items():
            if each.owner in owners:
                state = each.state.given_back("retry")
                self.deliveries[key] = replace(each, state=state, owner=None)

    def read(self, page: Page) -> None:
        """Every place comes, and once."""
        at = self.place.seq if self.place else 0
        seqs = [event.seq for event in page.items]
        assert seqs == list(range(at + 1, at + 1 + len(seqs))), (at, seqs)
        assert page.next.seq == at + len(seqs)
        self.told_of += [event.seq for event in page.items if event.entity_type == "memory_doc"]
        self.place = page.next

    def compare_jobs(self, found: Snapshot, facts: Facts, outside: Outside) -> None:
        """None is lost, each is where it may be, and has an effect if it is done."""
        assert found.jobs.keys() == self.jobs.keys()
        for name, job in found.jobs.items():
            before = self.jobs[name]
            ends: set[Key] = set()
            for scene in facts.scenes(before.owner):
                ends |= JobPath(job.how, scene, outside.gate_is_open).ends(before.state)
            assert job.state.key in ends, (before, job, ends)
            assert found.effects[name] == (job.state.status == "done"), job
            assert outside.begun[name] <= job.state.claims, job
        self.jobs = found.jobs

    def compare_deliveries(self, found: Snapshot, facts: Facts, outside: Outside) -> None:
        """Each event is owed to each subscriber, and each delivery is where it may be."""
        assert len(self.told_of) == self.written, (self.told_of, self.written)
        subscribers = {each.subscription_id for each in found.deliveries.values()}
        assert not self.told_of or len(subscribers) == self.subscribers
        owed = {(seq, one) for seq in self.told_of for one in subscribers}
        assert found.deliveries.keys() == owed
        is_blocked = self.is_blocked or bool(found.probes)
        lines: defaultdict[tuple[str, str], bool] = defaultdict(lambda: True)
        for each in found.deliveries.values():
            line = (each.subscription_id, each.entity)
            may_be_held = is_blocked and each.name != PART
            self._compare(each, facts, outside, is_first=lines[line], may_be_held=may_be_held)
            lines[line] &= each.state.is_over
            is_told = each.state.status == "succeeded"
            if each.name == PART:
                assert is_told <= found.effects[each.id] <= 1, each
            else:
                assert is_told <= outside.told[each.id], each
        self.deliveries, self.is_blocked = found.deliveries, bool(found.probes)

    def _compare(
        self,
        each: DeliveryRow,
        facts: Facts,
        outside: Outside,
        *,
        is_first: bool,
        may_be_held: bool,
    ) -> None:
        before = self.deliveries.get((each.seq, each.subscription_id))
        # What is new is due since its event, which is of this very time.
        start = State("pending", 0, 0, facts.now) if before is None else before.state
        ends: set[Key] = set()
        for scene in facts.scenes(None if before is None else before.owner):
            path = DeliveryPath(outside.modes[each.name], scene, is_first, may_be_held)
            ends |= path.ends(start)
        assert each.state.key in ends, (before, each, ends)
        assert before is None or before.id == each.id

    def compare_ticks(
        self, found: Snapshot, watchers: list[Watcher], now: int, *, is_cut: bool
    ) -> None:
        """Each due time is in one row more, as one of those who looked has it.

        Args:
            found: After they looked, all at the same time.
            watchers: Of each who has the store.
            now: Unix milliseconds.
            is_cut: Whether somebody died meanwhile: then it may be nobody's yet.
        """
        due = range(self.next_due_at, now + 1, PERIOD_MS)
        is_busy = any(not self.jobs[name].state.is_over for name in self.scheduled)
        ways = [forecast.ticks(due, self.catch_up, one, now, is_busy=is_busy) for one in watchers]
        if is_cut or not ways:
            ways.append([])
        old, new = found.runs[: len(self.runs)], found.runs[len(self.runs) :]
        assert old == self.runs
        assert [Tick(due_at, reason) for due_at, reason, _ in new] in ways, (new, ways)
        self.runs = found.runs
        if new:
            self.next_due_at = due[-1] + PERIOD_MS
        for _, reason, name in new:
            assert (reason is None) == (name is not None)
            if name is not None:
                how = found.jobs[name].how
                self.jobs[name] = JobRow(name, how, State("pending", 0, 0, now), None)
                self.scheduled.add(name)

    def require_ended(self) -> None:
        """Nothing is left to do, and nobody who was owed something was left without."""
        left = [job for job in self.jobs.values() if not job.state.is_over]
        # What the schedule brought just now may wait for its next try.
        assert all(job.id in self.scheduled for job in left), left
        assert all(each.state.is_over for each in self.deliveries.values())
        assert self.next_due_at > 0
