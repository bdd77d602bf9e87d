"""Schedules: a member's at `/api/schedules`, the group's at `/api/admin/schedules`.

A schedule is due by cron (five fields, in an IANA time zone) or every so many seconds. Each
time it makes a job of its kind, whose payload has `schedule_id`, `due_at` and, where it has
them, `prompt`, `agent_id` and `session_id`; programs outside claim it by `/api/jobs/claim`.
Whatever a worker's result has as `final_response` is told with the run.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery

from app.bridge.work import schedules as bridge
from app.bridge.work.schedules import Home
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.runtime.schedule_shapes import ScheduleBody, SchedulePatch, past, schedule
from app.web.shapes import PageQuery

router = APIRouter(route_class=StrictRoute, prefix="/api/schedules")
admin_router = APIRouter(route_class=StrictRoute, prefix="/api/admin/schedules")


async def _list(ask: Ask, home: Home, query: PageQuery) -> dict[str, Any]:
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await bridge.read(
        ask.room,
        ask.caller,
        ask.call,
        home,
        lambda reader: bridge.list_page(reader, after, query.limit + 1),
    )
    return cursors.page_of(rows, query.limit, schedule, lambda row: cursors.encode(row.schedule.id))


async def _add(ask: Ask, home: Home, body: ScheduleBody) -> Response:
    new = body.new()
    return await ask.once(
        lambda call: bridge.add(ask.room, ask.caller, call, home, new),
        as_json(schedule, 201, lambda row: row.schedule.version),
    )


async def _get(ask: Ask, home: Home, schedule_id: str, response: Response) -> dict[str, Any]:
    found = await bridge.read(
        ask.room, ask.caller, ask.call, home, lambda reader: bridge.get(reader, schedule_id)
    )
    require_match(ask.request, found.schedule.version)
    response.headers["ETag"] = etag(found.schedule.version)
    return schedule(found)


async def _change(ask: Ask, home: Home, schedule_id: str, body: SchedulePatch) -> Response:
    changes, match = body.model_dump(exclude_unset=True), match_of(ask.request)
    return await ask.once(
        lambda call: bridge.change(ask.room, ask.caller, call, home, schedule_id, changes, match),
        as_json(schedule, version_of=lambda row: row.schedule.version),
    )


async def _remove(ask: Ask, home: Home, schedule_id: str) -> Response:
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.remove(ask.room, ask.caller, call, home, schedule_id, match), no_content
    )


async def _list_runs(ask: Ask, home: Home, schedule_id: str, query: PageQuery) -> dict[str, Any]:
    at, by_hand = cursors.numbers_of(query.cursor, 2)
    before = None if at is None or by_hand is None else (at, by_hand)
    rows = await bridge.read(
        ask.room,
        ask.caller,
        ask.call,
        home,
        lambda reader: bridge.list_past(reader, schedule_id, before, query.limit + 1),
    )
    return cursors.page_of(
        rows, query.limit, past, lambda row: cursors.encode(row.run.due_at, row.run.by_hand)
    )


async def _run(ask: Ask, home: Home, schedule_id: str) -> Response:
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.run_now(ask.room, ask.caller, call, home, schedule_id, match),
        as_json(lambda job_id: {"job_id": job_id}, 202),
    )


@router.get("")
async def list_schedules(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """One's own schedules, in the order of their making."""
    return await _list(ask, "own", query)


@router.post("", status_code=201, response_model=OBJECT)
async def add_schedule(body: ScheduleBody, ask: AskDep) -> Response:
    """Make a schedule; it is first due at its next time.

    After down time, and after a time locked, `catch_up` says what becomes of missed ticks:
    `skip` none runs, `once` one for all of them, `all` each, up to a hundred.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _add(ask, "own", body)


@router.get("/{schedule_id}")
async def get_schedule(schedule_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One of them."""
    return await _get(ask, "own", schedule_id, response)


@router.patch("/{schedule_id}", response_model=OBJECT)
async def patch_schedule(schedule_id: str, body: SchedulePatch, ask: AskDep) -> Response:
    """Change it; while its times stay as they are, so does the next one."""
    return await _change(ask, "own", schedule_id, body)


@router.delete("/{schedule_id}", status_code=204)
async def remove_schedule(schedule_id: str, ask: AskDep) -> Response:
    """Take it away, with those of its jobs that nobody runs yet."""
    return await _remove(ask, "own", schedule_id)


@router.get("/{schedule_id}/runs")
async def list_runs(
    schedule_id: str, query: Annotated[PageQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """What became of each of its ticks: a run, or a skip with its reason; newest first.

    A row of skips of very long down time may stand for several `ticks`, up to `last_due_at`.
    """  # noqa: DOC201 - the words are OpenAPI's
    return await _list_runs(ask, "own", schedule_id, query)


@router.post("/{schedule_id}/run", status_code=202, response_model=OBJECT)
async def run_schedule(schedule_id: str, ask: AskDep) -> Response:
    """Run it now, be it disabled; its times stay as they are."""
    return await _run(ask, "own", schedule_id)


@admin_router.get("")
async def list_group_schedules(
    query: Annotated[PageQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """The group's schedules, in the order of their making."""
    return await _list(ask, "group", query)


@admin_router.post("", status_code=201, response_model=OBJECT)
async def add_group_schedule(body: ScheduleBody, ask: AskDep) -> Response:
    """Make a schedule of the group; workers of the group claim its jobs."""
    return await _add(ask, "group", body)


@admin_router.get("/{schedule_id}")
async def get_group_schedule(schedule_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One of them."""
    return await _get(ask, "group", schedule_id, response)


@admin_router.patch("/{schedule_id}", response_model=OBJECT)
async def patch_group_schedule(schedule_id: str, body: SchedulePatch, ask: AskDep) -> Response:
    """Change it, enable or disable it; that is recorded."""
    return await _change(ask, "group", schedule_id, body)


@admin_router.delete("/{schedule_id}", status_code=204)
async def remove_group_schedule(schedule_id: str, ask: AskDep) -> Response:
    """Take it away; that is recorded."""
    return await _remove(ask, "group", schedule_id)


@admin_router.get("/{schedule_id}/runs")
async def list_group_runs(
    schedule_id: str, query: Annotated[PageQuery, FromQuery()], ask: AskDep
) -> dict[str, Any]:
    """What became of each of its ticks, newest first."""
    return await _list_runs(ask, "group", schedule_id, query)


@admin_router.post("/{schedule_id}/run", status_code=202, response_model=OBJECT)
async def run_group_schedule(schedule_id: str, ask: AskDep) -> Response:
    """Run it now; that is recorded."""
    return await _run(ask, "group", schedule_id)
