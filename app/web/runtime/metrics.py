"""The service's counts: `/metrics`, for whoever has the operator's token."""

from typing import Annotated

from fastapi import APIRouter, Header, Response

from app.bridge import metering
from app.web.routes import StrictRoute, VisitDep

router = APIRouter(route_class=StrictRoute)

_BEARER = "bearer "
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", response_class=Response)
async def metrics(
    visit: VisitDep, authorization: Annotated[str | None, Header(include_in_schema=False)] = None
) -> Response:
    """Counts in Prometheus' text format, summed over the workers; 404 unless a token is set."""
    scheme, token = (authorization or "")[: len(_BEARER)], (authorization or "")[len(_BEARER) :]
    shown = token.strip() if scheme.lower() == _BEARER else None
    return Response(await metering.read(visit.room, shown), media_type=_TEXT)
