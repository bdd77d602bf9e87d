"""What schedules are for, and how their runs ended, however their jobs came to an end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import Millis
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.owner import scheduled_jobs
from app.owner.scheduled_jobs import JobRun, Task
from app.runtime import jobs
from app.runtime.timing import Timing
from tests.support.timetable import MINUTE, TERMS, Timetable, timetable

_NOBODY = "01890000-0000-7000-8000-00000000ffff"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Timetable]:
    """A store at the beginning of 2024."""
    with timetable(tmp_path) as made:
        yield made


def due(table: Timetable) -> str:
    """A schedule whose first job waits; its id."""
    schedule_id = table.add(Timing(None, 60))
    with table.store.write() as tx:
        scheduled_jobs.add(tx, schedule_id, Task("x", session_id="s1", run_context={"k": [1]}))
    table.clock.advance(MINUTE)
    table.settle(schedule_id)
    return schedule_id


def claim(table: Timetable) -> jobs.Claim:
    """Take the job."""
    with table.store.write() as tx:
        taken = jobs.claim_outside(tx, ["work"], "w", TERMS)
    assert taken is not None
    return taken


def run_of(table: Timetable, job_id: str) -> JobRun:
    """How its run stands."""
    found = scheduled_jobs.find_run(table.store.reader, job_id)
    assert found is not None
    return found


def test_a_run_is_told_from_its_claim_to_its_end(table: Timetable) -> None:
    """With what its worker said, and how long it took."""
    schedule_id = due(table)
    taken = claim(table)
    row = scheduled_jobs.get(table.store.reader, schedule_id)
    began = table.clock.now_ms
    assert (row.running_since, row.last_run_at, row.running_session_id) == (began, began, "s1")
    open_run = run_of(table, taken.id)
    assert (open_run.status, open_run.started_at, open_run.session_id) == (None, began, "s1")
    table.clock.advance(5_000)
    with table.store.write() as tx:
        result = {"final_response": "Done.", "session_id": "s2"}
        jobs.finish(tx, taken.id, taken.generation, result)
    assert run_of(table, taken.id) == JobRun(
        taken.id, schedule_id, "s2", began, began + 5_000, 5_000, "completed", "Done.", None
    )
    row = scheduled_jobs.get(table.store.reader, schedule_id)
    assert (row.running_since, row.running_session_id, row.last_run_at) == (None, None, began)


@pytest.mark.parametrize(
    ("result", "expected"),
    [(None, None), ("plain words", "plain words"), ({"n": 1}, '{"n": 1}'), ([1], "[1]"), (7, "7")],
)
def test_a_result_of_any_form_is_kept_as_text(
    table: Timetable, result: jobs.Json, expected: str | None
) -> None:
    """Its `final_response` where it has one."""
    due(table)
    taken = claim(table)
    with table.store.write() as tx:
        jobs.finish(tx, taken.id, taken.generation, result)
    found = run_of(table, taken.id).final_response
    assert (found or "").replace(" ", "") == (expected or "").replace(" ", "")


def test_a_failed_attempt_is_no_end(table: Timetable) -> None:
    """The last one is; tried again by hand it is open once more."""
    schedule_id, job_id = due(table), ""
    for number in range(3):
        taken = claim(table)
        job_id = taken.id
        with table.store.write() as tx:
            jobs.fail(tx, taken.id, taken.generation, "no luck", TERMS, lambda: 0.0)
        assert run_of(table, taken.id).status == ("failed" if number == 2 else None)
        row = scheduled_jobs.get(table.store.reader, schedule_id)
        assert row.running_since is None
    assert run_of(table, job_id).error == "no luck"
    with table.store.write() as tx:
        jobs.retry(tx, job_id)
    again = run_of(table, job_id)
    assert (again.status, again.error, again.completed_at) == (None, None, None)


def test_a_job_that_never_began_is_told_as_cancelled(table: Timetable) -> None:
    """Its run lasted no time."""
    due(table)
    [(job_id,)] = table.store.rows("SELECT id FROM sys_jobs")
    with table.store.write() as tx:
        jobs.cancel(tx, str(job_id))
    found = run_of(table, str(job_id))
    assert (found.status, found.duration_ms) == ("cancelled", 0)


def test_a_worker_that_falls_silent_ends_the_run(table: Timetable) -> None:
    """By the lease alone, with nobody to say so."""
    due(table)
    job_id = ""
    for _ in range(3):
        job_id = claim(table).id
        table.clock.advance(300_001)
        with table.store.write() as tx:
            jobs.expire(tx, TERMS)
    found = run_of(table, job_id)
    assert (found.status, found.error) == ("failed", "lease_expired")


def test_old_runs_are_forgotten_and_open_ones_are_not(table: Timetable) -> None:
    """By when they ended."""
    due(table)
    taken = claim(table)
    with table.store.write() as tx:
        assert scheduled_jobs.prune_runs(tx, Millis(1 << 60), 10) == 0
        jobs.finish(tx, taken.id, taken.generation)
        assert scheduled_jobs.prune_runs(tx, Millis(table.clock.now_ms), 10) == 0
        assert scheduled_jobs.prune_runs(tx, Millis(table.clock.now_ms + 1), 10) == 1
    assert scheduled_jobs.find_run(table.store.reader, taken.id) is None


def test_a_task_is_read_as_it_was_said(table: Timetable) -> None:
    """Said anew it is another; of a schedule that is none there is none."""
    schedule_id = due(table)
    row = scheduled_jobs.get(table.store.reader, schedule_id)
    assert scheduled_jobs.task_of(row) == Task("x", session_id="s1", run_context={"k": [1]})
    other = Task("y", description="d", prompt="p", agent_id="a")
    with table.store.write() as tx:
        assert scheduled_jobs.task_of(scheduled_jobs.change(tx, schedule_id, other)) == other
        scheduled_jobs.remove(tx, schedule_id)
    for work in (
        lambda: scheduled_jobs.get(table.store.reader, schedule_id),
        lambda: _in_a_write(table, schedule_id),
        lambda: _change(table, other),
    ):
        with pytest.raises(NotFoundError):
            work()


def _in_a_write(table: Timetable, schedule_id: str) -> None:
    with table.store.write() as tx:
        scheduled_jobs.remove(tx, schedule_id)


def _change(table: Timetable, task: Task) -> None:
    with table.store.write() as tx:
        scheduled_jobs.change(tx, _NOBODY, task)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_store_holds_is_refused(table: Timetable, text: str) -> None:
    """Before anything is written."""
    with pytest.raises(InvalidInputError), table.store.write() as tx:
        scheduled_jobs.add(tx, _NOBODY, Task("x", prompt=text))
