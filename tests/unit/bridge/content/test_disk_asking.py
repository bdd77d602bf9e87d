"""What agents ask to write in folders on the disk: it waits, and is done as it was seen."""

from dataclasses import replace

import pytest

from app.bridge.callers import Caller
from app.bridge.content import approval_rules, approvals, files, shared_folders
from app.bridge.content.asking import Waiting
from app.bridge.strongroom import Strongroom
from app.errors.callers import DeniedByRuleError, NotFoundError, NotPermittedError
from app.errors.conflicts import (
    AlreadyExistsError,
    NoMatchError,
    NotTextError,
    PathConflictError,
    VersionConflictError,
)
from app.errors.inputs import InvalidPathError, PayloadTooLargeError, RecursiveRequiredError
from app.owner.edits import ReplaceText
from app.owner.notes import Condition
from app.owner.paths import PathRef, clean
from app.registry.approval_rules import NewRule
from app.runtime.idempotency import Replayed
from tests.support.asking import agent_of, kept, notice_of, once_of, repair, status_of
from tests.support.rig import Rig, StopHereError, enter, stop_at
from tests.support.rooms import CALL
from tests.support.team import ANY, NEW, Team, run_team, team_in


def _ref(name: str) -> PathRef:
    return clean(f"shared/team/{name}")


def _id(found: object) -> str:
    assert isinstance(found, Waiting)
    return found.approval_id


async def _ask(team: Team, agent: Caller, name: str, text: str = "by an agent") -> str:
    return _id(await files.put(team.room, agent, CALL, _ref(name), text, ANY))


async def _approve(team: Team, waits: str) -> str:
    return await approvals.approve(team.room, team.ben, CALL, waits)


def test_every_way_to_write_waits_and_is_then_done(rig: Rig) -> None:
    """Nothing on the disk before; then by the agent's name."""

    async def work(team: Team) -> None:
        room = team.room
        agent = await agent_of(room, team.ben)
        for name in ("more.md", "edit.md", "from.md", "gone.md", "in/a.md", "in/b/c.md"):
            await team.put(f"shared/team/{name}", "one")
        before = sorted(team.folder.rglob("*"))
        asked = {
            "new.md": await _ask(team, agent, "new.md", "one"),
            "more.md": _id(await files.append(room, agent, CALL, _ref("more.md"), "two", ANY)),
            "edit.md": _id(
                await files.edit(
                    room, agent, CALL, _ref("edit.md"), [ReplaceText("one", "1")], ANY, adds_bytes=1
                )
            ),
            "to.md": _id(await files.move(room, agent, CALL, _ref("from.md"), _ref("to.md"), ANY)),
            "gone.md": _id(await files.delete(room, agent, CALL, _ref("gone.md"), ANY)),
            "in": _id(await files.delete(room, agent, CALL, _ref("in"), ANY, recursive=True)),
        }
        assert sorted(team.folder.rglob("*")) == before
        notice = await notice_of(room, team.ben, asked["new.md"])
        assert notice.target_root == "shared"
        for waits in asked.values():
            assert await _approve(team, waits) == "done"
        assert await kept(room, team.ben) == []
        found = {path: await team.read(f"shared/team/{path}") for path in await team.keys()}
        assert found == {"new.md": "one", "more.md": "one\ntwo", "edit.md": "1", "to.md": "one"}
        note = await files.get(room, team.ana, CALL, _ref("new.md"))
        assert note.author == f"{team.ben.user_id}/scribe"

    run_team(rig, work)


def test_what_changed_since_is_a_conflict(rig: Rig) -> None:
    """A text, what is in a folder, or which folder it is."""

    async def work(team: Team) -> None:
        room = team.room
        agent = await agent_of(room, team.ben)
        made = await _ask(team, agent, "a.md")
        await team.put("shared/team/a.md", "by a person")
        assert await _approve(team, made) == "conflict"
        changed = await _ask(team, agent, "a.md")
        (team.folder / "a.md").write_text("beside the service")
        assert await _approve(team, changed) == "conflict"
        await team.put("shared/team/in/a.md", "one")
        folder = _id(await files.delete(room, agent, CALL, _ref("in"), ANY, recursive=True))
        await team.put("shared/team/in/b.md", "two")
        assert await _approve(team, folder) == "conflict"
        assert await team.read("shared/team/a.md") == "beside the service"
        renamed = await _ask(team, agent, "new.md")
        await shared_folders.remove(room, team.ana, CALL, team.folder.name, None)
        again = await shared_folders.add(room, team.ana, CALL, "team", "another of this name")
        await shared_folders.set_member(
            room, team.ana, CALL, again.id, team.ben.user_id, can_write=True
        )
        assert await _approve(team, renamed) == "conflict"

    run_team(rig, work)


def test_what_cannot_be_written_is_refused_at_once(rig: Rig) -> None:
    """As for a person, and nobody is asked."""

    async def work(team: Team) -> None:
        room = team.room
        agent = await agent_of(room, team.ben)
        for name in ("a.md", "in/b.md"):
            await team.put(f"shared/team/{name}", "one")
        (team.folder / "link").symlink_to("a.md")
        a, folder = _ref("a.md"), _ref("in")
        stale = Condition(frozenset({1}))
        edits = [ReplaceText("none", "x")]
        too_long = "x" * room.settings.note_bytes_max
        attempts = [
            (AlreadyExistsError, files.put(room, agent, CALL, a, "x", NEW)),
            (VersionConflictError, files.put(room, agent, CALL, a, "x", stale)),
            (PathConflictError, files.put(room, agent, CALL, folder, "x", ANY)),
            (PathConflictError, files.put(room, agent, CALL, _ref("a.md/b"), "x", ANY)),
            (PayloadTooLargeError, files.append(room, agent, CALL, a, too_long, ANY)),
            (NoMatchError, files.edit(room, agent, CALL, a, edits, ANY, adds_bytes=1)),
            (NotFoundError, files.edit(room, agent, CALL, _ref("n"), edits, ANY, adds_bytes=1)),
            (NotFoundError, files.delete(room, agent, CALL, _ref("n"), ANY)),
            (VersionConflictError, files.delete(room, agent, CALL, a, stale)),
            (RecursiveRequiredError, files.delete(room, agent, CALL, folder, ANY)),
            (AlreadyExistsError, files.move(room, agent, CALL, a, folder, ANY)),
            (InvalidPathError, files.move(room, agent, CALL, a, clean("shared/team"), ANY)),
            (InvalidPathError, files.put(room, agent, CALL, clean("shared/team"), "x", ANY)),
            (NotFoundError, files.put(room, agent, CALL, clean("shared/none/a"), "x", ANY)),
            (NotTextError, files.delete(room, agent, CALL, _ref("link"), ANY)),
        ]
        for error, attempt in attempts:
            with pytest.raises(error):
                await attempt
        with pytest.raises(AlreadyExistsError) as told:
            await files.move(room, agent, CALL, _ref("in/b.md"), a, ANY)
        assert told.value.current_version is not None
        for other, error in ((team.eve, NotFoundError), (team.cyd, NotPermittedError)):
            with pytest.raises(error):
                await files.put(room, await agent_of(room, other), CALL, a, "x", ANY)
        assert await kept(room, team.ben) == []

    run_team(rig, work)


def test_rules_decide_there_as_everywhere(rig: Rig) -> None:
    """Of a folder each file counts; and the same request waits once."""

    async def work(team: Team) -> None:
        room = team.room
        agent = await agent_of(room, team.ben)
        await team.put("shared/team/closed/a.md", "one")
        for new in (
            NewRule("@fs_write", "deny", 0, path_pattern="shared/team/closed/*"),
            NewRule("@fs_write", "allow", 1, path_pattern="shared/team/open/*"),
        ):
            await approval_rules.add(room, team.ana, CALL, new)
        for name in ("closed", "closed/a.md"):
            with pytest.raises(DeniedByRuleError):
                await files.delete(room, agent, CALL, _ref(name), ANY, recursive=True)
        await files.put(room, agent, CALL, _ref("open/a.md"), "at once", ANY)
        assert await team.read("shared/team/open/a.md") == "at once"
        call = replace(CALL, once=once_of(agent, room))
        await files.put(room, agent, call, _ref("x.md"), "x", ANY)
        with pytest.raises(Replayed):
            await files.put(room, agent, call, _ref("x.md"), "x", ANY)
        assert len(await kept(room, team.ben)) == 1

    run_team(rig, work)


@pytest.mark.parametrize("point", ["approve.begun", "disk.decided", "approve.written"])
def test_an_approval_cut_anywhere_is_done_or_waits_again(rig: Rig, point: str) -> None:
    """Decided on the disk's side, it takes place; before, it waits."""
    asked: list[str] = []

    async def cut(room: Strongroom) -> None:
        async with team_in(room) as team:
            asked.append(await _ask(team, await agent_of(team.room, team.ben), "a.md"))
            await _approve(team, asked[0])

    with pytest.raises(StopHereError):
        rig.run(cut, stop_at(point))

    async def look(room: Strongroom) -> None:
        await repair(room)
        ben = await enter(room, "ben")
        is_done = point != "approve.begun"
        assert await status_of(room, ben, asked[0]) == ("done" if is_done else "pending")
        if not is_done:
            assert await approvals.approve(room, ben, CALL, asked[0]) == "done"
        note = await files.get(room, ben, CALL, _ref("a.md"))
        assert note.content == "by an agent"

    rig.run(look)
