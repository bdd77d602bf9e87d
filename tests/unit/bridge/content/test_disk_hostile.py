"""Texts on the disk beside other hands and under paths of every kind: nothing else is told."""

import contextlib
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import hypothesis
import pytest
from hypothesis import strategies as st

from app.bridge.content import approvals, files, projects
from app.bridge.content.asking import Waiting
from app.bridge.content.projects import NewProject
from app.errors.conflicts import (
    NotTextError,
)
from app.errors.root import StrongroomError
from app.owner.paths import clean
from tests.support.asking import agent_of
from tests.support.matrix import chosen
from tests.support.rig import Rig
from tests.support.rooms import CALL
from tests.support.team import ANY, NEW, Team, run_team


def test_what_others_put_there_is_no_text_until_it_is_one(rig: Rig) -> None:
    """Links, bytes and odd names are neither read nor replaced nor told of."""

    async def work(team: Team) -> None:
        await team.put("shared/team/a.md", "text")
        (team.folder / "link.md").symlink_to(team.room.settings.instance_key)
        (team.folder / "bytes.md").write_bytes(b"\xff")
        for name in ("e\u0301.md", "new\nline", "back\\slash"):
            (team.folder / name).write_text("odd")
        (team.folder / "door").symlink_to(team.room.settings.database)
        assert await team.keys() == ["a.md", "bytes.md"]
        for path in ("shared/team/link.md", "shared/team/bytes.md"):
            with pytest.raises(NotTextError):
                await team.read(path)
            with pytest.raises(NotTextError):
                await team.put(path, "x")
        with pytest.raises(NotTextError):
            await team.delete("shared/team/link.md")
        for call in (team.read, team.delete, lambda path: team.put(path, "x")):
            with pytest.raises(StrongroomError):
                await call("shared/team/door/system.db")
        (team.folder / "sub").mkdir()
        (team.folder / "sub" / "bytes").write_bytes(b"\xff")
        assert await team.move("shared/team/sub", "shared/team/new", recursive=True) == []
        assert await team.delete("shared/team/new/bytes") == 1

    run_team(rig, work)


def _fill(folder: Path) -> None:
    """A text, and others below and beside it whose names are not UTF-8."""
    (folder / "bad\udcff").mkdir(parents=True)
    for name in ("a.md", "f\udcfe", "bad\udcff/g\udcfe"):
        (folder / name).write_text("text", encoding="utf-8")


def test_a_folder_goes_with_names_that_are_not_utf8(rig: Rig) -> None:
    """They move and are deleted with all else in it; told is what a path can name."""

    async def work(team: Team) -> None:
        await team.put("shared/team/b.md", "text")
        _fill(team.folder / "sub")
        moved = await team.move("shared/team/sub", "shared/team/new", recursive=True)
        assert isinstance(moved, list)
        assert [note.path for note in moved] == ["new/a.md"]
        assert await team.keys() == ["b.md", "new", "new/a.md"]
        assert len(list((team.folder / "new").rglob("*"))) == 4
        assert await team.delete("shared/team/new", recursive=True) == 3
        assert [each.name for each in team.folder.iterdir()] == ["b.md"]

    run_team(rig, work)


def test_an_agent_asks_for_a_folder_with_names_that_are_not_utf8(rig: Rig) -> None:
    """It waits as any does, and what changes under such a name since is a conflict."""

    async def work(team: Team) -> None:
        room, folder = team.room, team.folder / "sub"
        await team.put("shared/team/b.md", "text")
        _fill(folder)
        agent = await agent_of(room, team.ben)

        async def ask() -> str:
            waits = await files.delete(
                room, agent, CALL, clean("shared/team/sub"), ANY, recursive=True
            )
            assert isinstance(waits, Waiting)
            return waits.approval_id

        async def approve(approval_id: str) -> str:
            return await approvals.approve(room, team.ben, CALL, approval_id)

        asked = await ask()
        (folder / "f\udcfe").write_text("more", encoding="utf-8")
        assert await approve(asked) == "conflict"
        assert await approve(await ask()) == "done"
        assert not folder.exists()

    run_team(rig, work)


_SWAPPER: Final = """
import os, pathlib, shutil, sys
base, outside = (pathlib.Path(text) for text in sys.argv[1:])
door, aside = base / "door", base / "aside"
print("ready", flush=True)
while True:
    try:
        door.mkdir(exist_ok=True)
        (door / "secret.md").write_text("inside")
        door.rename(aside)
        door.symlink_to(outside)
        os.link(outside / "secret.md", base / "second.md")
    except OSError:
        pass
    for each in (door, base / "second.md"):
        try:
            each.unlink()
        except OSError:
            pass
    shutil.rmtree(aside, ignore_errors=True)
"""
"""Another process, which exchanges a folder for a link out of it as fast as it can."""


@contextlib.contextmanager
def _swapping(folder: Path, outside: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _SWAPPER, str(folder), str(outside)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as hostile:  # noqa: S603 - the program above
        try:
            assert hostile.stdout is not None
            hostile.stdout.readline()
            yield
        finally:
            hostile.kill()


def test_another_process_that_swaps_folders_for_links_leads_nobody_out(
    rig: Rig, tmp_path: Path
) -> None:
    """Whatever is asked meanwhile; each answer is a text of the folder's, or an error in words."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("what lies outside")

    async def work(team: Team) -> None:
        await team.put("shared/team/mine.md", "mine")
        with _swapping(team.folder, outside):
            seen = {await _try_all(team, turn) for turn in range(*chosen([10], [1_500]))}
        assert [text for text in seen if "outside" in text] == []
        assert await team.read("shared/team/mine.md") == "mine"

    run_team(rig, work)
    assert [each.name for each in outside.iterdir()] == ["secret.md"]
    assert (outside / "secret.md").read_text() == "what lies outside"


async def _try_all(team: Team, turn: int) -> str:
    """Everything once, below the folder that is swapped; what was read."""
    found = []
    for path in ("shared/team/door/secret.md", "shared/team/second.md"):
        with contextlib.suppress(StrongroomError):
            found.append(await team.read(path))
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: team.put(f"shared/team/door/{turn}.md", "new"),
        lambda: team.keys("shared/team", 3),
        lambda: team.move("shared/team/door", f"shared/team/moved-{turn}", recursive=True),
        lambda: team.delete("shared/team/door/secret.md"),
        lambda: team.delete(f"shared/team/moved-{turn}", recursive=True),
    )
    for call in calls:
        with contextlib.suppress(StrongroomError):
            await call()
    return " ".join(found)


_PIECES: Final = [
    *("shared", "projects", "team", "Team", "ana", "ben", "plan", "a.md", "b", "..", ".", "~"),
    *("", "\\", "\uff0e\uff0e", "\u212a", "e\u0301", ".strongroom-x", "x" * 256, "\0", "\n"),
    *("..%2f", "CON", "link", "*", "'; --", "\u202e", "\ud800"),
]


def _paths() -> list[str]:
    """Paths below every root on the disk, most of them hostile."""
    made: list[str] = []

    @hypothesis.settings(max_examples=chosen([50], [10_000])[0], database=None, deadline=None)
    @hypothesis.given(
        st.sampled_from(["shared", "projects", "shared/team", "projects/ana/plan"]),
        st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=8)), max_size=6),
    )
    def draw(root: str, names: list[str]) -> None:
        made.append("/".join([root, *names]))

    draw()
    return made


def test_any_path_whatever_is_answered_in_words(rig: Rig) -> None:
    """Read, listed, written or taken away: an error of the program's, or what is the caller's."""

    async def work(team: Team) -> None:
        room = team.room
        await projects.add(room, team.ana, CALL, NewProject("plan", "p", "", {}))
        secret = clean("projects/ana/plan/a.md")
        await files.put(room, team.ana, CALL, secret, "ana's alone", ANY)
        await team.put("shared/team/b/a.md", "of the team")
        (team.folder / "link").symlink_to(room.settings.database)
        for path in _paths():
            with contextlib.suppress(StrongroomError):
                found = await files.get(room, team.ben, CALL, clean(path))
                assert found.content in {"of the team", "by ben"}
            with contextlib.suppress(StrongroomError):
                await files.list_folder(room, team.ben, CALL, clean(path), 3)
            with contextlib.suppress(StrongroomError):
                await files.put(room, team.ben, CALL, clean(path), "by ben", NEW)
            with contextlib.suppress(StrongroomError):
                await files.delete(room, team.cyd, CALL, clean(path), ANY, recursive=True)
        assert (await files.get(room, team.ana, CALL, secret)).content == "ana's alone"
        outside = [p.name for p in room.settings.database.parent.iterdir()]
        assert sorted(outside) == ["database", "instance.key"]

    run_team(rig, work)
