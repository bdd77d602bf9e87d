"""Schedules of a member, in their own store, and of the whole group, in the group's."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

from app.bridge.access import quota_of, with_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.errors.inputs import PayloadTooLargeError
from app.owner import scheduled_jobs
from app.owner.scheduled_jobs import JobRun, ScheduledJob, Task
from app.runtime import operator_actions, schedules
from app.runtime.jobs import Json
from app.runtime.schedules import CatchUp, Definition, Run, Schedule, Watch
from app.runtime.timing import Timing
from app.runtime.versions import Match, require_version

T = TypeVar("T")
Home = Literal["own", "group"]
KIND: Final = "scheduled"
"""Of a schedule's jobs, unless its maker names another."""
HANDOVER_MS: Final = 2_000
"""So long a tick may be another process's, before it counts as missed."""
_TIMING: Final = frozenset({"cron", "interval_s", "timezone"})
_TOLD: Final = ("prompt", "agent_id", "session_id")
"""What of the task each of its jobs carries."""


class Planned(NamedTuple):
    """A schedule, and what it is for."""

    schedule: Schedule
    job: ScheduledJob


class Past(NamedTuple):
    """What became of a tick, and how its run ended; None when that did not begin."""

    run: Run
    ending: JobRun | None


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A schedule as its maker says it."""

    task: Task
    timing: Timing
    kind: str = KIND
    catch_up: CatchUp = "once"
    enabled: bool = True
    single_run: bool = False

    @property
    def definition(self) -> Definition:
        """As the store keeps it."""
        told: Json = {
            name: value for name in _TOLD if (value := getattr(self.task, name)) is not None
        }
        return Definition(
            name=self.task.title,
            timing=self.timing,
            kind=self.kind,
            is_outside=True,
            payload=told,
            catch_up=self.catch_up,
            enabled=self.enabled,
            single_run=self.single_run,
        )

    @property
    def size_bytes(self) -> int:
        """About what it adds to a store, UTF-8."""
        return len(json.dumps(asdict(self.task)).encode())

    def changed(self, changes: Mapping[str, Any]) -> "NewSchedule":
        """The same with some fields said anew; a cron takes an interval's place, or the reverse."""
        timing = {name: changes[name] for name in _TIMING & changes.keys()}
        for name, other in (("cron", "interval_s"), ("interval_s", "cron")):
            if timing.get(name) is not None and other not in timing:
                timing[other] = None
        own = {"kind", "catch_up", "enabled", "single_run"} & changes.keys()
        task = changes.keys() - own - _TIMING
        return replace(
            self,
            task=replace(self.task, **{name: changes[name] for name in task}),
            timing=replace(self.timing, **timing),
            **{name: changes[name] for name in own},
        )


def watch_of(room: Strongroom, since: Millis, store_is_locked_at_times: bool) -> Watch:  # noqa: FBT001 - a fact
    """What a tick that is due is held against.

    Args:
        room: The service.
        since: From when on this process looks at the store.
        store_is_locked_at_times: Whether it is a member's.

    Returns:
        What was due before this process looked was missed, unless another may be at it just
        now; and so was what nobody settled for long, for the box may have slept.
    """
    now, settings = room.clock(), room.settings
    return Watch(
        late_before=Millis(
            max(min(since, now - HANDOVER_MS), now - settings.schedule_late_s * 1000)
        ),
        locked_since=room.stores.began_at if store_is_locked_at_times else None,
        catch_up_max=settings.schedule_catch_up_max,
    )


async def _within(
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    work: Callable[[OwnerStore], Awaitable[T]],
) -> T:
    if home == "group":
        return await work(room.stores.group)
    return await with_own(room, caller, call, work)


async def read(
    room: Strongroom, caller: Caller, call: Call, home: Home, work: Callable[[OwnerReader], T]
) -> T:
    """Read in one home."""
    return await _within(room, caller, call, home, lambda store: store.read(work))


async def _write(  # noqa: PLR0913, PLR0917 - who, where, what, and how much it adds
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    work: Callable[[OwnerTransactor], T],
    measure: Callable[[OwnerReader], int] = lambda _reader: 0,
) -> T:
    actor, quota = caller.actor(call), quota_of(room, caller, is_group=home == "group")

    def held(tx: OwnerTransactor) -> T:
        # What adds nothing, as when one is turned off, a full store must take.
        return quota.hold(tx, work, measure(tx) or None)

    return await _within(
        room, caller, call, home, lambda store: store.write(held, actor, once=call.once)
    )


def get(reader: OwnerReader, schedule_id: str) -> Planned:
    """One schedule.

    Returns:
        It, and what it is for.

    Raises:
        NotFoundError: There is none of this id.
    """
    row = schedules.get(reader, schedule_id)
    return Planned(row, scheduled_jobs.get(reader, row.id))


def list_page(reader: OwnerReader, after: str, limit: int) -> list[Planned]:
    """Schedules after this id, in the order of their making; empty for the first."""
    rows = schedules.list_page(reader, after, limit)
    return [Planned(row, scheduled_jobs.get(reader, row.id)) for row in rows]


def list_past(
    reader: OwnerReader, schedule_id: str, before: tuple[int, int] | None, limit: int
) -> list[Past]:
    """What became of a schedule's ticks, newest first; see `schedules.list_runs`.

    Returns:
        The rows.

    Raises:
        NotFoundError: There is no schedule of this id.
    """
    schedules.get(reader, schedule_id)
    return [
        Past(run, None if run.job_id is None else scheduled_jobs.find_run(reader, run.job_id))
        for run in schedules.list_runs(reader, schedule_id, before, limit)
    ]


def _require_size(room: Strongroom, new: NewSchedule) -> None:
    if new.size_bytes > room.settings.job_bytes_max:
        raise PayloadTooLargeError


async def add(
    room: Strongroom, caller: Caller, call: Call, home: Home, new: NewSchedule
) -> Planned:
    """Make a schedule.

    Returns:
        It.

    Raises:
        InvalidScheduleError: Its timing is none, or is never due.
        InvalidInputError: Its kind is one of the program's own, or a text cannot be stored.
        PayloadTooLargeError: What it is for is.
        QuotaExceededError: The home has no room for it.
    """
    _require_size(room, new)

    def write(tx: OwnerTransactor) -> Planned:
        schedule_id = tx.new_id()
        row = schedules.add(tx, schedule_id, new.definition)
        made = Planned(row, scheduled_jobs.add(tx, schedule_id, new.task))
        _record(tx, "schedule.add", row, home, caller.user_id)
        return made

    return await _write(room, caller, call, home, write, lambda _tx: new.size_bytes)


async def change(  # noqa: PLR0913, PLR0917 - who, where, which, what, if
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    schedule_id: str,
    changes: Mapping[str, Any],
    match: Match,
) -> Planned:
    """Say some of a schedule's fields anew; what says nothing new changes nothing.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: There is none of this id.
        VersionConflictError: It stands at another version than was asked for.
        InvalidScheduleError: Its timing is none, or is never due.
        InvalidInputError: As `add` says.
        PayloadTooLargeError: What it is for is.
        QuotaExceededError: The home has no room for what it adds.
    """

    def growth(reader: OwnerReader) -> int:
        before = _as_new(get(reader, schedule_id))
        return max(before.changed(changes).size_bytes - before.size_bytes, 0)

    def write(tx: OwnerTransactor) -> Planned:
        _settle_all(tx, room, home, schedule_id)
        present = get(tx, schedule_id)
        require_version(present.schedule.version, match)
        before = _as_new(present)
        new = before.changed(changes)
        if new == before:
            return present
        _require_size(room, new)
        _record(tx, "schedule.change", present.schedule, home, caller.user_id)
        row = schedules.change(tx, present.schedule, new.definition)
        return Planned(row, scheduled_jobs.change(tx, schedule_id, new.task))

    call = call.judged(lambda reader: get(reader, schedule_id))
    return await _write(room, caller, call, home, write, growth)


async def remove(  # noqa: PLR0913, PLR0917 - who, where, which, if
    room: Strongroom, caller: Caller, call: Call, home: Home, schedule_id: str, match: Match
) -> None:
    """Take a schedule away, with those of its jobs that nobody runs yet.

    Raises:
        NotFoundError: There is none of this id.
        VersionConflictError: It stands at another version than was asked for.
    """

    def write(tx: OwnerTransactor) -> None:
        row = schedules.get(tx, schedule_id)
        require_version(row.version, match)
        _record(tx, "schedule.remove", row, home, caller.user_id)
        schedules.remove(tx, schedule_id)
        scheduled_jobs.remove(tx, schedule_id)

    await _write(room, caller, call, home, write)


async def run_now(  # noqa: PLR0913, PLR0917 - who, where, which, if
    room: Strongroom, caller: Caller, call: Call, home: Home, schedule_id: str, match: Match
) -> str:
    """Run a schedule by hand; its ticks stay as they are.

    Returns:
        The job's id.

    Raises:
        NotFoundError: There is none of this id.
        AlreadyRunningError: Its last job is not over.
        VersionConflictError: It stands at another version than was asked for.
        QuotaExceededError: The home has no room for the job.
    """

    def carried(reader: OwnerReader) -> int:
        return len(schedules.get(reader, schedule_id).payload.encode())

    def write(tx: OwnerTransactor) -> str:
        row = schedules.get(tx, schedule_id)
        require_version(row.version, match)
        _record(tx, "schedule.run", row, home, caller.user_id)
        return schedules.run_now(tx, schedule_id)

    call = call.judged(lambda reader: schedules.get(reader, schedule_id))
    return await _write(room, caller, call, home, write, carried)


# -- whoever is at the box ---------------------------------------------------------------------


def run_by_operator(tx: OwnerTransactor, schedule_id: str) -> str:
    """Run one of the group's by hand; the job's id."""
    row = schedules.get(tx, schedule_id)
    _record(tx, "schedule.run", row, "group", operator_actions.BOX)
    return schedules.run_now(tx, schedule_id)


def enable(tx: OwnerTransactor, room: Strongroom, schedule_id: str, *, is_on: bool) -> Planned:
    """Enable or disable one of the group's; what was due before is settled as it was."""
    _settle_all(tx, room, "group", schedule_id)
    present = get(tx, schedule_id)
    if bool(present.schedule.enabled) == is_on:
        return present
    action = "schedule.enable" if is_on else "schedule.disable"
    _record(tx, action, present.schedule, "group", operator_actions.BOX)
    new = _as_new(present).changed({"enabled": is_on})
    return Planned(schedules.change(tx, present.schedule, new.definition), present.job)


def _settle_all(tx: OwnerTransactor, room: Strongroom, home: Home, schedule_id: str) -> None:
    while schedules.settle(tx, schedule_id, watch_of(room, Millis(0), home == "own")):
        pass


def _as_new(present: Planned) -> NewSchedule:
    row = present.schedule
    return NewSchedule(
        task=scheduled_jobs.task_of(present.job),
        timing=schedules.timing_of(row),
        kind=row.kind,
        catch_up=cast("CatchUp", row.catch_up),
        enabled=bool(row.enabled),
        single_run=bool(row.single_run),
    )


def _record(tx: OwnerTransactor, action: str, row: Schedule, home: Home, operator: str) -> None:
    """Put an act on the group's schedules on record; what members do with their own is theirs."""
    if home == "group":
        state: dict[str, str | int | None] = {
            "enabled": row.enabled,
            "next_due_at": row.next_due_at,
            "last_due_at": row.last_due_at,
            "version": row.version,
        }
        operator_actions.record(tx, action, row.id, state, operator)
