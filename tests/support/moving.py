"""What moves in a store beside requests, as one snapshot has it, and whether it is at rest."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from app.db.owner.store import OwnerReader
from app.db.sqlite import Row
from tests.support import forecast
from tests.support.forecast import How, Mode, State
from tests.support.mortal import JOB_EFFECT, KIND, PART, PART_EFFECT, Order, Outside

_JOBS: Final = (
    "SELECT id, kind, payload, status, attempts, generation, run_at, lease_until, lease_owner"
    " FROM sys_jobs ORDER BY id"
)
_DELIVERIES: Final = (
    "SELECT d.id, d.event_seq, d.subscription_id, d.entity, d.status, d.attempts,"
    " d.next_attempt_at, d.lease_until, d.lease_owner, d.is_waiting, s.kind"
    " FROM sys_deliveries AS d JOIN sys_subscriptions AS s ON s.id = d.subscription_id"
    " ORDER BY d.event_seq"
)
_BREAKERS: Final = "SELECT next_probe_at FROM sys_circuit_breakers WHERE opened_at IS NOT NULL"
_RUNS: Final = "SELECT due_at, reason, job_id FROM sys_schedule_runs ORDER BY due_at"


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job as it stands."""

    id: str
    how: How
    state: State
    owner: str | None
    """The name of who claimed it, while it is claimed."""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One delivery as it stands."""

    id: str
    seq: int
    subscription_id: str
    entity: str
    state: State
    owner: str | None
    """As a job's."""
    is_waiting: bool
    name: str
    """Who is told: `far` or the part."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One store as it stands."""

    jobs: dict[str, JobRow]
    deliveries: dict[tuple[int, str], DeliveryRow]
    """By the event's place and the subscriber, in the order of the places."""
    probes: list[int]
    """When each open breaker lets the next one through."""
    runs: list[tuple[int, str | None, str | None]]
    """What became of ticks: when due, why skipped, which job; oldest first."""
    effects: Counter[str]
    """By the id of what they are of."""


def look(reader: OwnerReader) -> Snapshot:
    """Everything that moves, in one snapshot."""
    rows = reader._connection.all
    found: dict[str, JobRow] = {}
    effects: Counter[str] = Counter()
    for row in rows(_JOBS):
        if row[1] == KIND:
            found[str(row[0])] = _job(row)
        elif row[1] in {JOB_EFFECT, PART_EFFECT}:
            effects[json.loads(str(row[2]))["of"]] += 1
    told = [_delivery(row) for row in rows(_DELIVERIES)]
    return Snapshot(
        found,
        {(each.seq, each.subscription_id): each for each in told},
        [row[0] for row in rows(_BREAKERS)],
        [(row[0], row[1], row[2]) for row in rows(_RUNS)],
        effects,
    )


def _job(row: Row) -> JobRow:
    name, _, payload, status, attempts, generation, run_at, lease, owner = row
    how = Order.model_validate_json(payload).how
    return JobRow(name, how, State(status, attempts, generation, run_at, lease or 0), owner)


def _delivery(row: Row) -> DeliveryRow:
    name, seq, subscription, entity, status, attempts, at, lease, owner, waits, kind = row
    state = State(status, attempts, 0, at, lease or 0)
    who = "far" if kind == "webhook" else PART
    return DeliveryRow(name, seq, subscription, entity, state, owner, bool(waits), who)


class Holder(Protocol):
    """A living process that has the store."""

    owners: set[str]
    """The names under which it claims."""
    parked: Counter[str]
    """Jobs that wait there for the gate."""
    trying: Counter[str]
    """Deliveries that are being told from there."""


class Rest:
    """Whether anything in a store would move though the clock stood still."""

    def __init__(self, holders: Iterable[Holder], outside: Outside, now: int) -> None:
        self._holders = list(holders)
        self._by_owner = {name: one for one in self._holders for name in one.owners}
        self._gate_is_open = outside.gate_is_open
        self._modes: Mapping[str, Mode] = outside.modes
        self._now = now

    def is_at_rest(self, found: Snapshot) -> bool:
        """Whether nothing would."""
        return (
            all(map(self._job_rests, found.jobs.values()))
            and self._parked_rest(found)
            and all(map(self._delivery_rests, found.deliveries.values()))
            and not self._probe_is_due(found)
        )

    def _job_rests(self, job: JobRow) -> bool:
        state = job.state
        if state.status != "running":
            return state.is_over or state.at > self._now
        holder = self._by_owner.get(job.owner or "")
        if holder is None:
            return state.lease_until > self._now
        is_renewed = state.lease_until == self._now + forecast.LEASE_MS
        return is_renewed and bool(holder.parked[job.id]) and not self._gate_is_open

    def _parked_rest(self, found: Snapshot) -> bool:
        """Whether nobody does what is another's by now."""
        return all(
            +Counter({name: n for name, n in one.parked.items() if name in found.jobs})
            == Counter(job.id for job in found.jobs.values() if job.owner in one.owners)
            for one in self._holders
        )

    def _delivery_rests(self, each: DeliveryRow) -> bool:
        state = each.state
        if state.is_over or state.status == "held" or each.is_waiting:
            return True
        if state.status != "running":
            return state.at > self._now
        holder = self._by_owner.get(each.owner or "")
        is_tried = holder is None or bool(holder.trying[each.id])
        hangs = holder is None or self._modes[each.name] == "hang"
        return state.lease_until > self._now and is_tried and hangs

    def _probe_is_due(self, found: Snapshot) -> bool:
        held = [
            each.state.at
            for each in found.deliveries.values()
            if each.state.status == "held" and not each.is_waiting
        ]
        return any(at <= self._now for at in found.probes) and any(at <= self._now for at in held)
