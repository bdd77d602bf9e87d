"""Schedules: each due tick ends as exactly one run or one skip, in one commit with its job.

What is settled is told by `next_due_at` alone, which only ever moves on: so a clock that is
set back fires nothing twice, and of two processes that see a tick due one finds it settled.

A tick is missed when nobody looked while it was due: the program was down, or the store
locked. What becomes of missed ticks is the schedule's choice:

- `skip`: nothing; each is a skip.
- `once`: however many there were, one run for all of them: the last.
- `all`: each runs, up to a number; what is older is skipped. They wait in the queue, so one
  that is not over stands in the way of none of the others.

Any other tick runs unless the job of the one before is not over (`overlap`), or the
schedule is disabled.
"""

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, cast

from app.clock import Millis, rfc3339
from app.db.runtime import statements as sql
from app.db.runtime.rows import ScheduleRow, ScheduleRunRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import AlreadyRunningError, VersionConflictError
from app.errors.inputs import InvalidInputError
from app.ids import is_uuid
from app.runtime import jobs
from app.runtime.jobs import Json
from app.runtime.timing import Timing, next_after, require_timing, times_after

CatchUp = Literal["skip", "once", "all"]
Reason = Literal["overlap", "down", "disabled", "locked"]
Schedule = ScheduleRow
"""One schedule: its definition, and where it stands."""
Run = ScheduleRunRow
"""What became of a tick, and of its job while that is kept."""

ROWS_MAX: Final = 500
"""Missed ticks, the newest, that have a row each; older ones are told together."""
LOOK_MAX: Final = 2_000
"""Ticks of a cron that one transaction looks at: some 40 ms; the rest is another's."""
_END: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a person or program says of a schedule."""

    name: str
    timing: Timing
    kind: str
    """Of its jobs."""
    is_outside: bool
    """Whether programs outside are the workers."""
    payload: Json
    """Of its jobs, an object; each tick adds `schedule_id` and `due_at`."""
    catch_up: CatchUp = "once"
    enabled: bool = True
    single_run: bool = False
    """Whether it is over after its first run."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Since when somebody looks, which tells a missed tick from one that is on time."""

    late_before: Millis
    """What was due earlier and is not settled was missed."""
    locked_since: Millis | None
    """What was missed from then on was missed because the store was locked, else the program
    was down; None for a store that is never locked."""
    catch_up_max: int
    """Most missed ticks that still run."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    due_at: int
    reason: Reason | None
    """Why it is skipped; None when it runs."""


def add(tx: RuntimeTransactor, schedule_id: str, new: Definition) -> Schedule:
    """Make a schedule; it is first due at its next time.

    Returns:
        It.

    Raises:
        InvalidScheduleError: Its timing is none, or is never due.
        InvalidInputError: Its kind is empty, or the program's own where programs outside work.
    """
    _require(tx, new)
    tx.run(
        sql.ADD_SCHEDULE,
        id=schedule_id,
        is_outside=new.is_outside,
        next_due_at=next_after(new.timing, tx.now_ms),
        now=tx.now_ms,
        **_columns(new),
    )
    return get(tx, schedule_id)


def get(reader: RuntimeReader, schedule_id: str) -> Schedule:
    """One schedule.

    Returns:
        Its row.

    Raises:
        NotFoundError: There is none of this id.
    """
    row = reader.one(sql.FIND_SCHEDULE, id=schedule_id) if is_uuid(schedule_id) else None
    if row is None:
        raise NotFoundError
    return row


def timing_of(row: Schedule) -> Timing:
    """When it is due."""
    return Timing(row.cron, row.interval_s, row.timezone)


def list_page(reader: RuntimeReader, after: str, limit: int) -> list[Schedule]:
    """Schedules after this id, in the order of their making; empty for the first."""
    return reader.all(sql.LIST_SCHEDULES, after=after, limit=limit)


def next_tick(reader: RuntimeReader) -> int | None:
    """When the next tick of any is due, Unix milliseconds; None for never."""
    row = reader.one(sql.FIND_NEXT_TICK)
    return None if row is None else row.value


def list_due(reader: RuntimeReader, limit: int) -> list[str]:
    """Ids of those with a tick that is due, the longest due first."""
    rows = reader.all(sql.LIST_DUE_SCHEDULES, now=reader.now_ms, limit=limit)
    return [row.value for row in rows]


def change(tx: RuntimeTransactor, row: Schedule, new: Definition) -> Schedule:
    """Save a schedule again; what is due is settled before, as it was before.

    Where the timing stays, so does the next time; another timing is first due after now and
    after the last tick. So no period fires twice, however often it is saved.

    Returns:
        It, as it is now.

    Raises:
        VersionConflictError: It is no longer as the row says.
        InvalidScheduleError: Its timing is none, or is never due.
        InvalidInputError: As `add` says.
    """
    _require(tx, new)
    next_due_at = row.next_due_at
    if new.timing != timing_of(row) or (next_due_at is None and new.enabled):
        next_due_at = next_after(new.timing, max(tx.now_ms, row.last_due_at or 0))
    saved = tx.run(
        sql.SET_SCHEDULE,
        id=row.id,
        version=row.version,
        next_due_at=next_due_at,
        now=tx.now_ms,
        **_columns(new),
    )
    if not saved:
        raise VersionConflictError
    return get(tx, row.id)


def remove(tx: RuntimeTransactor, schedule_id: str) -> None:
    """Take a schedule away, and the jobs of it that nobody runs yet.

    Raises:
        NotFoundError: There is none of this id.
    """
    if not is_uuid(schedule_id) or not tx.run(sql.REMOVE_SCHEDULE, id=schedule_id):
        raise NotFoundError
    for job in tx.all(sql.LIST_PENDING_JOBS_OF, schedule_id=schedule_id):
        jobs.cancel(tx, job.value)


def run_now(tx: RuntimeTransactor, schedule_id: str) -> str:
    """Run it by hand, be it disabled; its ticks stay as they are.

    Returns:
        The job's id.

    Raises:
        NotFoundError: There is none of this id.
        AlreadyRunningError: Its last job is not over.
    """
    row = get(tx, schedule_id)
    if _is_busy(tx, schedule_id):
        raise AlreadyRunningError
    job_id = _enqueue(tx, row, tx.now_ms)
    tx.run(sql.ADD_RUN_BY_HAND, schedule_id=schedule_id, job_id=job_id, now=tx.now_ms)
    return job_id


def settle(tx: RuntimeTransactor, schedule_id: str, watch: Watch) -> bool:
    """Settle what of a schedule is due, as much as one transaction may.

    Args:
        tx: In its store.
        schedule_id: Which; one that is gone, or not due, is left alone.
        watch: Since when somebody looks.

    Returns:
        Whether more is due; to be asked again.
    """
    row = tx.one(sql.FIND_SCHEDULE, id=schedule_id)
    if row is None or row.next_due_at is None or row.next_due_at > tx.now_ms:
        return False
    due, following = _due(row, row.next_due_at, tx.now_ms)
    is_whole = following is None or following > tx.now_ms
    older, recent = due[:-ROWS_MAX], due[-ROWS_MAX:]
    verdicts: list[_Verdict] = []
    if is_whole:
        verdicts = _judge(row, recent, watch, is_busy=_is_busy(tx, schedule_id))
    else:
        following = recent[0]
    is_over = bool(row.single_run) and any(verdict.reason is None for verdict in verdicts)
    last = verdicts[-1].due_at if verdicts else older[-1]
    moved = tx.run(
        sql.MOVE_SCHEDULE,
        id=schedule_id,
        seen=row.next_due_at,
        next_due_at=None if is_over else following,
        last_due_at=last,
        enabled=row.enabled and not is_over,
        now=tx.now_ms,
    )
    if moved:
        _write(tx, row, older, verdicts, watch)
    return bool(moved) and not is_whole


def list_runs(
    reader: RuntimeReader, schedule_id: str, before: tuple[int, int] | None, limit: int
) -> list[Run]:
    """What became of a schedule's ticks, and its runs by hand, newest first.

    Args:
        reader: Its store.
        schedule_id: Which.
        before: Due time and `by_hand` of the row that ended the page before; None for the
            newest.
        limit: How many at most.

    Returns:
        The rows; a row of skips may stand for several ticks.
    """
    at, by_hand = before or (_END, 0)
    return reader.all(
        sql.LIST_SCHEDULE_RUNS,
        schedule_id=schedule_id,
        before=at,
        before_by_hand=by_hand,
        limit=limit,
    )


def prune(tx: RuntimeTransactor, before: Millis, limit: int) -> int:
    """Forget runs and skips settled before a time, oldest first; how many."""
    return len(tx.run(sql.REMOVE_SCHEDULE_RUNS, before=before, limit=limit))


def _require(reader: RuntimeReader, new: Definition) -> None:
    require_timing(new.timing, reader.now_ms)
    if not new.kind or (new.is_outside and new.kind.startswith(jobs.PREFIX)):
        raise InvalidInputError(field="kind")


def _columns(new: Definition) -> dict[str, str | int | None]:
    return {
        "name": new.name,
        "cron": new.timing.cron,
        "interval_s": new.timing.interval_s,
        "timezone": new.timing.timezone,
        "kind": new.kind,
        "payload": json.dumps(new.payload),
        "catch_up": new.catch_up,
        "enabled": new.enabled,
        "single_run": new.single_run,
    }


def _is_busy(reader: RuntimeReader, schedule_id: str) -> bool:
    return reader.one(sql.FIND_UNFINISHED_JOB_OF, schedule_id=schedule_id) is not None


def _due(row: Schedule, first: int, now: int) -> tuple[Sequence[int], int | None]:
    """The times that are due, of a cron not all at once; and the one that follows, if any."""
    timing = timing_of(row)
    if timing.interval_s is not None:
        # As many as there are, without counting them one by one.
        times = range(first, now + 1, timing.interval_s * 1000)
        return times, times[-1] + timing.interval_s * 1000
    found = [first]
    for at in islice(times_after(timing, first), LOOK_MAX):
        if at > now or len(found) == LOOK_MAX:
            return found, at
        found.append(at)
    return found, None


def _judge(row: Schedule, times: Sequence[int], watch: Watch, *, is_busy: bool) -> list[_Verdict]:
    """What becomes of the newest due ticks; with one that runs a single run is over."""
    if not row.enabled:
        return [_Verdict(at, "disabled") for at in times]
    place = bisect_left(times, watch.late_before)
    late, fresh = times[:place], times[place:]
    verdicts: list[_Verdict] = []
    if late and row.catch_up == "all" and not row.single_run:
        skipped = max(len(times) - watch.catch_up_max, 0)
        verdicts = [_Verdict(at, _missed(at, watch)) for at in times[:skipped]]
        return verdicts + [_Verdict(at, None) for at in times[skipped:]]
    if late and not fresh and row.catch_up != "skip":
        late, fresh = late[:-1], late[-1:]
    verdicts = [_Verdict(at, _missed(at, watch)) for at in late]
    for at in fresh:
        verdicts.append(_Verdict(at, "overlap" if is_busy else None))
        if row.single_run and not is_busy:
            break
        is_busy = True
    return verdicts


def _missed(at: int, watch: Watch) -> Reason:
    is_locked = watch.locked_since is not None and at >= watch.locked_since
    return "locked" if is_locked else "down"


def _write(
    tx: RuntimeTransactor,
    row: Schedule,
    older: Sequence[int],
    verdicts: Sequence[_Verdict],
    watch: Watch,
) -> None:
    place = len(older) if watch.locked_since is None else bisect_left(older, watch.locked_since)
    for times in (older[:place], older[place:]):
        if times:
            reason = _missed(times[0], watch) if row.enabled else "disabled"
            _add_row(tx, row.id, times, reason, None)
    for verdict in verdicts:
        job_id = _enqueue(tx, row, verdict.due_at) if verdict.reason is None else None
        _add_row(tx, row.id, [verdict.due_at], verdict.reason, job_id)


def _add_row(
    tx: RuntimeTransactor,
    schedule_id: str,
    times: Sequence[int],
    reason: str | None,
    job_id: str | None,
) -> None:
    tx.run(
        sql.ADD_SCHEDULE_RUN,
        schedule_id=schedule_id,
        due_at=times[0],
        ticks=len(times),
        last_due_at=times[-1],
        outcome="run" if reason is None else "skip",
        reason=reason,
        job_id=job_id,
        now=tx.now_ms,
    )


def _enqueue(tx: RuntimeTransactor, row: Schedule, due_at: int) -> str:
    given = cast("dict[str, Json]", json.loads(row.payload))
    payload: Json = {**given, "schedule_id": row.id, "due_at": rfc3339(due_at)}
    job_id, _ = jobs.enqueue(
        tx, row.kind, payload, is_outside=bool(row.is_outside), schedule_id=row.id
    )
    return job_id
