"""Whether the service lives and is ready; the description of its calls."""

import html
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

from app.bridge import readiness
from app.web.descriptions import describe
from app.web.routes import StrictRoute, VisitDep, room_of

router = APIRouter(route_class=StrictRoute)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Alive: the loop answers."""
    return {"status": "alive"}


@router.get("/readyz")
async def readyz(visit: VisitDep) -> JSONResponse:
    """Ready: the registry can be read and the disk can be written."""
    unmet = await readiness.find_unmet(visit.room)
    status = 503 if unmet else 200
    return JSONResponse(
        {"status": "not ready" if unmet else "ready", "unmet": unmet}, status_code=status
    )


@router.get("/api/openapi.json")
async def openapi(request: Request) -> dict[str, Any]:
    """The description of every call, for programs."""
    return describe(request.app, room_of(request).settings)


@router.get("/api/docs")
async def docs(request: Request) -> HTMLResponse:
    """The same for people: one plain page from this box, without a script."""
    rows = []
    for path, item in describe(request.app, room_of(request).settings)["paths"].items():
        for method, call in item.items():
            words = html.escape(call.get("description", call.get("summary", "")))
            rows.append(
                f"<tr><td><code>{method.upper()}</code></td>"
                f"<td><code>{html.escape(path)}</code></td><td>{words}</td></tr>"
            )
    return HTMLResponse(_PAGE.format(rows="\n".join(rows)))


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Strongroom</title>
<style>body{{font:1rem/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}}
td{{padding:.3rem .8rem;vertical-align:top;border-top:1px solid #ddd}}</style></head>
<body><h1>Strongroom</h1>
<p>The whole description, for programs: <a href="/api/openapi.json">/api/openapi.json</a></p>
<table>{rows}</table></body></html>
"""
