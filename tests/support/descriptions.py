"""The service's description in OpenAPI, as it serves it."""

from typing import Any, Final

from fastapi import FastAPI

from app import main
from app.settings import Settings
from app.web.descriptions import describe


def _description() -> dict[str, Any]:
    app = FastAPI(title="Strongroom", version="0")
    for router in main.ROUTERS:
        app.include_router(router)
    return describe(app, Settings())


DESCRIPTION: Final = _description()
