"""Jobs of programs outside: enqueued, claimed and settled, in one's own store or the group's."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from app import metrics
from app.bridge import flags
from app.bridge.access import authenticate, with_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.bell import heard
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.inputs import InvalidInputError, PayloadTooLargeError
from app.registry import roles
from app.runtime import due, jobs
from app.runtime.jobs import Claim, Job, JobSummary, Json, Terms
from app.settings import Settings

T = TypeVar("T")
Home = Literal["own", "group"]
_LOOK_S: Final = 1.0
"""Seconds after which one who waits looks again though no bell rang: for other processes."""
_PAUSE_S: Final = 0.01
"""So that a job which others always take first makes no busy loop."""
_RANDOM: Final = secrets.SystemRandom().random


def terms_of(settings: Settings) -> Terms:
    """The figures of claims."""
    return Terms(
        lease_ms=settings.job_lease_s * 1000,
        attempts_max=settings.job_attempts,
        backoff_max_ms=settings.job_backoff_max_s * 1000,
    )


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that a program asks for; as `jobs.enqueue` takes it."""

    kind: str
    payload: Json
    dedupe_key: str | None = None
    run_at: Millis | None = None
    max_attempts: int | None = None
    timeout_s: int | None = None
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """A job in a home, and the claim by which somebody speaks of it."""

    home: Home
    job_id: str
    generation: int | None


def _require_home(caller: Caller, home: Home) -> None:
    if home == "group" and caller.role_id != roles.ADMIN:
        raise NotPermittedError


async def _within(
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    work: Callable[[OwnerStore], Awaitable[T]],
) -> T:
    """Work in one home.

    Returns:
        What the work returned.

    Raises:
        NotPermittedError: The group's jobs are for administrators.
    """
    _require_home(caller, home)
    if home == "group":
        return await work(room.stores.group)
    return await with_own(room, caller, call, work)


async def _write(
    room: Strongroom, caller: Caller, call: Call, home: Home, work: Callable[[OwnerTransactor], T]
) -> T:
    actor = caller.actor(call)
    return await _within(
        room, caller, call, home, lambda store: store.write(work, actor, once=call.once)
    )


def _require_size(room: Strongroom, value: Json) -> None:
    if len(json.dumps(value).encode()) > room.settings.job_bytes_max:
        raise PayloadTooLargeError


async def add(
    room: Strongroom, caller: Caller, call: Call, home: Home, new: NewJob
) -> tuple[Job, bool]:
    """Enqueue a job for programs outside.

    Returns:
        It, and whether it is new; else it is the live one with its dedupe key.

    Raises:
        InvalidInputError: Its kind is one of the program's own.
        PayloadTooLargeError: Its payload is.
    """
    if new.kind.startswith(jobs.PREFIX):
        raise InvalidInputError
    _require_size(room, new.payload)

    def enqueue(tx: OwnerTransactor) -> tuple[Job, bool]:
        job_id, is_new = jobs.enqueue(
            tx,
            new.kind,
            new.payload,
            is_outside=True,
            dedupe_key=new.dedupe_key,
            run_at=new.run_at,
            max_attempts=new.max_attempts,
            timeout_s=new.timeout_s,
            priority=new.priority,
        )
        return jobs.get(tx, job_id), is_new

    made = await _write(room, caller, call, home, enqueue)
    room.reach("job.enqueued")
    return made


class Waiting:
    """Somebody who waits for a job, and may cease to."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        """Set when there may be a job, and when the waiting is over."""
        self.is_over = False
        """Whether nobody waits any more: the client went away, or the service ends."""

    def end(self) -> None:
        """Nobody waits any more."""
        self.is_over = True
        self.news.set()


async def claim(  # noqa: PLR0913, PLR0917 - who, where, which, and for how long
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    kinds: list[str],
    wait_s: float,
    waiting: Waiting,
) -> Claim | None:
    """Take a job that is due, or wait for one.

    Args:
        room: The service.
        caller: Whose program.
        call: The request.
        home: Where.
        kinds: Which; none of the program's own is ever found.
        wait_s: How long to wait for one.
        waiting: Ends the wait before.

    Returns:
        The job; None when there was none in time, or nobody waits for it.

    Raises:
        InvalidInputError: That is too long.
    """
    if wait_s > room.settings.job_wait_s:
        raise InvalidInputError
    now = asyncio.get_running_loop().time
    until = now() + wait_s

    async def look(store: OwnerStore) -> Claim | None:
        with store.bell.calling(waiting.news.set):
            while not waiting.is_over:
                due_at = await store.watch(lambda reader: due.next_outside(reader, kinds))
                due_s = _LOOK_S if due_at is None else (due_at - room.clock()) / 1000
                if due_s <= 0 and not await flags.is_on(room, "jobs_outside"):
                    due_s = _LOOK_S
                if due_s <= 0 and (found := await _take(room, caller, call, store, kinds)):
                    return found
                if (left_s := until - now()) <= 0:
                    return None
                await heard(waiting.news, min(left_s, _LOOK_S, max(due_s, _PAUSE_S)))
                # Revoked means now: whoever waited is judged again before anything is theirs.
                _require_home(await authenticate(room, caller.token), home)
        return None

    found = await _within(room, caller, call, home, look)
    if found is not None and waiting.is_over:
        await give_up(room, caller, call, home, found)
        return None
    return found


async def _take(
    room: Strongroom, caller: Caller, call: Call, store: OwnerStore, kinds: list[str]
) -> Claim | None:
    terms = terms_of(room.settings)
    found = await store.write(
        lambda tx: jobs.claim_outside(tx, kinds, caller.author, terms), caller.actor(call)
    )
    if found is not None:
        room.reach("job.claimed")
    return found


async def give_up(room: Strongroom, caller: Caller, call: Call, home: Home, taken: Claim) -> None:
    """Give a claim back that reached nobody; the attempt is not charged."""
    await _write(room, caller, call, home, lambda tx: jobs.release(tx, taken.id, taken.generation))


def _outside(reader: OwnerReader, job_id: str) -> Job:
    """A job of programs outside; the program's own are none of theirs.

    Returns:
        It.

    Raises:
        NotFoundError: There is none.
    """
    job = jobs.get(reader, job_id)
    if not job.is_outside:
        raise NotFoundError
    return job


async def _settle(
    room: Strongroom,
    caller: Caller,
    call: Call,
    held: Held,
    work: Callable[[OwnerTransactor], object],
) -> Job:
    def act(tx: OwnerTransactor) -> Job:
        _outside(tx, held.job_id)
        work(tx)
        return jobs.get(tx, held.job_id)

    call = call.judged(lambda reader: _outside(reader, held.job_id))
    return await _write(room, caller, call, held.home, act)


async def heartbeat(room: Strongroom, caller: Caller, call: Call, held: Held) -> Job:
    """Keep a claim for longer.

    Returns:
        The job.

    Raises:
        LeaseLostError: It is not the present claim.
        NotFoundError: There is no such job.
    """
    terms, generation = terms_of(room.settings), held.generation or 0
    return await _settle(
        room, caller, call, held, lambda tx: jobs.renew(tx, held.job_id, generation, terms)
    )


async def complete(room: Strongroom, caller: Caller, call: Call, held: Held, result: Json) -> Job:
    """Mark a job done.

    Returns:
        It.

    Raises:
        LeaseLostError: It is not the present claim.
        NotFoundError: There is no such job.
        PayloadTooLargeError: The result is.
    """
    _require_size(room, result)
    generation = held.generation or 0
    job = await _settle(
        room, caller, call, held, lambda tx: jobs.finish(tx, held.job_id, generation, result)
    )
    room.reach("job.marked")
    metrics.job_ended(metrics.OUTSIDE, "done")
    return job


async def fail(  # noqa: PLR0913 - who, which claim, and why
    room: Strongroom, caller: Caller, call: Call, held: Held, error: str, *, is_permanent: bool
) -> Job:
    """Mark an attempt failed.

    Returns:
        The job.

    Raises:
        LeaseLostError: It is not the present claim.
        NotFoundError: There is no such job.
    """
    terms, generation = terms_of(room.settings), held.generation or 0
    job = await _settle(
        room,
        caller,
        call,
        held,
        lambda tx: jobs.fail(
            tx, held.job_id, generation, error, terms, _RANDOM, is_permanent=is_permanent
        ),
    )
    metrics.job_ended(metrics.OUTSIDE, "dead" if job.status == "dead" else "failed")
    return job


async def cancel(room: Strongroom, caller: Caller, call: Call, held: Held) -> Job:
    """End a job for good, whoever runs it.

    Returns:
        It.

    Raises:
        JobOverError: It is over already.
        LeaseLostError: There was another claim since the one that is named.
        NotFoundError: There is no such job.
    """
    return await _settle(
        room, caller, call, held, lambda tx: jobs.cancel(tx, held.job_id, held.generation)
    )


async def get(room: Strongroom, caller: Caller, call: Call, home: Home, job_id: str) -> Job:
    """One job of programs outside."""
    return await _within(
        room, caller, call, home, lambda store: store.read(lambda r: _outside(r, job_id))
    )


async def list_page(  # noqa: PLR0913, PLR0917 - who, where, and which page
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    before: str | None,
    limit: int,
    status: str | None,
    kind: str | None,
) -> list[JobSummary]:
    """Jobs of programs outside, newest first."""

    def read(reader: OwnerReader) -> list[JobSummary]:
        return jobs.list_page(
            reader, before=before, limit=limit, status=status, kind=kind, is_outside=True
        )

    return await _within(room, caller, call, home, lambda store: store.read(read))
