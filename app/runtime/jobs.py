"""Durable work: enqueued by the transaction that causes it, run by whoever holds its claim.

    pending --claim--> running --finish--> done
       ^                  |----fail, lease over--> pending again, or dead when it had its tries
       '-----release------'----cancel--> cancelled

A claim is a lease and a generation. Only the holder of the present generation may finish,
fail, renew or release; whoever lost it can write nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.clock import Millis
from app.db.runtime import statements as sql
from app.db.runtime.rows import ClaimedJobRow, ExpiredJobRow, JobRow, JobSummaryRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError, JobOverError, LeaseLostError
from app.errors.inputs import InvalidInputError
from app.ids import is_uuid
from app.runtime import due

Job = JobRow
"""One job with its payload and result, both JSON texts."""
JobSummary = JobSummaryRow
"""One job without them."""
Claim = ClaimedJobRow
"""One job as its runner needs it."""

PREFIX: Final = "strongroom."
"""Begins the kind of every job that the program runs itself; no program outside may use it."""
EXPIRE_MAX: Final = 100
"""Silent claims that one transaction ends."""
_BACKOFF_FIRST_S: Final = 2
_END: Final = "~"
"""Comes after every id."""

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


@dataclass(frozen=True, slots=True)
class Terms:
    """The figures of claims, from the settings."""

    lease_ms: int
    attempts_max: int
    """For jobs that name no number of their own."""
    backoff_max_ms: int


def enqueue(  # noqa: PLR0913 - each is one column
    tx: RuntimeTransactor,
    kind: str,
    payload: Json,
    *,
    is_outside: bool = False,
    dedupe_key: str | None = None,
    run_at: Millis | None = None,
    max_attempts: int | None = None,
    timeout_s: int | None = None,
    priority: int = 0,
    schedule_id: str | None = None,
) -> tuple[str, bool]:
    """Enqueue a job, in the transaction that causes it.

    Args:
        tx: In its store.
        kind: What is to be done; the program's own begin with PREFIX.
        payload: What JSON can hold; ids and counts, never a secret.
        is_outside: Whether programs outside are its workers, and none in here.
        dedupe_key: Of it at most one job is pending or running; None: any number.
        run_at: Not before; None for now.
        max_attempts: Tries before it is dead; None takes the setting.
        timeout_s: Seconds that one attempt may take; None: no bound but its lease.
        priority: Higher ones first.
        schedule_id: The schedule that ticked; None for any other cause.

    Returns:
        The job's id and whether it is new; else it is that of the live one with the key.

    Raises:
        InvalidInputError: A kind or key is empty, or programs outside claim the program's kind.
    """
    if (
        not kind
        or not (dedupe_key is None or dedupe_key)
        or not (schedule_id is None or schedule_id)
    ):
        raise InvalidInputError
    if is_outside and kind.startswith(PREFIX):
        raise InvalidInputError
    if dedupe_key is not None:
        live = tx.one(sql.FIND_LIVE_JOB, is_outside=is_outside, dedupe_key=dedupe_key)
        if live is not None:
            return live.value, False
    job_id = tx.new_id()
    tx.run(
        sql.ADD_JOB,
        id=job_id,
        kind=kind,
        is_outside=is_outside,
        payload=json.dumps(payload),
        dedupe_key=dedupe_key,
        priority=priority,
        run_at=tx.now_ms if run_at is None else run_at,
        max_attempts=max_attempts,
        timeout_s=timeout_s,
        made_by=tx.actor.sub,
        schedule_id=schedule_id,
        depth=tx.actor.depth,
        now=tx.now_ms,
    )
    return job_id, True


def claim(tx: RuntimeTransactor, owner: str, terms: Terms, limit: int) -> list[Claim]:
    """Take jobs of the program that are due, highest priority and longest due first.

    Args:
        tx: In their store.
        owner: Who runs them, for people to read.
        terms: How long the claim holds.
        limit: How many at most.

    Returns:
        Those taken; with what they carry.
    """
    taken: list[Claim] = []
    while len(taken) < limit:
        rows = tx.run(sql.CLAIM_JOB, owner=owner, now=tx.now_ms, until=tx.now_ms + terms.lease_ms)
        if not rows:
            break
        taken += rows
    return taken


def claim_outside(
    tx: RuntimeTransactor, kinds: Sequence[str], owner: str, terms: Terms
) -> Claim | None:
    """Take the first job that is due of these kinds, for a program outside; None without one."""
    rows = tx.run(
        sql.CLAIM_OUTSIDE_JOB,
        kinds=json.dumps(list(kinds)),
        owner=owner,
        now=tx.now_ms,
        until=tx.now_ms + terms.lease_ms,
    )
    return rows[0] if rows else None


def renew(tx: RuntimeTransactor, job_id: str, generation: int, terms: Terms) -> Millis:
    """Keep a claim for longer, though not past the time that an attempt may take.

    Returns:
        Until when it holds now.

    Raises:
        LeaseLostError: It is no longer the present claim, or the attempt's time is over.
        NotFoundError: There is no such job.
    """
    rows = tx.run(
        sql.RENEW_JOB,
        id=job_id,
        generation=generation,
        now=tx.now_ms,
        until=tx.now_ms + terms.lease_ms,
    )
    if not rows or rows[0].value is None:
        raise _lost(tx, job_id)
    return Millis(rows[0].value)


def finish(tx: RuntimeTransactor, job_id: str, generation: int, result: Json = None) -> None:
    """Mark a job done; in the transaction of its effect, where that is in this store.

    Raises:
        LeaseLostError: It is no longer the present claim: nothing of this may be committed.
        NotFoundError: There is no such job.
    """
    text = None if result is None else json.dumps(result)
    rows = tx.run(sql.FINISH_JOB, id=job_id, generation=generation, result=text, now=tx.now_ms)
    if not rows:
        raise _lost(tx, job_id)


def fail(  # noqa: PLR0913, PLR0917 - which claim, why, on what terms
    tx: RuntimeTransactor,
    job_id: str,
    generation: int,
    error: str,
    terms: Terms,
    random: Callable[[], float],
    *,
    is_permanent: bool = False,
) -> str:
    """Mark an attempt failed: the job runs again later, or is dead.

    Args:
        tx: In its store.
        job_id: Which.
        generation: Of the claim.
        error: A code, or the worker's own words.
        terms: How often, and how late.
        random: From 0 to 1, for the jitter.
        is_permanent: Whether another attempt would be in vain.

    Returns:
        What the job is now: `pending` or `dead`.

    Raises:
        LeaseLostError: It is no longer the present claim.
        NotFoundError: There is no such job.
    """
    row = tx.one(sql.FIND_JOB, id=job_id)
    attempts = 1 if row is None else row.attempts
    rows = tx.run(
        sql.FAIL_JOB,
        id=job_id,
        generation=generation,
        error=error,
        is_permanent=is_permanent,
        attempts_max=terms.attempts_max,
        run_at=tx.now_ms + backoff_ms(attempts, terms, random),
        now=tx.now_ms,
    )
    if not rows:
        raise _lost(tx, job_id)
    return rows[0].value


def backoff_ms(attempts: int, terms: Terms, random: Callable[[], float]) -> int:
    """How long to wait after so many attempts: up to 2, 4, 8 ... seconds, with full jitter.

    So what failed together does not come back together
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).

    Returns:
        Milliseconds.
    """
    whole = min(_BACKOFF_FIRST_S ** min(attempts, 32) * 1000, terms.backoff_max_ms)
    return int(whole * random())


def release(tx: RuntimeTransactor, job_id: str, generation: int) -> None:
    """Give a claim back as if it had never been taken; the attempt is not charged.

    Raises:
        LeaseLostError: It is no longer the present claim.
        NotFoundError: There is no such job.
    """
    if not tx.run(sql.RELEASE_JOB, id=job_id, generation=generation, now=tx.now_ms):
        raise _lost(tx, job_id)


def expire(tx: RuntimeTransactor, terms: Terms) -> list[ExpiredJobRow]:
    """End claims whose holder was silent for too long; each attempt counts.

    Returns:
        What became of each, at most EXPIRE_MAX of them.
    """
    first = due.next_due(tx).lease_until
    if first is None or first > tx.now_ms:
        return []
    return tx.run(sql.EXPIRE_JOBS, attempts_max=terms.attempts_max, now=tx.now_ms, limit=EXPIRE_MAX)


def cancel(tx: RuntimeTransactor, job_id: str, generation: int | None = None) -> None:
    """End a job for good; whoever runs it loses the claim.

    Args:
        tx: In its store.
        job_id: Which.
        generation: Only if this is the last claim's; None for whatever it is.

    Raises:
        JobOverError: It is over already.
        LeaseLostError: There was another claim since.
        NotFoundError: There is no such job.
    """
    if tx.run(sql.CANCEL_JOB, id=job_id, generation=generation, now=tx.now_ms):
        return
    if get(tx, job_id).finished_at is not None:
        raise JobOverError
    raise LeaseLostError


def retry(tx: RuntimeTransactor, job_id: str) -> None:
    """Have a job run from the start, and now.

    Raises:
        ConflictError: Somebody runs it, or a live one has its dedupe key.
        JobOverError: It was done.
        NotFoundError: There is no such job.
    """
    job = get(tx, job_id)
    if job.status == "done":
        raise JobOverError
    if job.dedupe_key is not None:
        live = tx.one(sql.FIND_LIVE_JOB, is_outside=job.is_outside, dedupe_key=job.dedupe_key)
        if live is not None and live.value != job_id:
            raise ConflictError
    if not tx.run(sql.RETRY_JOB, id=job_id, now=tx.now_ms):
        raise ConflictError


def remove(tx: RuntimeTransactor, job_id: str) -> None:
    """Take one that is over away.

    Raises:
        ConflictError: It is not over.
        NotFoundError: There is no such job.
    """
    get(tx, job_id)
    if not tx.run(sql.REMOVE_JOB, id=job_id):
        raise ConflictError


def purge(tx: RuntimeTransactor, done_before: Millis, dead_before: Millis, limit: int) -> int:
    """Take away jobs that have been over for long enough.

    Args:
        tx: In their store.
        done_before: Those done or cancelled before then.
        dead_before: Those dead since before then.
        limit: How many at most.

    Returns:
        How many.
    """
    rows = tx.run(
        sql.REMOVE_FINISHED_JOBS, done_before=done_before, dead_before=dead_before, limit=limit
    )
    return len(rows)


def find(reader: RuntimeReader, job_id: str) -> Job | None:
    """One job; None when there is none of this id."""
    return reader.one(sql.FIND_JOB, id=job_id) if is_uuid(job_id) else None


def get(reader: RuntimeReader, job_id: str) -> Job:
    """One job's row.

    Returns:
        It.

    Raises:
        NotFoundError: There is none of this id.
    """
    job = find(reader, job_id)
    if job is None:
        raise NotFoundError
    return job


def list_page(  # noqa: PLR0913 - each is a filter
    reader: RuntimeReader,
    *,
    before: str | None,
    limit: int,
    status: str | None = None,
    kind: str | None = None,
    is_outside: bool = False,
) -> list[JobSummary]:
    """Jobs before an id, None for the newest; newest first, without payloads.

    Args:
        reader: In their store.
        before: As said.
        limit: How many at most.
        status: Only those; None for any.
        kind: Only those; None for any.
        is_outside: Only those of programs outside.

    Returns:
        Them.
    """
    return reader.all(
        sql.LIST_JOBS,
        before=before or _END,
        limit=limit,
        status=status,
        kind=kind,
        is_outside=is_outside,
    )


def _lost(reader: RuntimeReader, job_id: str) -> Exception:
    return NotFoundError() if find(reader, job_id) is None else LeaseLostError()
