"""The operators' view of the group's jobs: `/api/admin/jobs`. Never what a job carries."""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery

from app.bridge.work import job_acts as bridge
from app.bridge.work.job_acts import Act
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import AskDep, StrictRoute
from app.web.runtime.jobs import Status, summary, version_of
from app.web.shapes import Name, PageQuery

router = APIRouter(route_class=StrictRoute, prefix="/api/admin/jobs")


class JobsQuery(PageQuery):
    """Which jobs."""

    status: Status | None = None
    kind: Name | None = None


def _item(row: Any) -> dict[str, Any]:  # noqa: ANN401 - with or without its payload
    return {**summary(row), "is_outside": bool(row.is_outside)}


_render = as_json(_item, version_of=version_of)


@router.get("")
async def list_jobs(query: Annotated[JobsQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """The group's jobs, the program's own and those of programs outside, newest first."""
    [before] = cursors.ids_of(query.cursor, 1)
    rows = await bridge.list_page(
        ask.room.stores.group, before or None, query.limit + 1, query.status, query.kind
    )
    return cursors.page_of(rows, query.limit, _item, lambda row: cursors.encode(row.id))


@router.get("/{job_id}")
async def get_job(job_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One of them."""
    row = await bridge.get(ask.room.stores.group, job_id)
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return _item(row)


async def _act(ask: AskDep, name: Act, job_id: str) -> Response:
    render = no_content if name == "purge" else _render
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.act_of(ask.room, ask.caller, call, name, job_id, match), render
    )


@router.post("/{job_id}/retry", response_model=OBJECT)
async def retry_job(job_id: str, ask: AskDep) -> Response:
    """Have a job run from the start, and now: a dead or cancelled one, or one that waits."""
    return await _act(ask, "retry", job_id)


@router.post("/{job_id}/cancel", response_model=OBJECT)
async def cancel_job(job_id: str, ask: AskDep) -> Response:
    """End a job for good; whoever runs it writes nothing any more."""
    return await _act(ask, "cancel", job_id)


@router.delete("/{job_id}", status_code=204)
async def purge_job(job_id: str, ask: AskDep) -> Response:
    """Take a job that is over away."""
    return await _act(ask, "purge", job_id)
