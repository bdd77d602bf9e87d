"""A member's file deleted or exchanged while their store is unlocked, as the bridge tells it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.bridge.callers import Caller
from app.bridge.strongroom import Strongroom
from app.errors.stores import StoreDamagedError, StoreMissingError, StoreSwappedError
from tests.support.rig import Rig, add, enter, read_note, write_note


def _instead(path: Path, other: Path) -> None:
    """Put a copy of another file in a file's place, with nothing beside it."""
    new = Path(shutil.copy(other, path.with_name("copy")))
    new.replace(path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


async def _two(room: Strongroom, *, encrypted: bool) -> tuple[Caller, Caller]:
    for name in ("ana", "ben"):
        await add(room, name, encrypted=encrypted)
    ana, ben = await enter(room, "ana"), await enter(room, "ben")
    await write_note(room, ana)
    await write_note(room, ben, "of ben")
    for caller in (ana, ben):
        store = room.stores.find(caller.user_id, caller.account.generation)
        assert store is not None
        await store.checkpoint()
    return ana, ben


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "plain"])
@pytest.mark.parametrize("work", [write_note, read_note], ids=["write", "read"])
def test_a_file_that_is_gone_is_told_until_it_is_back(
    rig: Rig, work: Callable[..., object], *, encrypted: bool
) -> None:
    """No restart is needed, and nothing that was acknowledged is missing."""

    async def run(room: Strongroom) -> str:
        ana, _ = await _two(room, encrypted=encrypted)
        path = rig.settings.user_file(ana.user_id)
        away = path.rename(path.with_name("away"))
        for _ in range(2):
            with pytest.raises(StoreMissingError):
                await work(room, ana)  # type: ignore[misc]
        _instead(away, away)
        away.rename(path)
        await write_note(room, ana, "kept on")
        return await read_note(room, ana)

    assert rig.run(run) == "kept on"


@pytest.mark.parametrize("kept", [0, 0.5], ids=["to nothing", "in half"])
def test_a_file_that_was_cut_takes_no_more_writes(rig: Rig, kept: float) -> None:
    """None is acknowledged that no restart would find; whole again, it goes on."""

    async def run(room: Strongroom) -> str:
        ana, _ = await _two(room, encrypted=True)
        path = rig.settings.user_file(ana.user_id)
        content = path.read_bytes()
        with path.open("r+b") as file:
            file.truncate(int(len(content) * kept) // 4096 * 4096)
        for work in (write_note, read_note, write_note):
            with pytest.raises(StoreDamagedError):
                await work(room, ana)
        path.write_bytes(content)
        await write_note(room, ana, "kept on")
        return await read_note(room, ana)

    assert rig.run(run) == "kept on"


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "plain"])
def test_anothers_file_in_its_place_is_never_served(rig: Rig, *, encrypted: bool) -> None:
    """Neither to handles that were open nor to new ones; a plain one is told by its identity."""

    async def run(room: Strongroom) -> None:
        ana, ben = await _two(room, encrypted=encrypted)
        path, other = (rig.settings.user_file(caller.user_id) for caller in (ana, ben))
        kept = Path(shutil.copy(path, path.with_name("kept")))
        _instead(path, other)
        for work in (write_note, read_note, write_note):
            with pytest.raises(StoreSwappedError):
                await work(room, ana)
        _instead(path, kept)
        assert await read_note(room, ana) == "kept"
        assert await read_note(room, ben) == "of ben"

    rig.run(run)
