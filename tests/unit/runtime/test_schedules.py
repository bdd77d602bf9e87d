"""Schedules: each due tick is one run or one skip, and no period fires twice."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import cast

import pytest

from app.clock import Millis, rfc3339
from app.errors.callers import NotFoundError
from app.errors.conflicts import AlreadyRunningError, VersionConflictError
from app.errors.inputs import InvalidInputError, InvalidScheduleError
from app.runtime import jobs, schedules
from app.runtime.schedules import CatchUp, Definition
from app.runtime.timing import Timing, times_after
from tests.support.timetable import DAY, MINUTE, TERMS, Timetable, Told, timetable

EVERY_MINUTE = Timing("* * * * *", None)
EVERY_60_S = Timing(None, 60)
_NOBODY = "01890000-0000-7000-8000-00000000ffff"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Timetable]:
    """A store at the beginning of 2024."""
    with timetable(tmp_path) as made:
        yield made


@pytest.mark.parametrize("timing", [EVERY_MINUTE, EVERY_60_S], ids=["cron", "interval"])
def test_a_tick_and_its_job_come_together(table: Timetable, timing: Timing) -> None:
    """And the job says which tick it is."""
    schedule_id = table.add(timing)
    assert table.settle(schedule_id) == 1
    assert table.told(schedule_id) == []
    due = table.start
    for number in (1, 2):
        due = table.start + number * MINUTE
        table.clock.now_ms = due
        table.settle(schedule_id)
        table.settle(schedule_id)
        status, payload = table.jobs()[-1]
        assert status == "pending"
        assert payload == {"prompt": "p", "schedule_id": schedule_id, "due_at": rfc3339(due)}
        assert table.told(schedule_id)[-1] == Told(due, 1, due, None)
        assert len(table.jobs()) == number
        assert table.finish() == 1
    row = table.row(schedule_id)
    assert (row.last_due_at, row.next_due_at) == (due, due + MINUTE)


def test_an_undone_transaction_leaves_neither(table: Timetable) -> None:
    """The tick is due still, and comes once."""
    schedule_id = table.add(EVERY_MINUTE)
    table.clock.advance(MINUTE)

    def settle_and_fail() -> None:
        with table.store.write() as tx:
            schedules.settle(tx, schedule_id, table.watch)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        settle_and_fail()
    assert (table.jobs(), table.told(schedule_id)) == ([], [])
    table.settle(schedule_id)
    assert (len(table.jobs()), table.reasons(schedule_id)) == (1, [None])


def test_a_tick_whose_job_before_is_not_over_is_skipped(table: Timetable) -> None:
    """Be it pending or running; once it is over the next one runs."""
    schedule_id = table.add(EVERY_MINUTE)
    for _ in range(3):
        table.clock.advance(MINUTE)
        table.settle(schedule_id)
    with table.store.write() as tx:
        claim = jobs.claim_outside(tx, ["work"], "w", TERMS)
        assert claim is not None
    table.clock.advance(MINUTE)
    table.settle(schedule_id)
    with table.store.write() as tx:
        jobs.finish(tx, claim.id, claim.generation)
    table.clock.advance(MINUTE)
    table.settle(schedule_id)
    assert table.reasons(schedule_id) == [None, "overlap", "overlap", "overlap", None]


_DOWN: list[tuple[CatchUp, list[str | None]]] = [
    ("skip", ["down", "down", "down"]),
    ("once", ["down", "down", None]),
    ("all", [None, None, None]),
]


@pytest.mark.parametrize(("catch_up", "expected"), _DOWN, ids=["skip", "once", "all"])
@pytest.mark.parametrize("timing", [EVERY_MINUTE, EVERY_60_S], ids=["cron", "interval"])
def test_missed_ticks_end_as_the_schedule_says(
    table: Timetable, timing: Timing, catch_up: CatchUp, expected: list[str | None]
) -> None:
    """Three while the program was down, each in a row of its own."""
    schedule_id = table.add(timing, catch_up)
    table.away(3 * MINUTE + 10_000)
    table.settle(schedule_id)
    assert table.reasons(schedule_id) == expected
    assert len(table.jobs()) == expected.count(None)
    assert table.row(schedule_id).next_due_at == table.start + 4 * MINUTE


@pytest.mark.parametrize("catch_up", ["skip", "once", "all"])
def test_a_second_down_loses_no_tick(table: Timetable, catch_up: CatchUp) -> None:
    """What was due just then may be another process's still, and runs."""
    schedule_id = table.add(EVERY_MINUTE, catch_up)
    table.clock.advance(MINUTE - 500)
    table.away(1_000)
    table.settle(schedule_id)
    assert table.reasons(schedule_id) == [None]


@pytest.mark.parametrize("catch_up", ["skip", "once", "all"])
def test_ten_seconds_down_may_miss_one(table: Timetable, catch_up: CatchUp) -> None:
    """Then the choice counts, however short it was."""
    schedule_id = table.add(EVERY_MINUTE, catch_up)
    table.clock.advance(MINUTE - 5_000)
    table.away(10_000)
    table.settle(schedule_id)
    assert table.reasons(schedule_id) == [{"skip": "down", "once": None, "all": None}[catch_up]]


@pytest.mark.parametrize("catch_up", ["skip", "once", "all"])
@pytest.mark.parametrize(
    "timing", [Timing("0 * * * *", None, "Europe/Berlin"), Timing(None, 3_600)], ids=str
)
def test_a_year_down_leaves_each_tick_in_one_row(
    table: Timetable, timing: Timing, catch_up: CatchUp
) -> None:
    """The newest have a row each, older ones are told together; at most a hundred run."""
    schedule_id = table.add(timing, catch_up)
    table.away(366 * DAY)
    assert table.settle(schedule_id) <= 6
    expected = [
        at for at in islice(times_after(timing, table.start), 366 * 24) if at <= table.clock.now_ms
    ]
    told = table.told(schedule_id)
    assert sum(row.ticks for row in told) == len(expected)
    assert (told[0].due_at, told[-1].last_due_at) == (expected[0], expected[-1])
    for earlier, later in pairwise(told):
        assert later.due_at == expected[expected.index(earlier.last_due_at) + 1]
    newest = [row for row in told if row.ticks == 1]
    assert len(newest) >= schedules.ROWS_MAX
    runs = [row.due_at for row in told if row.reason is None]
    # The last one was due at this very moment: it is on time.
    assert runs == expected[-{"skip": 1, "once": 1, "all": 100}[catch_up] :]
    assert len(table.jobs()) == len(runs)


def test_a_year_of_minutes_is_settled_in_short_steps(table: Timetable) -> None:
    """Each looks at two thousand ticks, and others write between them."""
    schedule_id = table.add(EVERY_MINUTE, "once")
    table.away(20 * DAY + 30_000)
    steps = table.settle(schedule_id)
    told = table.told(schedule_id)
    assert sum(row.ticks for row in told) == 20 * 24 * 60
    assert steps <= 20
    assert len(told) <= schedules.ROWS_MAX + steps
    assert [row.due_at for row in told if row.reason is None] == [told[-1].due_at]


def test_an_interval_of_a_second_over_a_century_is_one_step(table: Timetable) -> None:
    """They are counted, not walked."""
    schedule_id = table.add(Timing(None, 1), "all")
    table.away(36_525 * DAY)
    assert table.settle(schedule_id) == 1
    assert sum(row.ticks for row in table.told(schedule_id)) == 36_525 * 86_400


@pytest.mark.parametrize("catch_up", ["skip", "once", "all"])
def test_what_a_member_missed_says_why(table: Timetable, catch_up: CatchUp) -> None:
    """Down before the process began, locked since then, in one row's words each."""
    schedule_id = table.add(EVERY_MINUTE, catch_up)
    table.locked_since = table.start + 2 * MINUTE + 1
    table.away(4 * MINUTE + 5_000)
    table.settle(schedule_id)
    missed: list[str | None] = ["down", "down", "locked", "locked"]
    runs = {"skip": 0, "once": 1, "all": 4}[catch_up]
    assert table.reasons(schedule_id) == missed[: 4 - runs] + [None] * runs


def test_very_many_that_a_member_missed_are_told_by_reason(table: Timetable) -> None:
    """Two rows for the old ones: one of each reason."""
    schedule_id = table.add(EVERY_60_S, "skip")
    table.locked_since = table.start + 100 * MINUTE + 1
    table.away(1_000 * MINUTE + 5_000)
    table.settle(schedule_id)
    told = table.told(schedule_id)
    assert [(row.ticks, row.reason) for row in told[:3]] == [
        (100, "down"),
        (400, "locked"),
        (1, "locked"),
    ]


def test_a_disabled_schedule_skips_and_says_so(table: Timetable) -> None:
    """However long, and whatever it would catch up; enabled again it goes on from there."""
    schedule_id = table.add(EVERY_MINUTE, "all", enabled=False)
    table.clock.advance(MINUTE)
    table.settle(schedule_id)
    table.away(1_000 * MINUTE + 5_000)
    table.settle(schedule_id)
    assert set(table.reasons(schedule_id)) == {"disabled"}
    assert sum(row.ticks for row in table.told(schedule_id)) == 1_001
    _save(table, schedule_id, enabled=True)
    table.clock.advance(MINUTE)
    table.settle(schedule_id)
    assert table.reasons(schedule_id)[-1] is None
    assert len(table.jobs()) == 1


@pytest.mark.parametrize("catch_up", ["skip", "once", "all"])
def test_a_single_run_is_over_after_its_first(table: Timetable, catch_up: CatchUp) -> None:
    """Ticks after it are none."""
    schedule_id = table.add(EVERY_MINUTE, catch_up, single_run=True)
    version = table.row(schedule_id).version
    table.away(3 * MINUTE)
    table.settle(schedule_id)
    table.clock.advance(DAY)
    table.settle(schedule_id)
    row = table.row(schedule_id)
    assert (row.enabled, row.next_due_at, row.version) == (0, None, version + 1)
    assert len(table.jobs()) == 1
    assert table.reasons(schedule_id) == ["down", "down", None]
    table.finish()
    _save(table, schedule_id, enabled=True)
    assert table.row(schedule_id).next_due_at == table.clock.now_ms + MINUTE


def test_the_clock_set_back_fires_nothing_twice(table: Timetable) -> None:
    """Nor is anything due until it is there again."""
    schedule_id = table.add(EVERY_MINUTE)
    table.clock.advance(5 * MINUTE)
    table.settle(schedule_id)
    table.finish()
    count = len(table.told(schedule_id))
    table.clock.advance(-DAY)
    for _ in range(3):
        table.clock.advance(MINUTE)
        table.settle(schedule_id)
    assert len(table.told(schedule_id)) == count
    _save(table, schedule_id, cron="*/1 * * * *")
    row = table.row(schedule_id)
    assert row.last_due_at is not None
    assert row.next_due_at == row.last_due_at + MINUTE
    table.clock.now_ms = row.next_due_at
    table.settle(schedule_id)
    assert len(table.told(schedule_id)) == count + 1


def test_a_clock_set_far_forward_and_back_is_survived(table: Timetable) -> None:
    """A year ahead by mistake: those ticks are settled, and come no second time."""
    schedule_id = table.add(EVERY_60_S, "skip")
    table.away(365 * DAY)
    table.settle(schedule_id)
    total = sum(row.ticks for row in table.told(schedule_id))
    table.clock.advance(-365 * DAY + MINUTE)
    table.settle(schedule_id)
    assert sum(row.ticks for row in table.told(schedule_id)) == total


def _save(
    table: Timetable,
    schedule_id: str,
    *,
    cron: str | None = None,
    enabled: bool | None = None,
    name: str = "x",
) -> None:
    row = table.row(schedule_id)
    timing = schedules.timing_of(row)
    new = Definition(
        name=name,
        timing=Timing(cron, None, timing.timezone) if cron else timing,
        kind=row.kind,
        is_outside=True,
        payload={"prompt": "p"},
        catch_up=cast("CatchUp", row.catch_up),
        enabled=bool(row.enabled) if enabled is None else enabled,
        single_run=bool(row.single_run),
    )
    with table.store.write() as tx:
        schedules.change(tx, row, new)


def test_saved_again_and_again_it_fires_once_a_period(table: Timetable) -> None:
    """With the same timing its next time stays, whatever else is said anew."""
    schedule_id = table.add(EVERY_60_S)
    for second in range(5, 181, 5):
        table.clock.now_ms = table.start + second * 1_000
        _save(table, schedule_id, name=f"x{second}")
        table.settle(schedule_id)
        table.finish()
    assert [row.due_at - table.start for row in table.told(schedule_id)] == [
        MINUTE,
        2 * MINUTE,
        3 * MINUTE,
    ]


def test_another_timing_is_first_due_after_the_last_tick(table: Timetable) -> None:
    """At 00:01:00 the same minute said in other words comes no second time."""
    schedule_id = table.add(EVERY_MINUTE)
    table.clock.advance(MINUTE)
    table.settle(schedule_id)
    _save(table, schedule_id, cron="1 0 * * *")
    assert table.row(schedule_id).next_due_at == table.start + DAY + MINUTE


def test_a_stale_version_saves_nothing(table: Timetable) -> None:
    """The row that was read is not the one that stands."""
    schedule_id = table.add(EVERY_MINUTE)
    old = table.row(schedule_id)
    _save(table, schedule_id, name="other")
    new = Definition(name="late", timing=EVERY_60_S, kind="work", is_outside=True, payload={})
    with pytest.raises(VersionConflictError), table.store.write() as tx:
        schedules.change(tx, old, new)
    assert table.row(schedule_id).name == "other"


def test_a_run_by_hand_is_no_tick(table: Timetable) -> None:
    """It runs a disabled one too, is refused while one runs, and never takes a tick's place."""
    schedule_id = table.add(EVERY_MINUTE, enabled=False)
    table.clock.advance(MINUTE)
    job_id = ""
    for _ in range(2):
        with table.store.write() as tx:
            job_id = schedules.run_now(tx, schedule_id)
        with pytest.raises(AlreadyRunningError), table.store.write() as tx:
            schedules.run_now(tx, schedule_id)
        table.finish()
    table.settle(schedule_id)
    found = schedules.list_runs(table.store.reader, schedule_id, None, 10)
    now = table.clock.now_ms
    assert [(r.due_at, r.by_hand, r.outcome) for r in found] == [
        (now + 1, 1, "run"),
        (now, 1, "run"),
        (now, 0, "skip"),
    ]
    assert (found[0].job_id, found[0].job_status) == (job_id, "done")
    place = (found[1].due_at, found[1].by_hand)
    assert schedules.list_runs(table.store.reader, schedule_id, place, 10) == found[2:]


def test_a_schedule_taken_away_takes_the_jobs_that_wait(table: Timetable) -> None:
    """One that runs goes on; the record stays."""
    schedule_id = table.add(EVERY_MINUTE, "all")
    table.away(2 * MINUTE)
    table.settle(schedule_id)
    with table.store.write() as tx:
        assert jobs.claim_outside(tx, ["work"], "w", TERMS)
        schedules.remove(tx, schedule_id)
    assert sorted(status for status, _ in table.jobs()) == ["cancelled", "running"]
    assert len(table.told(schedule_id)) == 2
    assert table.settle(schedule_id) == 1
    for name in (schedule_id, _NOBODY, "no id"):
        with pytest.raises(NotFoundError), table.store.write() as tx:
            schedules.remove(tx, name)


def test_what_is_due_is_listed_by_how_long(table: Timetable) -> None:
    """And when the next tick is."""
    assert schedules.next_tick(table.store.reader) is None
    slow = table.add(Timing(None, 120))
    quick = table.add(EVERY_60_S)
    assert schedules.next_tick(table.store.reader) == table.start + MINUTE
    table.clock.advance(2 * MINUTE)
    assert schedules.list_due(table.store.reader, 10) == [quick, slow]
    rows = schedules.list_page(table.store.reader, "", 10)
    assert {row.id for row in rows} == {slow, quick}
    assert schedules.list_page(table.store.reader, max(slow, quick), 10) == []


def test_a_cron_without_a_next_time_is_over(table: Timetable) -> None:
    """It runs its last, and is never due again."""
    schedule_id = table.add(EVERY_MINUTE)
    table.clock.now_ms = 253_402_300_740_000  # the last minute of the year 9999
    table.store.connection.all(
        f"UPDATE sys_schedules SET next_due_at = {table.clock.now_ms}"  # noqa: S608 - a number
    )
    table.since = table.clock.now_ms
    table.settle(schedule_id)
    assert table.row(schedule_id).next_due_at is None


@pytest.mark.parametrize("kind", ["", "strongroom.own"])
def test_a_kind_that_nobody_outside_may_use_is_refused(table: Timetable, kind: str) -> None:
    """Nor an empty one."""
    new = Definition(name="x", timing=EVERY_MINUTE, kind=kind, is_outside=True, payload={})
    with pytest.raises(InvalidInputError), table.store.write() as tx:
        schedules.add(tx, tx.new_id(), new)
    bad = replace(new, kind="work", timing=Timing("bad", None))
    with pytest.raises(InvalidScheduleError), table.store.write() as tx:
        schedules.add(tx, tx.new_id(), bad)


def test_old_rows_are_forgotten_oldest_first(table: Timetable) -> None:
    """By when they were settled, a batch at a time."""
    schedule_id = table.add(EVERY_MINUTE)
    for _ in range(5):
        table.clock.advance(MINUTE)
        table.settle(schedule_id)
    before = Millis(table.start + 4 * MINUTE)
    counts = []
    for _ in range(3):
        with table.store.write() as tx:
            counts.append(schedules.prune(tx, before, 2))
    assert counts == [2, 1, 0]
    assert len(table.told(schedule_id)) == 2
