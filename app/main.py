"""The composition root: wires the service together, and nothing else."""

import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.types import ASGIApp

from app import metrics, telemetry
from app.bridge import start
from app.bridge.notifications.subscribers import SUBSCRIBERS, Subscribers
from app.bridge.strongroom import Reach, reach_nothing
from app.clock import Clock, system_clock
from app.crypto.kdf import KdfParams
from app.settings import Settings
from app.web import errors, mcp
from app.web.envelope import Envelope
from app.web.hot import HotPath
from app.web.owner import (
    approvals,
    archives,
    blobs,
    contexts,
    file_versions,
    file_writes,
    files,
    reports,
    search,
    tools,
)
from app.web.registry import (
    admin,
    flags,
    fleet,
    joining,
    me,
    operations,
    projects,
    session,
    shared_folders,
)
from app.web.registry import approvals as admin_approvals
from app.web.registry import deliveries as admin_deliveries
from app.web.registry import jobs as admin_jobs
from app.web.runtime import audit, events, health, jobs, schedules, webhooks
from app.web.runtime import metrics as exposition
from app.web.wire import ENDING
from app.worker.handlers import OWN, Handlers
from app.worker.loops import run_loops

ROUTERS = (
    files.router,
    file_writes.router,
    search.router,
    tools.router,
    mcp.router,
    contexts.router,
    archives.router,
    file_versions.router,
    session.router,
    reports.router,
    me.router,
    admin.router,
    joining.router,
    blobs.router,
    events.router,
    audit.router,
    jobs.router,
    admin_jobs.router,
    webhooks.router,
    admin_deliveries.router,
    fleet.router,
    schedules.router,
    schedules.admin_router,
    flags.router,
    shared_folders.router,
    projects.router,
    approvals.router,
    admin_approvals.router,
    exposition.router,
    operations.router,
    health.router,
)
"""In the order of their traffic: each route ahead of the one that answers costs time."""


def create_app(  # noqa: PLR0913 - each is one seam
    settings: Settings,
    *,
    clock: Clock = system_clock,
    kdf_params: KdfParams | None = None,
    reach: Reach = reach_nothing,
    handlers: Handlers = OWN,
    subscribers: Subscribers = SUBSCRIBERS,
) -> ASGIApp:
    """Wire one worker's application; its lifespan opens and closes the stores.

    Args:
        settings: Of the whole server.
        clock: The time; tests move it.
        kdf_params: The cost of new passwords; None takes the root's own.
        reach: Told each named point of an operation; tests kill the process there.
        handlers: What the program's own jobs do; tests bring their own.
        subscribers: Parts of the program that are told of events; tests bring their own.

    Returns:
        The application.
    """
    hot = HotPath()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, object]]:
        if settings.has_metrics:
            metrics.begin(settings.metrics_folder)
        try:
            async with (
                start.running(settings, clock, kdf_params=kdf_params, reach=reach) as room,
                run_loops(room, handlers, subscribers),
            ):
                app.state.room = hot.room = room
                yield {ENDING: room.ending}
        except BaseException as error:
            telemetry.unexpected("lifespan", error)
            raise

    app = FastAPI(
        title="Strongroom",
        version="0.1.0",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # Its spans would carry queries, and with them private paths, to wherever a library
        # sends them; to look for one at each request costs a tenth of the fastest answer.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    for router in ROUTERS:
        app.include_router(router)
    errors.install(app)
    return Envelope(
        app,
        hot,
        json_bytes_max=settings.json_bytes_max,
        body_limits={
            **files.body_limits(settings),
            **archives.body_limits(settings),
            **tools.body_limits(settings),
            **mcp.body_limits(settings),
        },
        limits_below=blobs.limits_below(settings),
        host=urlsplit(settings.public_url).netloc if settings.public_url else None,
    )
