"""The running service without HTTP, on a root of its own; several on one root are its processes."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from app.bridge import commands, start
from app.bridge.callers import Call
from app.bridge.strongroom import Strongroom
from app.crypto.kdf import KdfParams
from app.settings import Settings

CHEAP: Final = KdfParams(memory_kib=64, time_cost=1)
PASSWORD: Final = "a fine long password"
CALL: Final = Call("test", "192.0.2.0/24")


def prepared(root: Path, **chosen: float | str | None) -> Settings:
    """Make a root ready; any setting may be chosen by name."""
    settings = Settings.model_validate({"root": root, **chosen})
    start.prepare(settings, kdf_params=CHEAP)
    return settings


@contextlib.asynccontextmanager
async def open_room(settings: Settings) -> AsyncIterator[Strongroom]:
    """One process's whole service, on a root that is prepared."""
    async with start.running(settings, kdf_params=CHEAP) as room:
        yield room


async def add(
    room: Strongroom, username: str, role_id: str = "member", *, encrypted: bool = True
) -> str:
    """Make a member with the PASSWORD; their id."""
    answer = await commands.perform(
        room,
        "user.add",
        {
            "username": username,
            "password": PASSWORD,
            "role_id": role_id,
            "encrypted": encrypted,
        },
    )
    user = answer["user"]
    assert isinstance(user, dict)
    return str(user["id"])
