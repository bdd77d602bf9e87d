"""`strongroom operations`: what waits for a person, and their decision."""

import asyncio

from app.db.registry.store import RegistryTransactor
from app.runtime import steps
from app.runtime.steps import Run
from tests.support.rig import ACTOR
from tests.support.rooms import open_room
from tests.unit.cli.conftest import Terminal


async def _diverge(terminal: Terminal, key: str) -> None:
    def write(tx: RegistryTransactor) -> None:
        steps.begin(tx, Run(key), "erase", "somebody", ("older",))
        steps.take_over(tx, key, (), {})

    async with open_room(terminal.settings) as room:
        await room.stores.registry.write(write, ACTOR)


def test_what_waits_for_a_person_is_shown_and_released(terminal: Terminal) -> None:
    """Once; then the next start has finished it, for there is nobody to erase."""
    assert terminal.answer("init")
    assert terminal.answer("operations", "list") == {"operations": []}
    asyncio.run(_diverge(terminal, "k"))
    assert "waits for a person" in terminal.run("operations", "list").stdout
    released = terminal.run("operations", "release", "k")
    assert released.exit_code == 0, released.output
    assert released.stdout.startswith("k erase of somebody since ")
    assert terminal.answer("init")
    assert terminal.answer("operations", "list") == {"operations": []}
    asyncio.run(_diverge(terminal, "l"))
    assert terminal.answer("operations", "release", "l")["operation"]["diverged"] is False
    refused = terminal.run("operations", "release", "nobody")
    assert refused.exit_code == 3
