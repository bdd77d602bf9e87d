"""Jobs of programs outside: enqueued, claimed and settled, in one's own store or the group's."""

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from app import metrics
from app.bridge.access import quota_of, with_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.inputs import InvalidInputError, PayloadTooLargeError
from app.registry import roles
from app.runtime import jobs
from app.runtime.jobs import Job, JobSummary, Json, Terms
from app.runtime.versions import Match, require_version
from app.settings import Settings

T = TypeVar("T")
Home = Literal["own", "group"]
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

    @property
    def size_bytes(self) -> int:
        """About what it adds to a store."""
        return len(f"{self.kind}{self.dedupe_key or ''}".encode()) + _size(self.payload)


@dataclass(frozen=True, slots=True)
class Held:
    """A job in a home, and the claim by which somebody speaks of it."""

    home: Home
    job_id: str
    generation: int | None
    match: Match = None
    """The versions of which one must stand."""


def require_home(caller: Caller, home: Home) -> None:
    """Refuse the group's jobs to whoever is no administrator.

    Raises:
        NotPermittedError: It is the group's, and they are none.
    """
    if home == "group" and caller.role_id != roles.ADMIN:
        raise NotPermittedError


async def within(
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
    require_home(caller, home)
    if home == "group":
        return await work(room.stores.group)
    return await with_own(room, caller, call, work)


async def write(  # noqa: PLR0913, PLR0917 - who, where, what, and how much it adds
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    work: Callable[[OwnerTransactor], T],
    adds_bytes: int = 0,
) -> T:
    """Write in one home.

    Returns:
        What the work returned.

    Raises:
        NotPermittedError: The group's jobs are for administrators.
        QuotaExceededError: The home has no room for what it adds; 0 always has.
    """
    actor, quota = caller.actor(call), quota_of(room, caller, is_group=home == "group")

    def held(tx: OwnerTransactor) -> T:
        return quota.hold(tx, work, adds_bytes or None)

    return await within(
        room, caller, call, home, lambda store: store.write(held, actor, once=call.once)
    )


def _size(value: Json) -> int:
    return len(json.dumps(value).encode())


def _require_size(room: Strongroom, value: Json) -> None:
    if _size(value) > room.settings.job_bytes_max:
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
        QuotaExceededError: The home has no room for it.
    """
    if new.kind.startswith(jobs.PREFIX):
        raise InvalidInputError(field="kind")
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

    made = await write(room, caller, call, home, enqueue, new.size_bytes)
    room.reach("job.enqueued")
    return made


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


async def _settle(  # noqa: PLR0913, PLR0917 - who, which claim, what, and how much it adds
    room: Strongroom,
    caller: Caller,
    call: Call,
    held: Held,
    work: Callable[[OwnerTransactor], object],
    adds_bytes: int = 0,
) -> Job:
    def act(tx: OwnerTransactor) -> Job:
        require_version(_outside(tx, held.job_id).version, held.match)
        work(tx)
        return jobs.get(tx, held.job_id)

    call = call.judged(lambda reader: _outside(reader, held.job_id))
    return await write(room, caller, call, held.home, act, adds_bytes)


async def heartbeat(room: Strongroom, caller: Caller, call: Call, held: Held) -> Job:
    """Keep a claim for longer.

    Returns:
        The job.

    Raises:
        LeaseLostError: It is not the present claim.
        NotFoundError: There is no such job.
        VersionConflictError: It stands at another version than was asked for.
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
        QuotaExceededError: The home has no room for the result.
        VersionConflictError: It stands at another version than was asked for.
    """
    _require_size(room, result)
    generation, adds_bytes = held.generation or 0, 0 if result is None else _size(result)
    job = await _settle(
        room,
        caller,
        call,
        held,
        lambda tx: jobs.finish(tx, held.job_id, generation, result),
        adds_bytes,
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
        QuotaExceededError: The home has no room for the error.
        VersionConflictError: It stands at another version than was asked for.
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
        len(error.encode()),
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
        VersionConflictError: It stands at another version than was asked for.
    """
    return await _settle(
        room, caller, call, held, lambda tx: jobs.cancel(tx, held.job_id, held.generation)
    )


async def get(room: Strongroom, caller: Caller, call: Call, home: Home, job_id: str) -> Job:
    """One job of programs outside."""
    return await within(
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

    return await within(room, caller, call, home, lambda store: store.read(read))
