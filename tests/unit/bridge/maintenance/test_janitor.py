"""What the janitor finishes, undoes, compares, and leaves alone."""

import pytest

from app import telemetry
from app.bridge.accounts import erasure, rotation
from app.bridge.maintenance.janitor import OPERATIONS, Janitor
from app.bridge.strongroom import Strongroom
from app.db.registry.store import RegistryTransactor
from app.ids import UserId, new_uuid7
from app.runtime import steps
from app.runtime.steps import Run
from tests.support.rig import ACTOR, Rig, add, begin_state, enter, member, read_note, write_note

Told = list[tuple[str, int]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What the operator is told, by kind and count."""
    heard: Told = []
    monkeypatch.setattr(telemetry, "janitor_found", lambda kind, n: heard.append((kind, n)))
    monkeypatch.setattr(telemetry, "janitor_repaired", lambda kind, n: heard.append((kind, n)))
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: heard.append((where, 1)))
    return heard


async def _round(room: Strongroom) -> None:
    await Janitor(room.settings, room.stores).round()


async def _begin(room: Strongroom, action: str, subject: str, shape: tuple[str, ...]) -> None:
    def write(tx: RegistryTransactor) -> None:
        steps.begin(tx, Run(new_uuid7(tx.now_ms)), action, subject, shape)

    await room.stores.registry.write(write, ACTOR)


async def _open_records(room: Strongroom) -> int:
    return len(await room.stores.registry.read(steps.list_open))


def test_a_sound_root_is_left_as_it_is(rig: Rig, told: Told) -> None:
    """Nothing is told, nothing changes."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        before = await member(room, caller.user_id)
        rig.settings.setup_token_file.unlink()
        await _round(room)
        assert await member(room, caller.user_id) == before
        assert await read_note(room, caller) == "kept"
        assert told == []

    rig.run(work)


def test_a_file_that_nobody_knows_is_told_and_kept(rig: Rig, told: Told) -> None:
    """It may be all that is left of a member whose registry was lost."""

    async def work(room: Strongroom) -> None:
        stray = rig.settings.user_file(UserId(new_uuid7(0)))
        stray.write_bytes(b"somebody's")
        (rig.settings.database / "notes.txt").write_text("not a store")
        await _round(room)
        assert stray.read_bytes() == b"somebody's"
        assert told == [("file_without_member", 1)]

    rig.run(work)


def test_a_member_without_a_file_is_told(rig: Rig, told: Told) -> None:
    """And nothing is made in its place."""

    async def work(room: Strongroom) -> None:
        rig.settings.setup_token_file.unlink()
        made = (await add(room)).account
        rig.settings.user_file(made.id).unlink()
        await _round(room)
        assert told == [("member_without_file", 1)]
        assert rig.files() == set()

    rig.run(work)


def test_what_a_crash_left_beside_a_member_goes(rig: Rig, told: Told) -> None:
    """An unfinished copy that no operation knows, and a setup token that opens nothing."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        for suffix in ("", "-wal"):
            (rig.settings.database / f"{made.id}.db.new{suffix}").write_bytes(b"half")
        await _round(room)
        assert rig.files() == {f"{made.id}.db"}
        assert not rig.settings.setup_token_file.exists()
        assert told == [("left_over_file", 3)]

    rig.run(work)


@pytest.mark.parametrize("action", [erasure.ACTION, rotation.ACTION])
def test_a_record_whose_member_is_gone_is_over(rig: Rig, action: str) -> None:
    """The row was the last thing there was to do."""

    async def work(room: Strongroom) -> None:
        await _begin(room, action, new_uuid7(0), OPERATIONS[action].shape)
        await _round(room)
        assert await _open_records(room) == 0

    rig.run(work)


@pytest.mark.parametrize("action", [erasure.ACTION, rotation.ACTION])
def test_a_record_of_a_store_in_service_is_undone(rig: Rig, action: str) -> None:
    """An operation acts out of service only: this one did nothing, and the member stays."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        await _begin(room, action, made.id, OPERATIONS[action].shape)
        await _round(room)
        assert await _open_records(room) == 0
        await enter(room)

    rig.run(work)


def test_a_state_is_left_to_its_record(rig: Rig) -> None:
    """Rotation begun, nothing prepared: undone by its record, back in service."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        await begin_state(room, made.id, "rotating")
        await _begin(room, rotation.ACTION, made.id, rotation.SHAPE)
        janitor = Janitor(room.settings, room.stores)
        await janitor._settle_state(await member(room, made.id))
        assert (await member(room, made.id)).store_state == "rotating"
        await janitor.settle()
        assert (await member(room, made.id)).store_state == "open"
        assert await _open_records(room) == 0
        # Looked at again when it is over, there is nothing to do.
        await janitor._settle_state(await member(room, made.id))

    rig.run(work)


def test_what_is_held_is_left_alone(rig: Rig) -> None:
    """By its lock: neither its state nor its record is touched."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        await begin_state(room, made.id, "erasing")
        await _begin(room, erasure.ACTION, made.id, erasure.SHAPE)
        async with rig.open() as other:
            assert other.stores.locks.try_exclusive(made.lock_number)
            await _round(room)
        assert (await member(room, made.id)).store_state == "erasing"
        assert await _open_records(room) == 1
        await _round(room)
        assert await _open_records(room) == 0
        assert rig.files() == set()

    rig.run(work)


def test_a_record_that_cannot_be_settled_is_told_once(rig: Rig, told: Told) -> None:
    """It stops no other repair, and is tried again each time."""

    async def work(room: Strongroom) -> None:
        made, gone = (await add(room)).account, (await add(room, "ben")).account
        await begin_state(room, gone.id, "erasing")
        await _begin(room, erasure.ACTION, gone.id, erasure.SHAPE)
        folder = room.settings.files_folder(gone.id)
        folder.parent.mkdir()
        folder.write_text("no folder")
        await begin_state(room, made.id, "closing")
        janitor = Janitor(room.settings, room.stores)
        for _ in range(3):
            await janitor.settle()
        assert told == [("janitor", 1)]
        assert (await member(room, made.id)).store_state == "open"

    rig.run(work)


def test_a_record_that_ended_meanwhile_is_not_settled_again(rig: Rig) -> None:
    """Whoever held the lock may have ended its work between the look and the lock."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        await _begin(room, rotation.ACTION, made.id, rotation.SHAPE)
        (record,) = await room.stores.registry.read(steps.list_open)

        def finish(tx: RegistryTransactor) -> None:
            assert steps.finish(tx, Run(record.key), "done")
            assert not steps.finish(tx, Run(record.key), "undone")

        await room.stores.registry.write(finish, ACTOR)
        before = await member(room, made.id)
        await Janitor(room.settings, room.stores)._settle_record(record)
        assert await member(room, made.id) == before

    rig.run(work)
