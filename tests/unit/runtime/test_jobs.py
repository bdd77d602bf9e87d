"""The service of durable jobs: every state and arrow, on a real store with a moved clock."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from app.clock import Millis
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError, JobOverError, LeaseLostError
from app.errors.inputs import InvalidInputError
from app.runtime import due, jobs, leases
from app.runtime import operator_actions as acts
from app.runtime.jobs import Terms
from tests.support.stores import MovedClock, OwnerFile

TERMS: Final = Terms(lease_ms=300_000, attempts_max=3, backoff_max_ms=600_000)
_NOBODY: Final = "01890000-0000-7000-8000-00000000ffff"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A member's store."""
    file = OwnerFile(tmp_path / "s.db", clock=MovedClock())
    yield file
    file.connection.close()


def add(store: OwnerFile, kind: str = "mail", **more: object) -> str:
    """Enqueue one for programs outside, in a transaction of its own."""
    with store.write() as tx:
        options = {"is_outside": True, **more}
        job_id, _ = jobs.enqueue(tx, kind, {"n": 1}, **options)  # type: ignore[arg-type]
        return job_id


def take(store: OwnerFile, *kinds: str) -> jobs.Claim:
    """Claim one, which must be there."""
    with store.write() as tx:
        claim = jobs.claim_outside(tx, kinds or ("mail",), "w", TERMS)
    assert claim is not None
    return claim


def fail(store: OwnerFile, claim: jobs.Claim, *, is_permanent: bool = False) -> str:
    """Fail an attempt, with the whole of its pause."""
    with store.write() as tx:
        return jobs.fail(
            tx, claim.id, claim.generation, "x", TERMS, lambda: 1.0, is_permanent=is_permanent
        )


def test_a_job_is_claimed_once_and_done(store: OwnerFile) -> None:
    """With its payload; after that there is nothing to claim."""
    job_id = add(store)
    claim = take(store)
    assert (claim.id, claim.attempts, claim.generation) == (job_id, 1, 1)
    assert json.loads(claim.payload) == {"n": 1}
    with store.write() as tx:
        assert jobs.claim_outside(tx, ["mail"], "w", TERMS) is None
        jobs.finish(tx, job_id, 1, {"ok": True})
    job = jobs.get(store.reader, job_id)
    assert (job.status, job.result, job.finished_at) == ("done", '{"ok": true}', store.clock())
    assert job.version == 3


def test_a_live_dedupe_key_names_the_job_that_has_it(store: OwnerFile) -> None:
    """Until that one is over; a job of the program with the same key is another's."""
    first = add(store, dedupe_key="k")
    with store.write() as tx:
        assert jobs.enqueue(tx, "other", None, is_outside=True, dedupe_key="k") == (first, False)
        own, is_new = jobs.enqueue(tx, "strongroom.x", None, dedupe_key="k")
        assert is_new
        assert own != first
        claim = jobs.claim_outside(tx, ["mail"], "w", TERMS)
        assert claim is not None
        assert jobs.enqueue(tx, "other", None, is_outside=True, dedupe_key="k") == (first, False)
        jobs.finish(tx, first, claim.generation)
        assert jobs.enqueue(tx, "other", None, is_outside=True, dedupe_key="k")[1]


@pytest.mark.parametrize(
    "wrong",
    [{"kind": ""}, {"dedupe_key": ""}, {"schedule_id": ""}, {"kind": "strongroom.housekeeping"}],
    ids=str,
)
def test_empty_keys_and_the_programs_own_kinds_are_refused(
    store: OwnerFile, wrong: dict[str, str]
) -> None:
    """And nothing is enqueued."""
    with pytest.raises(InvalidInputError):
        add(store, **wrong)
    assert jobs.list_page(store.reader, before=None, limit=9) == []


def test_higher_priority_first_then_the_longest_due(store: OwnerFile) -> None:
    """What is not due yet is not there, whatever its priority."""
    now = store.clock()
    late = add(store, run_at=Millis(now + 1000), priority=9)
    old = add(store, run_at=Millis(now - 5))
    new = add(store)
    high = add(store, priority=1)
    assert [take(store).id for _ in range(3)] == [high, old, new]
    assert due.next_outside(store.reader, ["mail"]) == now + 1000
    assert due.next_outside(store.reader, ["other"]) is None
    store.clock.advance(1000)
    assert take(store).id == late


def test_inside_and_outside_are_two_queues(store: OwnerFile) -> None:
    """Neither side is ever given the other's."""
    add(store)
    with store.write() as tx:
        own, _ = jobs.enqueue(tx, "strongroom.x", {})
        assert jobs.claim_outside(tx, ["strongroom.x"], "w", TERMS) is None
        assert [claim.id for claim in jobs.claim(tx, "w", TERMS, 5)] == [own]
    assert due.next_due(store.reader).run_at is None


def test_a_failed_attempt_waits_longer_each_time_and_then_is_dead(store: OwnerFile) -> None:
    """2, 4, 8 seconds at most; the last attempt that there may be makes an end."""
    job_id = add(store)
    for pause_s in (2, 4):
        assert fail(store, take(store)) == "pending"
        job = jobs.get(store.reader, job_id)
        assert job.run_at == store.clock() + pause_s * 1000
        store.clock.advance(pause_s * 1000)
    assert fail(store, take(store)) == "dead"
    assert jobs.get(store.reader, job_id).finished_at == store.clock()


def test_a_pause_is_bounded_and_jittered() -> None:
    """However often it failed."""
    assert jobs.backoff_ms(400, TERMS, lambda: 1.0) == 600_000
    assert jobs.backoff_ms(3, TERMS, lambda: 0.5) == 4_000
    assert jobs.backoff_ms(3, TERMS, lambda: 0.0) == 0


def test_a_permanent_error_is_the_end_at_once(store: OwnerFile) -> None:
    """With the error kept."""
    claim = take(store) if add(store) else None
    assert claim is not None
    assert fail(store, claim, is_permanent=True) == "dead"
    assert jobs.get(store.reader, claim.id).last_error == "x"


def test_a_silent_runner_loses_its_claim_and_the_attempt_counts(store: OwnerFile) -> None:
    """Past the last attempt the job is dead, not round again."""
    job_id = add(store, max_attempts=2)
    for status in ("pending", "dead"):
        claim = take(store)
        store.clock.advance(TERMS.lease_ms - 1)
        with store.write() as tx:
            assert jobs.expire(tx, TERMS) == []
        store.clock.advance(1)
        assert due.next_due(store.reader).lease_until == store.clock()
        with store.write() as tx:
            assert jobs.expire(tx, TERMS) == [("mail", 1, status)]
        with pytest.raises(LeaseLostError), store.write() as tx:
            jobs.finish(tx, job_id, claim.generation)
    assert jobs.get(store.reader, job_id).last_error == "lease_expired"


def test_a_renewed_claim_holds(store: OwnerFile) -> None:
    """From the present on."""
    claim = take(store) if add(store) else None
    assert claim is not None
    store.clock.advance(200_000)
    with store.write() as tx:
        assert jobs.renew(tx, claim.id, claim.generation, TERMS) == store.clock() + 300_000
    store.clock.advance(200_000)
    with store.write() as tx:
        assert jobs.expire(tx, TERMS) == []


def test_no_claim_outlasts_the_time_of_an_attempt(store: OwnerFile) -> None:
    """Neither taken nor renewed; when the time is over it cannot be renewed at all."""
    claim = take(store) if add(store, timeout_s=10) else None
    assert claim is not None
    assert claim.lease_until == store.clock() + 10_000
    store.clock.advance(9_000)
    with store.write() as tx:
        assert jobs.renew(tx, claim.id, 1, TERMS) == store.clock() + 1_000
    store.clock.advance(1_000)
    with pytest.raises(LeaseLostError), store.write() as tx:
        jobs.renew(tx, claim.id, 1, TERMS)


def test_who_lost_a_claim_can_write_nothing(store: OwnerFile) -> None:
    """The next holder can, by the next generation."""
    job_id = add(store)
    lost = take(store)
    store.clock.advance(TERMS.lease_ms)
    with store.write() as tx:
        jobs.expire(tx, TERMS)
    held = take(store)
    assert (held.id, held.generation) == (job_id, lost.generation + 1)
    for act in (jobs.finish, jobs.release):
        with pytest.raises(LeaseLostError), store.write() as tx:
            act(tx, job_id, lost.generation)
    with pytest.raises(LeaseLostError), store.write() as tx:
        jobs.renew(tx, job_id, lost.generation, TERMS)
    with pytest.raises(LeaseLostError):
        fail(store, lost)
    with pytest.raises(LeaseLostError), store.write() as tx:
        jobs.cancel(tx, job_id, lost.generation)
    assert jobs.get(store.reader, job_id).status == "running"
    with store.write() as tx:
        jobs.finish(tx, job_id, held.generation)


def test_a_released_claim_is_as_if_it_had_never_been(store: OwnerFile) -> None:
    """The attempt is not charged, and the job is due again at once."""
    job_id = add(store)
    first = take(store)
    with store.write() as tx:
        jobs.release(tx, job_id, first.generation)
    again = take(store)
    assert (again.attempts, again.generation) == (1, 2)


def test_a_cancelled_job_is_over_for_its_runner_too(store: OwnerFile) -> None:
    """And cannot be cancelled again."""
    job_id = add(store)
    claim = take(store)
    with store.write() as tx:
        jobs.cancel(tx, job_id, claim.generation)
    with pytest.raises(LeaseLostError), store.write() as tx:
        jobs.finish(tx, job_id, claim.generation)
    with pytest.raises(JobOverError), store.write() as tx:
        jobs.cancel(tx, job_id)


def test_retry_begins_anew(store: OwnerFile) -> None:
    """For the dead and the cancelled, and for what waits; not for what runs or was done."""
    job_id = add(store, dedupe_key="k")
    claim = take(store)
    with pytest.raises(ConflictError), store.write() as tx:
        jobs.retry(tx, job_id)
    assert fail(store, claim, is_permanent=True) == "dead"
    other = add(store, dedupe_key="k")
    with pytest.raises(ConflictError), store.write() as tx:
        jobs.retry(tx, job_id)
    with store.write() as tx:
        jobs.cancel(tx, other)
        jobs.retry(tx, job_id)
        jobs.retry(tx, job_id)
    again = take(store)
    assert (again.id, again.attempts) == (job_id, 1)
    with store.write() as tx:
        jobs.finish(tx, job_id, again.generation)
    with pytest.raises(JobOverError), store.write() as tx:
        jobs.retry(tx, job_id)


def test_only_what_is_over_can_be_taken_away(store: OwnerFile) -> None:
    """One by one; and by age, the dead later than the others, in bounded numbers."""
    done, dead, live = (add(store, kind) for kind in ("a", "b", "c"))
    with store.write() as tx:
        jobs.finish(tx, done, jobs.claim_outside(tx, ["a"], "w", TERMS).generation)  # type: ignore[union-attr]
    fail(store, take(store, "b"), is_permanent=True)
    with pytest.raises(ConflictError), store.write() as tx:
        jobs.remove(tx, live)
    store.clock.advance(1)
    now = store.clock()
    with store.write() as tx:
        assert jobs.purge(tx, now, Millis(0), 9) == 1
        assert jobs.purge(tx, now, now, 0) == 0
        assert jobs.purge(tx, now, now, 9) == 1
    left = jobs.list_page(store.reader, before=None, limit=9)
    assert [job.id for job in left] == [live]
    with store.write() as tx:
        jobs.cancel(tx, live)
        jobs.remove(tx, live)
    assert jobs.find(store.reader, live) is None
    assert dead != done


def test_a_list_is_newest_first_and_filtered(store: OwnerFile) -> None:
    """By status, by kind, or only those of programs outside."""
    made = []
    for kind in ("a", "b"):
        store.clock.advance(1)
        made.append(add(store, kind))
    store.clock.advance(1)
    with store.write() as tx:
        made.append(jobs.enqueue(tx, "strongroom.x", None)[0])
        jobs.cancel(tx, made[0])

    def ids(**chosen: object) -> list[str]:
        options = {"before": None, "limit": 9, **chosen}
        return [row.id for row in jobs.list_page(store.reader, **options)]  # type: ignore[arg-type]

    assert ids() == made[::-1]
    assert ids(before=made[2], limit=1) == [made[1]]
    assert ids(is_outside=True) == [made[1], made[0]]
    assert ids(status="pending", kind="b") == [made[1]]
    assert ids(status="cancelled") == [made[0]]


def test_a_job_that_is_not_there_is_not_found(store: OwnerFile) -> None:
    """Whatever is asked of it."""
    for job_id in (_NOBODY, "no id"):
        for act in (jobs.finish, jobs.release):
            with pytest.raises(NotFoundError), store.write() as tx:
                act(tx, job_id, 1)
        with pytest.raises(NotFoundError), store.write() as tx:
            jobs.renew(tx, job_id, 1, TERMS)
        for simple in (jobs.cancel, jobs.retry, jobs.remove):
            with pytest.raises(NotFoundError), store.write() as tx:
                simple(tx, job_id)
        with pytest.raises(NotFoundError), store.write() as tx:
            jobs.fail(tx, job_id, 1, "x", TERMS, lambda: 0.0)


def test_what_is_next_due_counts_jobs_schedules_and_deliveries(store: OwnerFile) -> None:
    """The earliest of them; nothing when there is none."""
    assert due.next_work(store.reader) is None
    now = store.clock()
    add(store, run_at=Millis(now + 7))
    assert due.next_work(store.reader) == now + 7
    claim_at = Millis(now + 7)
    store.clock.now_ms = claim_at
    take(store)
    assert due.next_work(store.reader) == claim_at + TERMS.lease_ms


def test_an_operators_act_is_kept_with_the_state_it_met(store: OwnerFile) -> None:
    """Newest first."""
    with store.write() as tx:
        acts.record(tx, "job.retry", "j", {"status": "dead", "attempts": 3}, acts.BOX)
        acts.record(tx, "job.cancel", "other", {}, "u")
    [row] = acts.list_of(store.reader, "j", 9)
    assert (row.action, row.operator, row.acted_at) == ("job.retry", "box", store.clock())
    assert json.loads(row.item_state) == {"status": "dead", "attempts": 3}


def test_a_lease_of_a_clock_that_was_ahead_ends_when_it_is_put_right(store: OwnerFile) -> None:
    """Else a dead worker's job would run for as long as the clock was wrong."""
    year_ms = 365 * 86_400_000
    add(store)
    store.clock.advance(year_ms)
    take(store)
    store.clock.advance(-year_ms)
    with store.write() as tx:
        assert leases.right(tx, TERMS.lease_ms, 9) == 1
        assert leases.right(tx, TERMS.lease_ms, 9) == 0
        jobs.expire(tx, TERMS)
    assert due.next_outside(store.reader, ["mail"]) is not None
