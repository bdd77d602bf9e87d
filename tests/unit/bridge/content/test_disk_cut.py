"""Texts on the disk through crashes: decided, they are done; gone, nothing of them is left."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from app.bridge.accounts import erasure
from app.bridge.callers import Caller
from app.bridge.content import disk_sweep, files, projects, shared_folders
from app.bridge.content.projects import NewProject
from app.bridge.maintenance import inspection
from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom, reach_nothing
from app.db import disk_steps, disk_tree
from app.errors.callers import NotFoundError
from app.errors.conflicts import (
    PathConflictError,
    VersionConflictError,
)
from app.errors.stores import DiskFullError
from app.owner.edits import ReplaceText
from app.owner.notes import Condition, Written
from app.owner.paths import clean
from app.registry import disk_roots
from app.registry import shared_folders as sf
from app.runtime.idempotency import Answer, Once, Replayed
from tests.support.rig import ACTOR, Rig, StopHereError, enter, stop_at
from tests.support.rooms import CALL
from tests.support.team import ANY, Team, run_team, team_in


def test_no_two_writers_lose_an_update(rig: Rig) -> None:
    """Of two processes, appends at once are all there, and of two edits of a version one is."""

    async def main() -> None:
        async with rig.open() as room, team_in(room) as team, rig.open() as other:
            ref = clean("shared/team/log.md")

            async def append(turn: int) -> None:
                where = room if turn % 2 else other
                await files.append(where, team.ben, CALL, ref, f"line {turn}", ANY)

            await asyncio.gather(*(append(turn) for turn in range(20)))
            lines = (await team.read("shared/team/log.md")).split("\n")
            assert sorted(lines) == sorted(f"line {turn}" for turn in range(20))
            version = (await files.get(room, team.ben, CALL, ref)).version
            match = Condition(match=frozenset({version}))
            outcomes = await asyncio.gather(
                *(
                    files.put(where, team.ben, CALL, ref, f"by {name}", match)
                    for name, where in (("one", room), ("other", other))
                ),
                return_exceptions=True,
            )
            assert sum(isinstance(each, Written) for each in outcomes) == 1
            assert sum(isinstance(each, VersionConflictError) for each in outcomes) == 1

    asyncio.run(main())


async def _pending(room: Strongroom) -> int:
    return len(await room.stores.registry.read(disk_roots.list_pending_roots))


@pytest.mark.parametrize("who", ["writer", "janitor", "reader of the same"])
def test_what_a_crash_left_decided_is_done(rig: Rig, who: str) -> None:
    """Once, by whoever comes next: it was on record with its event before it was on the disk."""

    async def crash(room: Strongroom) -> None:
        async with team_in(room) as team:
            ref = clean("shared/team/a.md")
            await files.put(room, team.ben, CALL, ref, "one", ANY)

    with pytest.raises(StopHereError):
        rig.run(crash, stop_at("disk.decided"))

    async def go_on(room: Strongroom) -> None:
        ben = await enter(room, "ben")
        ref = clean("shared/team/a.md")
        if who == "janitor":
            await Janitor(rig.settings, room.stores).round()
        elif who == "writer":
            await files.append(room, ben, CALL, ref, "two", ANY)
        else:
            await disk_sweep.settle_all(rig.settings, room.stores)
        assert (await files.get(room, ben, CALL, ref)).content.startswith("one")
        assert await _pending(room) == 0

    rig.run(go_on)


def _once(caller: Caller) -> Once:
    return Once(
        caller=caller.author,
        key="key",
        route="POST /api/file/append",
        digest=b"asked",
        render=lambda _: Answer(200, {}, b""),
        keep_ms=86_400_000,
        body_bytes_max=100,
        reach=reach_nothing,
    )


def test_a_request_that_comes_again_after_a_crash_is_done_once(rig: Rig) -> None:
    """It has its answer, and what it asked for stands there once, and by then."""
    ref = clean("shared/team/a.md")

    async def append(room: Strongroom, ben: Caller) -> None:
        await files.append(room, ben, replace(CALL, once=_once(ben)), ref, "one", ANY)

    async def crash(room: Strongroom) -> None:
        async with team_in(room) as team:
            await append(room, team.ben)

    with pytest.raises(StopHereError):
        rig.run(crash, stop_at("disk.decided"))

    async def again(room: Strongroom) -> None:
        ben = await enter(room, "ben")
        for _ in range(2):
            with pytest.raises(Replayed):
                await append(room, ben)
            assert (await files.get(room, ben, CALL, ref)).content == "one"
        [folder] = await room.stores.registry.read(lambda r: sf.list_page(r, "", 2))
        ana = await enter(room, "ana")
        await shared_folders.remove_member(room, ana, CALL, folder.id, ben.user_id)
        with pytest.raises(NotFoundError):
            await append(room, ben)

    rig.run(again)


def test_an_edit_is_answered_again_while_its_text_stands(rig: Rig) -> None:
    """Gone, there is nothing that the kept answer would be about."""
    ref, edits = clean("shared/team/a.md"), [ReplaceText("one", "two")]

    async def work(team: Team) -> None:
        room, call = team.room, replace(CALL, once=_once(team.ben))
        await team.put("shared/team/a.md", "one")

        async def edit() -> None:
            await files.edit(room, team.ben, call, ref, edits, ANY, adds_bytes=0)

        await edit()
        with pytest.raises(Replayed):
            await edit()
        await team.delete("shared/team/a.md")
        with pytest.raises(NotFoundError):
            await edit()

    run_team(rig, work)


def test_what_was_decided_of_a_folder_that_is_gone_is_given_up(rig: Rig) -> None:
    """And holds up nothing that is written there afterwards."""

    async def work(team: Team) -> None:
        def take_away(point: str) -> None:
            if point == "disk.decided":
                team.folder.rename(team.folder.parent / "aside")

        hostile = replace(team.room, reach=take_away)
        with pytest.raises(PathConflictError):
            await files.put(hostile, team.ben, CALL, clean("shared/team/a.md"), "mine", ANY)
        await team.put("shared/team/b.md", "text")
        assert await team.keys() == ["b.md"]

    run_team(rig, work)


def test_what_cannot_be_done_any_more_is_given_up(rig: Rig) -> None:
    """The folder was changed beside the service between decision and deed; that is told."""

    async def main(room: Strongroom) -> None:
        async with team_in(room) as team:
            await team.put("shared/team/x.md", "x")

            def change(point: str) -> None:
                if point == "disk.decided":
                    (team.folder / "a.md").mkdir()
                    (team.folder / "a.md" / "in").write_text("theirs")

            hostile = replace(room, reach=change)
            with pytest.raises(PathConflictError):
                await files.put(hostile, team.ben, CALL, clean("shared/team/a.md"), "mine", ANY)
            assert await _pending(room) == 0
            await Janitor(rig.settings, room.stores).round()
            with disk_tree.opened(team.folder) as descriptor:
                assert disk_steps.own_names(descriptor) == []
            assert (team.folder / "a.md" / "in").read_text() == "theirs"

    rig.run(main)


def test_a_full_disk_changes_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as a store's."""

    async def work(team: Team) -> None:
        await team.put("shared/team/a.md", "text")

        def full(*_args: object) -> None:
            raise DiskFullError

        with monkeypatch.context() as patched:
            patched.setattr(disk_steps, "stage", full)
            with pytest.raises(DiskFullError):
                await team.put("shared/team/a.md", "other")
        assert await team.read("shared/team/a.md") == "text"
        assert await _pending(team.room) == 0

    run_team(rig, work)


def test_a_removed_folder_leaves_nothing_on_the_disk(rig: Rig) -> None:
    """A crash between the two is made good; what belongs to nobody is told and stays."""

    async def begin(room: Strongroom) -> None:
        async with team_in(room) as team:
            await team.put("shared/team/a/b.md", "text")
            [folder] = disk_tree.names_in(room.settings.database / "shared")
            await shared_folders.remove(room, team.ana, CALL, folder, None)

    with pytest.raises(StopHereError):
        rig.run(begin, stop_at("root.row_removed"))
    assert len(disk_tree.names_in(rig.settings.database / "shared")) == 1
    assert inspection.inspect(rig.settings).findings == []

    async def go_on(room: Strongroom) -> None:
        await Janitor(rig.settings, room.stores).round()
        assert disk_tree.names_in(rig.settings.database / "shared") == []
        stray = rig.settings.disk_root("projects", "stray")
        stray.mkdir(parents=True)
        await Janitor(rig.settings, room.stores).round()
        assert stray.exists()

    rig.run(go_on)
    [found] = inspection.inspect(rig.settings).findings
    assert "belongs to no" in found.detail


@pytest.mark.parametrize("point", [None, "erase.begun", "erase.row_removed"])
def test_who_is_erased_takes_their_projects_along(rig: Rig, point: str | None) -> None:
    """With all files in them, whatever the crash; others' stay, and they are in none any more."""

    async def erase(room: Strongroom) -> None:
        async with team_in(room) as team:
            for owner in (team.ana, team.ben):
                made = await projects.add(room, owner, CALL, NewProject("plan", "p", "", {}))
                for member in (team.ana, team.ben):
                    await projects.set_member(
                        room, owner, CALL, made.id, member.user_id, can_write=True
                    )
            for path in ("projects/ana/plan/x.md", "projects/ben/plan/x.md"):
                await team.put(path, "text")
            await erasure.erase(room, team.ben.user_id, CALL, ACTOR)

    with contextlib.suppress(StopHereError):
        rig.run(erase, *(() if point is None else (stop_at(point),)))

    async def look(room: Strongroom) -> None:
        await Janitor(rig.settings, room.stores).round()
        ana = await enter(room, "ana")
        found = await files.list_folder(room, ana, CALL, clean("projects"), 3)
        assert [entry.path for entry in found] == ["ana", "ana/plan"]
        assert (await files.get(room, ana, CALL, clean("projects/ana/plan/x.md"))).content
        assert len(disk_tree.names_in(rig.settings.database / "projects")) == 1

    rig.run(look)
    assert inspection.inspect(rig.settings).findings == []


def test_a_folder_that_is_missing_is_told(rig: Rig) -> None:
    """Where texts were written; one in which nobody has written yet may be."""

    async def work(team: Team) -> None:
        assert inspection.inspect(rig.settings).findings == []
        await team.put("shared/team/a.md", "text")
        team.folder.rename(team.folder.parent / "aside")
        with pytest.raises(NotFoundError):
            await team.read("shared/team/a.md")

    run_team(rig, work)
    found = sorted(each.detail for each in inspection.inspect(rig.settings).findings)
    assert [detail.split(",")[0] for detail in found] == [
        "The folder belongs to no shared folder and no project.",
        "The folder is missing",
    ]
