"""Jobs of programs outside: `/api/jobs`."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi import Query as FromQuery
from pydantic import Field, JsonValue

from app.bridge.work import claims
from app.bridge.work import jobs as bridge
from app.bridge.work.claims import Waiting
from app.bridge.work.jobs import Held, Home, NewJob
from app.clock import Millis
from app.runtime.jobs import Claim, Job, JobSummary
from app.web import cursors
from app.web.answers import OBJECT, as_json
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.shapes import Body, Line, Name, PageQuery, Query, Time, time_or_none

router = APIRouter(route_class=StrictRoute)

_DAY_S = 86_400
_ATTEMPTS_MAX = 1_000
_PRIORITY_MAX = 100
_KINDS_MAX = 100
_WAIT_MAX_S = 3_600

Status = Literal["pending", "running", "done", "dead", "cancelled"]
Generation = Annotated[int, Field(ge=0, lt=1 << 62)]


class JobBody(Body):
    """A job to be done by a program outside."""

    kind: Name
    payload: JsonValue
    dedupe_key: Name | None = None
    run_at: Time | None = None
    max_attempts: Annotated[int, Field(ge=1, le=_ATTEMPTS_MAX)] | None = None
    timeout_s: Annotated[int, Field(ge=1, le=_DAY_S)] | None = None
    priority: Annotated[int, Field(ge=-_PRIORITY_MAX, le=_PRIORITY_MAX)] = 0
    home: Home = "own"


class ClaimBody(Body):
    """Which jobs a program can do, and how long it waits for one."""

    kinds: Annotated[list[Name], Field(min_length=1, max_length=_KINDS_MAX)]
    wait_s: Annotated[float, Field(ge=0, le=_WAIT_MAX_S, allow_inf_nan=False)] = 0
    home: Home = "own"


class HeldBody(Body):
    """The claim by which a program speaks of a job."""

    generation: Generation
    home: Home = "own"


class CompleteBody(HeldBody):
    """What came of it."""

    result: JsonValue = None


class FailBody(HeldBody):
    """What went wrong."""

    error: Annotated[Line, Field(min_length=1)]
    permanent: bool = False


class CancelBody(Body):
    """Which claim is meant; without one, whatever it is."""

    generation: Generation | None = None
    home: Home = "own"


class HomeQuery(Query):
    """Where."""

    home: Home = "own"


class JobsQuery(PageQuery):
    """Which jobs."""

    home: Home = "own"
    status: Status | None = None
    kind: Name | None = None


def summary(row: JobSummary | Job) -> dict[str, Any]:
    """A job without what it carries; times in RFC 3339."""
    return {
        "id": row.id,
        "kind": row.kind,
        "status": row.status,
        "dedupe_key": row.dedupe_key,
        "priority": row.priority,
        "run_at": time_or_none(row.run_at),
        "attempts": row.attempts,
        "max_attempts": row.max_attempts,
        "timeout_s": row.timeout_s,
        "lease_until": time_or_none(row.lease_until),
        "generation": row.generation,
        "last_error": row.last_error,
        "made_by": row.made_by,
        "schedule_id": row.schedule_id,
        "created_at": time_or_none(row.created_at),
        "updated_at": time_or_none(row.updated_at),
        "finished_at": time_or_none(row.finished_at),
        "version": row.version,
    }


def _whole(row: Job) -> dict[str, Any]:
    result = None if row.result is None else json.loads(row.result)
    return {**summary(row), "payload": json.loads(row.payload), "result": result}


def _claim(found: Claim | None) -> dict[str, Any]:
    if found is None:
        return {"job": None}
    return {
        "job": {
            "id": found.id,
            "kind": found.kind,
            "payload": json.loads(found.payload),
            "generation": found.generation,
            "attempts": found.attempts,
            "timeout_s": found.timeout_s,
            "lease_until": time_or_none(found.lease_until),
        }
    }


def _made(made: tuple[Job, bool]) -> Response:
    row, is_new = made
    return as_json(_whole, 201 if is_new else 200, version_of)(row)


def version_of(row: Job) -> int:
    """What its ETag is."""
    return row.version


_render = as_json(_whole, version_of=version_of)


def _held(ask: Ask, job_id: str, body: HeldBody | CancelBody) -> Held:
    return Held(body.home, job_id, body.generation, match_of(ask.request))


@router.post("/api/jobs", status_code=201, response_model=OBJECT)
async def add_job(body: JobBody, ask: AskDep) -> Response:
    """Enqueue a job, for a program outside to claim; kinds that begin with `strongroom.` are not.

    Returns:
        201 with it, or 200 with the pending or running one that has the dedupe key already.
    """
    new = NewJob(
        kind=body.kind,
        payload=body.payload,
        dedupe_key=body.dedupe_key,
        run_at=None if body.run_at is None else Millis(body.run_at),
        max_attempts=body.max_attempts,
        timeout_s=body.timeout_s,
        priority=body.priority,
    )
    return await ask.once(
        lambda call: bridge.add(ask.room, ask.caller, call, body.home, new), _made
    )


@router.post("/api/jobs/claim", response_model=OBJECT)
async def claim_job(body: ClaimBody, ask: AskDep, response: Response) -> dict[str, Any]:
    """Take the next job of these kinds that is due, waiting up to `wait_s` (30) for one.

    It takes no Idempotency-Key: an answer is a lease, which would be over when it is given
    again. A claim that reaches nobody is given back.

    Returns:
        The job and its claim, or `{"job": null}` when there was none in time.
    """
    async with _waiting(ask.request, ask.room.ending) as waiting:
        found = await claims.claim(
            ask.room, ask.caller, ask.call, body.home, body.kinds, body.wait_s, waiting
        )
    if found is not None:
        response.headers["ETag"] = etag(found.version)
    return _claim(found)


@contextlib.asynccontextmanager
async def _waiting(request: Request, ending: asyncio.Event) -> AsyncIterator[Waiting]:
    """Somebody who waits until their client goes away or the service ends."""
    waiting = Waiting()

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        waiting.end()

    async def ended() -> None:
        await ending.wait()
        waiting.end()

    watchers = [asyncio.create_task(gone()), asyncio.create_task(ended())]
    try:
        yield waiting
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)


@router.post("/api/jobs/{job_id}/heartbeat", response_model=OBJECT)
async def keep_job(job_id: str, body: HeldBody, ask: AskDep) -> Response:
    """Keep a claim for longer; 409 `lease_lost` when it is no longer the present one."""
    held = _held(ask, job_id, body)
    return await ask.once(lambda call: bridge.heartbeat(ask.room, ask.caller, call, held), _render)


@router.post("/api/jobs/{job_id}/complete", response_model=OBJECT)
async def complete_job(job_id: str, body: CompleteBody, ask: AskDep) -> Response:
    """Mark a job done, with its result; 409 `lease_lost` for whoever has not the present claim."""
    held = _held(ask, job_id, body)
    return await ask.once(
        lambda call: bridge.complete(ask.room, ask.caller, call, held, body.result), _render
    )


@router.post("/api/jobs/{job_id}/fail", response_model=OBJECT)
async def fail_job(job_id: str, body: FailBody, ask: AskDep) -> Response:
    """Mark an attempt failed: due again later, or dead (after the last try, or `permanent`)."""
    held = _held(ask, job_id, body)
    return await ask.once(
        lambda call: bridge.fail(
            ask.room, ask.caller, call, held, body.error, is_permanent=body.permanent
        ),
        _render,
    )


@router.post("/api/jobs/{job_id}/cancel", response_model=OBJECT)
async def cancel_job(job_id: str, body: CancelBody, ask: AskDep) -> Response:
    """End a pending or running job for good; 409 `job_over` when it is over already."""
    held = _held(ask, job_id, body)
    return await ask.once(lambda call: bridge.cancel(ask.room, ask.caller, call, held), _render)


@router.get("/api/jobs")
async def list_jobs(query: Annotated[JobsQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Jobs of programs outside, newest first, without payloads and results."""
    [before] = cursors.ids_of(query.cursor, 1)
    rows = await bridge.list_page(
        ask.room,
        ask.caller,
        ask.call,
        query.home,
        before or None,
        query.limit + 1,
        query.status,
        query.kind,
    )
    return cursors.page_of(rows, query.limit, summary, lambda row: cursors.encode(row.id))


@router.get("/api/jobs/{job_id}")
async def get_job(
    job_id: str, query: Annotated[HomeQuery, FromQuery()], ask: AskDep, response: Response
) -> dict[str, Any]:
    """One job of programs outside, with payload and result."""
    row = await bridge.get(ask.room, ask.caller, ask.call, query.home, job_id)
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return _whole(row)
