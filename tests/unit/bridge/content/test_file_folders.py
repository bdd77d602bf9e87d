"""Bytes that nobody needs go after the grace time, in an order that no crash can hurt."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from app import telemetry
from app.bridge import commands, layout
from app.bridge.callers import Caller
from app.bridge.content import blobs, file_folders, uploads
from app.bridge.maintenance import half_done, inspection
from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom
from app.db import blobs as disk
from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError
from app.ids import UserId, new_uuid7
from app.owner.blobs import BlobCondition, NewBlob
from app.runtime import operator_actions, steps
from app.runtime.steps import Run
from tests.support.rig import ACTOR, Rig, StopHereError, add, begin_state, enter, member, stop_at
from tests.support.rooms import CALL

DAY_MS: Final = 86_400_000
ONE: Final = "01890000-0000-4000-8000-000000000001"
TWO: Final = "01890000-0000-4000-8000-000000000002"
Told = list[tuple[str, int | str]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What the operator is told, by kind and count, or by event and action."""
    heard: Told = []
    for name in ("janitor_found", "janitor_repaired"):
        monkeypatch.setattr(telemetry, name, lambda kind, count: heard.append((kind, count)))
    for name in ("operation_late", "operation_diverged"):
        monkeypatch.setattr(
            telemetry, name, lambda action, _key, name=name: heard.append((name, action))
        )
    return heard


async def _body(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _put(
    room: Strongroom, caller: Caller, blob_id: str, content: bytes, home: blobs.Home = "own"
) -> None:
    new = NewBlob(blob_id, "text/plain")
    async with uploads.arriving(room, caller, CALL, home, new, _body(content), None) as came:
        await uploads.keep(room, caller, CALL, home, new, came, BlobCondition())


async def _remove(room: Strongroom, caller: Caller, blob_id: str) -> None:
    await blobs.remove(room, caller, CALL, "own", blob_id, BlobCondition())


async def _sweep(room: Strongroom, caller: Caller, limit: int = 500) -> int:
    store = room.stores.unlocked()[caller.user_id].store
    return await file_folders.sweep(room, caller.user_id, store, ACTOR, limit)


def _files(room: Strongroom, owner_id: str) -> set[str]:
    return {each.name for each in disk.list_folder(room.settings.files_folder(UserId(owner_id)))}


def test_bytes_go_after_the_grace_time_and_no_earlier(rig: Rig, told: Told) -> None:
    """And not those that another blob holds."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await _put(room, caller, ONE, b"one")
        await _put(room, caller, TWO, b"two")
        kept = _files(room, caller.user_id)
        await _remove(room, caller, ONE)
        rig.clock.advance(DAY_MS - 1)
        assert await _sweep(room, caller) == 0
        assert _files(room, caller.user_id) == kept
        rig.clock.advance(1)
        assert await _sweep(room, caller, limit=1) == 1
        assert await _sweep(room, caller, limit=1) == 0
        assert len(_files(room, caller.user_id)) == 1
        assert told == []

    rig.run(work)


def test_a_crash_between_the_row_and_its_bytes_leaves_them_removable(rig: Rig, told: Told) -> None:
    """The row is gone; the next sweep finds a file without one."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await _put(room, caller, ONE, b"one")
        await _remove(room, caller, ONE)
        rig.clock.advance(DAY_MS)
        with pytest.raises(StopHereError):
            await _sweep(room, caller)
        assert len(_files(room, caller.user_id)) == 1
        assert await _sweep(room, caller) == 1
        assert _files(room, caller.user_id) == set()
        assert told == [("file_without_row", 1)]

    rig.run(work, reach=stop_at("sweep.rows_removed"))


def test_a_crash_before_the_row_leaves_bytes_for_the_grace_time(rig: Rig, told: Told) -> None:
    """They may be about to have one; nobody else takes them for lost."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        folder = room.settings.files_folder(caller.user_id)
        file = await asyncio.to_thread(_left, folder, rig)
        assert await _sweep(room, caller) == 0
        assert _files(room, caller.user_id) == {file}
        rig.clock.advance(DAY_MS)
        assert await _sweep(room, caller) == 1
        assert told == [("file_without_row", 1)]

    rig.run(work)


def _left(folder: Path, rig: Rig) -> str:
    from app.crypto.keys import Key  # noqa: PLC0415 - here alone

    file = disk.NewFile(folder, Key.generate(), rig.clock)
    file.finish()
    return file.name


def test_a_row_without_its_file_is_told_and_stays(rig: Rig, told: Told) -> None:
    """The operator has a backup, perhaps; the check says so too where it can look."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana", "admin")
        caller = await enter(room)
        await _put(room, caller, ONE, b"one")
        await _put(room, caller, TWO, b"shared", "group")
        for owner_id in (caller.user_id, layout.GROUP):
            [name] = _files(room, owner_id)
            (room.settings.files_folder(owner_id) / name).unlink()
        assert await _sweep(room, caller) == 0
        swept = await file_folders.sweep(room, layout.GROUP, room.stores.group, ACTOR)
        assert swept == 0
        assert told == [("row_without_file", 1)] * 2

    rig.run(work)
    found = inspection.inspect(rig.settings, clock=rig.clock).findings
    assert "1 are missing" in " ".join(each.detail for each in found)


def test_folders_of_nobody_are_told_and_those_left_empty_go(rig: Rig, told: Told) -> None:
    """As a store's file is: it may be all that is left of a member whose registry was lost."""

    async def work(room: Strongroom) -> None:
        nobody, empty = (room.settings.files_folder(UserId(new_uuid7(n))) for n in range(2))
        await asyncio.to_thread(_left, nobody, rig)
        empty.mkdir()
        left = empty / "0.new"
        left.write_bytes(b"half")
        rig.clock.now_ms = int(left.stat().st_mtime * 1000) + DAY_MS + 1000
        await Janitor(room.settings, room.stores).round()
        assert told == [("unfinished_file", 1), ("files_without_member", 1)]
        assert not empty.exists()
        assert nobody.exists()

    rig.run(work)
    found = inspection.inspect(rig.settings, clock=rig.clock).findings
    assert [each.detail for each in found] == ["The files belong to no member."]


async def _begin(room: Strongroom, user_id: str, action: str, shape: tuple[str, ...]) -> str:
    key = new_uuid7(room.clock())
    await begin_state(room, user_id, "erasing")
    await room.stores.registry.write(
        lambda tx: steps.begin(tx, Run(key), action, user_id, shape), ACTOR
    )
    return key


def test_what_diverged_waits_for_a_person_and_is_told(rig: Rig, told: Told) -> None:
    """The janitor leaves it; released, it is finished by the rules of this program."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        key = await _begin(room, made.id, "erase", ("file",))
        janitor = Janitor(room.settings, room.stores)
        for _ in range(2):
            await janitor.settle()
        assert told == [("operation_diverged", "erase")]
        assert (await member(room, made.id)).store_state == "erasing"
        found = inspection.inspect(rig.settings, clock=rig.clock).findings
        assert "waits for a person" in found[0].detail
        listed = await commands.perform(room, "operations.list", {})
        assert listed["operations"] == [half_done.describe((await half_done.list_all(room))[0])]
        released = await commands.perform(room, "operations.release", {"operation": key})
        assert released["operation"] == {**listed["operations"][0]} | {  # type: ignore[dict-item] # JSON
            "diverged": False,
            "steps": ["file", "blobs", "row"],
        }
        acts = await room.stores.registry.read(lambda r: operator_actions.list_of(r, key, 9))
        assert [act.action for act in acts] == ["operation.release"]
        await janitor.settle()
        with pytest.raises(NotFoundError):
            await member(room, made.id)
        with pytest.raises(NotFoundError):
            await half_done.release(room, key, ACTOR, "box")

    rig.run(work)


def test_an_operation_of_another_program_is_left_alone(rig: Rig, told: Told) -> None:
    """And cannot be released here, where nothing knows how to finish it."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        key = await _begin(room, made.id, "unheard_of", ("step",))
        await Janitor(room.settings, room.stores).settle()
        assert told == [("operation_diverged", "unheard_of")]
        with pytest.raises(ConflictError):
            await half_done.release(room, key, ACTOR, "box")

    rig.run(work)


def test_what_takes_long_is_told_once(rig: Rig, told: Told) -> None:
    """Fifteen minutes after it began, whoever has it."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        await _begin(room, made.id, "erase", ("file", "blobs", "row"))
        async with rig.open() as other:
            assert other.stores.locks.try_exclusive(made.lock_number)
            janitor = Janitor(room.settings, room.stores)
            await janitor.settle()
            assert told == []
            rig.clock.advance(15 * 60 * 1000)
            for _ in range(2):
                await janitor.settle()
            assert told == [("operation_late", "erase")]
            found = inspection.inspect(rig.settings, clock=rig.clock).findings
            assert "half-done for long" in found[0].detail

    rig.run(work)


def test_a_runner_whose_operation_was_taken_over_changes_nothing(rig: Rig) -> None:
    """Its last write is refused whole, the row of the member with it."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        key = await _begin(room, made.id, "erase", ("file", "blobs", "row"))

        def take(tx: RegistryTransactor) -> Run | None:
            return steps.take_over(tx, key, ("file", "blobs", "row"), {})

        assert await room.stores.registry.write(take, ACTOR) == Run(key, 2)
        with pytest.raises(ConflictError):
            await room.stores.registry.write(lambda tx: steps.finish(tx, Run(key), "done"), ACTOR)
        assert (await member(room, made.id)).store_state == "erasing"

    rig.run(work)
