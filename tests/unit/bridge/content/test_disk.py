"""Shared folders and projects: texts on the disk, for who is in them and nobody else."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.bridge.content import files, notes, projects, prompts, shared_folders
from app.bridge.content.projects import NewProject
from app.db import disk_tree
from app.db.registry.store import RegistryReader
from app.errors.callers import NotANoteError, NotFoundError, NotPermittedError
from app.errors.conflicts import (
    AlreadyExistsError,
    ConflictError,
    NoMatchError,
    NotVersionedError,
    PathConflictError,
    VersionConflictError,
)
from app.errors.inputs import (
    DifferentRootsError,
    InvalidPathError,
    PayloadTooLargeError,
    RecursiveRequiredError,
)
from app.errors.stores import QuotaExceededError
from app.ids import UserId
from app.owner import versions
from app.owner.edits import ReplaceText
from app.owner.notes import Condition, Written
from app.owner.paths import PathRef, clean
from app.runtime import events
from tests.support.rig import Rig
from tests.support.rooms import CALL
from tests.support.team import ANY, NEW, Team, run_team


def test_a_text_is_what_was_written_last(rig: Rig) -> None:
    """Whoever of those in it asks; with its author, its times and a version of its own."""

    async def work(team: Team) -> None:
        made = await team.put("shared/TEAM/a/b.md", "one\n", NEW)
        assert made.created
        found = await files.get(team.room, team.cyd, CALL, clean("shared/team/a/b.md"))
        assert (found.content, found.author) == ("one\n", team.ben.user_id)
        assert found[:-1] == made.note
        with pytest.raises(AlreadyExistsError):
            await team.put("shared/team/a/b.md", "two", NEW)
        rig.clock.advance(1_000)
        same = await team.put("shared/team/a/b.md", "one\n")
        assert (same.created, same.note) == (False, made.note)
        ref = clean("shared/team/a/b.md")
        added = await files.append(team.room, team.ana, CALL, ref, "two", ANY)
        assert isinstance(added, Written)
        assert added.note.created_at == made.note.created_at
        assert added.note.updated_at > made.note.updated_at
        await files.append(team.room, team.ana, CALL, ref, "three", ANY)
        assert await team.read("shared/team/a/b.md") == "one\ntwo\nthree"
        edits = [ReplaceText("two", "2")]
        await files.edit(team.room, team.ana, CALL, ref, edits, ANY, adds_bytes=1)
        assert await team.read("shared/team/a/b.md") == "one\n2\nthree"
        with pytest.raises(NoMatchError):
            await files.edit(team.room, team.ana, CALL, ref, edits, ANY, adds_bytes=1)
        stale = Condition(match=frozenset({made.note.version}))
        for text in ("four", "one\n2\nthree"):
            with pytest.raises(VersionConflictError):
                await team.put("shared/team/a/b.md", text, stale)
        (team.folder / "a" / "b.md").write_text("beside")
        beside = await files.get(team.room, team.ana, CALL, ref)
        assert (beside.content, beside.author) == ("beside", "unknown")
        with pytest.raises(VersionConflictError):
            await team.put("shared/team/a/b.md", "x", Condition(frozenset({added.note.version})))
        assert sorted(p.name for p in team.folder.rglob("*")) == ["a", "b.md"]

    run_team(rig, work)


def test_no_version_of_a_path_comes_again(rig: Rig) -> None:
    """A text that comes back is another; so a condition of before holds of nothing since."""

    async def work(team: Team) -> None:
        path, ref = "shared/team/a.md", clean("shared/team/a.md")
        seen = [(await team.put(path, text)).note.version for text in ("one", "two") * 8]
        for _ in range(4):
            await files.delete(team.room, team.ben, CALL, ref, ANY, recursive=False)
            seen.append((await team.put(path, "one")).note.version)
        away = clean("shared/team/b.md")
        for source, target in ((ref, away), (away, ref)):
            await files.move(team.room, team.ben, CALL, source, target, ANY, recursive=False)
        now = await files.get(team.room, team.ana, CALL, ref)
        seen.append(now.version)
        assert len(set(seen)) == len(seen)
        with pytest.raises(VersionConflictError):
            await team.put(path, "three", Condition(match=frozenset(seen[:-1])))
        # In another inode, as after a backup was brought back: its author is known all the same.
        (team.folder / "copy").write_text("one")
        (team.folder / "copy").rename(team.folder / "a.md")
        back = await files.get(team.room, team.ana, CALL, ref)
        assert (back.content, back.author) == ("one", team.ben.user_id)
        assert back.version not in seen

    run_team(rig, work)


def test_a_condition_is_about_what_stands_there(rig: Rig) -> None:
    """For whatever call: another version, nothing, or a folder, which is no text."""

    async def work(team: Team) -> None:
        room, ref, none = team.room, clean("shared/team/a/b.md"), clean("shared/team/none")
        version = (await team.put("shared/team/a/b.md", "text")).note.version
        folder, to = clean("shared/team/a"), clean("shared/team/c")
        same, other = (Condition(match=frozenset({each})) for each in (version, version + 1))
        for where, condition in ((ref, other), (none, same), (folder, same)):
            with pytest.raises(VersionConflictError):
                await files.delete(room, team.ben, CALL, where, condition, recursive=True)
            with pytest.raises(VersionConflictError):
                await files.move(room, team.ben, CALL, where, to, condition, recursive=True)
            with pytest.raises(VersionConflictError):
                await files.append(room, team.ben, CALL, where, "x", condition)
        edits = [ReplaceText("text", "x")]
        with pytest.raises(NotFoundError):
            await files.edit(room, team.ben, CALL, none, edits, ANY, adds_bytes=0)
        with pytest.raises(AlreadyExistsError) as told:
            await team.move("shared/team/a/b.md", "shared/team/a/b.md")
        assert told.value.current_version == version
        with pytest.raises(AlreadyExistsError):
            await team.move("shared/team/a/b.md", "shared/team/a")
        moved = await files.move(room, team.ben, CALL, ref, to, same)
        assert moved == [(await files.get(room, team.ana, CALL, to))[:-1]]
        assert await files.delete(room, team.ben, CALL, to, same) == 1

    run_team(rig, work)


def test_folders_are_implied_by_texts(rig: Rig) -> None:
    """They come with the first of them and go with the last; nothing stands in another's place."""

    async def work(team: Team) -> None:
        assert await team.keys() == []
        for path in ("a/b/one.md", "a/two.md", "three.md"):
            await team.put(f"shared/team/{path}", "text")
        assert await team.keys() == ["a", "a/b", "a/b/one.md", "a/two.md", "three.md"]
        assert await team.keys("shared/team/a", 1) == ["a/b", "a/two.md"]
        for path in ("shared/team/three.md/x", "shared/team/a"):
            with pytest.raises(PathConflictError):
                await team.put(path, "x")
        for path in ("shared/team/a", "shared/team", "shared"):
            with pytest.raises(NotANoteError):
                await team.read(path)
        for call in (team.delete, lambda path: team.move(path, "shared/team/new")):
            with pytest.raises(RecursiveRequiredError):
                await call("shared/team/a")
            with pytest.raises(NotFoundError):
                await call("shared/team/none")
        moved = await team.move("shared/team/a", "shared/team/c/d", recursive=True)
        assert [n.path for n in moved] == ["c/d/b/one.md", "c/d/two.md"]  # type: ignore[attr-defined] # notes
        assert [n.author for n in moved] == [team.ben.user_id] * 2  # type: ignore[attr-defined] # notes
        for to in ("shared/team/c/d/e", "shared/team/" + "x/" * 31 + "y", "shared/team"):
            with pytest.raises(InvalidPathError):
                await team.move("shared/team/c", to, recursive=True)
        with pytest.raises(AlreadyExistsError):
            await team.move("shared/team/three.md", "shared/team/c/d/two.md")
        with pytest.raises(PathConflictError):
            await team.move("shared/team/c/d/two.md", "shared/team/three.md/x")
        with pytest.raises(DifferentRootsError):
            await team.move("shared/team/three.md", "shared/other/x.md")
        assert await team.delete("shared/team/c", recursive=True) == 2
        assert await team.keys() == ["three.md"]
        assert await team.delete("shared/team/three.md") == 1
        assert list(team.folder.iterdir()) == []

    run_team(rig, work)


def test_nobody_else_finds_anything(rig: Rig) -> None:
    """Whoever is not in it, and a token that was not made for it."""

    async def work(team: Team) -> None:
        room, ref = team.room, clean("shared/team/a.md")
        await team.put("shared/team/a.md", "text")
        token = replace(team.ben, kind="token", scopes=frozenset({"memory:read", "memory:write"}))
        for caller, error in (
            (team.eve, NotFoundError),
            (team.cyd, NotPermittedError),
            (token, NotPermittedError),
        ):
            for write in (
                lambda: files.put(room, caller, CALL, ref, "x", ANY),  # noqa: B023 - called at once
                lambda: files.append(room, caller, CALL, ref, "x", ANY),  # noqa: B023 - likewise
                lambda: files.delete(room, caller, CALL, ref, ANY),  # noqa: B023 - likewise
            ):
                with pytest.raises(error):
                    await write()
        for path in ("shared/team/a.md", "shared/team", "shared/none"):
            with pytest.raises(NotFoundError):
                await files.get(room, team.eve, CALL, clean(path))
            with pytest.raises(NotFoundError):
                await files.list_folder(room, team.eve, CALL, clean(path), 1)
        assert await files.list_folder(room, team.eve, CALL, clean("shared"), 1) == []
        assert await team.read("shared/team/a.md") == "text"

    run_team(rig, work)


def test_a_place_above_folders_lists_those_one_is_in(rig: Rig) -> None:
    """And holds no text itself."""

    async def work(team: Team) -> None:
        room = team.room
        for owner, slug in ((team.ana, "plan"), (team.ben, "plan"), (team.ben, "work")):
            await projects.add(room, owner, CALL, NewProject(slug, slug, "", {"a": [1]}))
        await files.put(room, team.ana, CALL, clean("projects/ana/plan/x.md"), "x", NEW)
        assert await team.keys("shared") == ["team"]
        assert await team.keys("projects", 1) == ["ana"]
        assert await team.keys("projects") == ["ana", "ana/plan"]
        found = await files.list_folder(room, team.ben, CALL, clean("projects/BEN"), 1)
        assert [entry.name for entry in found] == ["plan", "work"]
        for path in ("projects/ben", "projects/nobody"):
            with pytest.raises(NotFoundError):
                await team.keys(path)
            with pytest.raises(NotFoundError):
                await team.read(path)
        with pytest.raises(NotANoteError):
            await team.read("projects")
        for path in ("projects", "shared", "projects/ben"):
            with pytest.raises(NotFoundError):
                await team.put(path, "x")
        with pytest.raises(InvalidPathError):
            await team.put("shared/team", "x")

    run_team(rig, work)


def test_what_needs_versions_says_that_there_are_none(rig: Rig) -> None:
    """History and its undoing; nothing of the caller's own store is answered in their place."""

    async def work(team: Team) -> None:
        ref = clean("shared/team/a.md")
        await team.put("shared/team/a.md", "text")
        with pytest.raises(NotVersionedError):
            await files.restore(team.room, team.ana, CALL, ref, 1, ANY)
        with pytest.raises(NotVersionedError):
            await notes.read(
                team.room,
                team.ana,
                CALL,
                ref,
                lambda reader: versions.list_versions(reader, ref.key, None, 1),
            )
        with pytest.raises(NotVersionedError):
            await notes.write(team.room, team.ana, CALL, ref, lambda tx: tx.now_ms)

    run_team(rig, work)


def test_what_is_too_large_is_refused(make_rig: Callable[..., Rig]) -> None:
    """A text by the bound of a note, all of them by the quota of whose folder it is."""

    async def work(team: Team) -> None:
        await team.put("shared/team/a.md", "x" * 90)
        with pytest.raises(QuotaExceededError):
            await team.put("shared/team/b.md", "x" * 70)
        with pytest.raises(PayloadTooLargeError):
            await team.put("shared/team/a.md", "x" * 101)
        ref = clean("shared/team/a.md")
        with pytest.raises(PayloadTooLargeError):
            await files.append(team.room, team.ana, CALL, ref, "y" * 20, ANY)
        await projects.add(team.room, team.ana, CALL, NewProject("plan", "p", "", {}))
        with pytest.raises(QuotaExceededError):
            await files.put(team.room, team.ana, CALL, clean("projects/ana/plan/x"), "x", ANY)
        await team.put("shared/team/a.md", "x")
        await team.put("shared/team/b.md", "x" * 70)
        assert await team.keys() == ["a.md", "b.md"]

    run_team(make_rig(note_bytes_max=100, group_bytes_max=150, member_bytes_max=1), work)


def test_a_prompt_names_the_folders_that_its_caller_is_in(rig: Rig) -> None:
    """With what they may do there; `none` for who is in none."""

    async def work(team: Team) -> None:
        room, template = team.room, "<!-- SHARED_FOLDERS -->|<!-- PROJECTS -->"
        await projects.add(room, team.cyd, CALL, NewProject("plan", "Plan", "", {}))
        found = await prompts.render(room, team.cyd, template, {})
        assert found.text == (
            "- Team: shared/team/ (read only). of all|- Plan: projects/cyd/plan/ (read and write)"
        )
        assert (await prompts.render(room, team.eve, template, {})).text == "none|none"

    run_team(rig, work)


def test_each_write_leaves_an_event_without_its_path(rig: Rig) -> None:
    """Who, in which folder, what; no name and no word of the text."""

    async def work(team: Team) -> None:
        room = team.room

        def told(reader: RegistryReader) -> list[events.Event]:
            page = events.read_page(reader, "", None, 1000, lambda _event: True)
            return [event for event in page.items if event.entity_type == "disk_file"]

        await team.put("shared/team/secret-name.md", "secret text")
        await team.put("shared/team/secret-name.md", "secret text")
        await team.move("shared/team/secret-name.md", "shared/team/other-name.md")
        await team.delete("shared/team/other-name.md")
        found = await room.stores.registry.read(told)
        kinds = [event.type.removeprefix("disk_file.") for event in found]
        assert kinds == ["created", "created", "updated", "updated"]
        assert "-name" not in repr(found)
        assert "secret" not in repr(found)
        assert team.ben.user_id in found[0].payload

    run_team(rig, work)


def test_a_project_is_its_owners(rig: Rig) -> None:
    """Made, changed, shared and removed by them; the others may leave."""

    async def work(team: Team) -> None:
        room = team.room
        made = await projects.add(room, team.ben, CALL, NewProject("plan", "Plan", "", {}))
        changed = await projects.change(room, team.ben, CALL, made.id, {"name": "New"}, None)
        assert (changed.name, changed.version) == ("New", 2)
        await projects.set_member(room, team.ben, CALL, made.id, team.cyd.user_id, can_write=True)
        await files.put(room, team.cyd, CALL, clean("projects/ben/plan/x.md"), "x", NEW)
        await projects.remove_member(room, team.cyd, CALL, made.id, team.cyd.user_id)
        with pytest.raises(NotFoundError):
            await files.get(room, team.cyd, CALL, clean("projects/ben/plan/x.md"))
        with pytest.raises(NotFoundError):
            await projects.remove(room, team.cyd, CALL, made.id, None)
        with pytest.raises(ConflictError):
            await projects.remove_member(room, team.ben, CALL, made.id, team.ben.user_id)
        await projects.remove(room, team.ben, CALL, made.id, None)
        assert disk_tree.names_in(rig.settings.database / "projects") == []
        folder = UserId(team.folder.name)
        renamed = await shared_folders.change(room, team.ana, CALL, folder, "Other", None, None)
        assert renamed.folder_key == "other"
        with pytest.raises(NotFoundError):
            await team.read("shared/team/a.md")
        await shared_folders.remove_member(room, team.ana, CALL, folder, team.cyd.user_id)
        assert PathRef("shared/other", "").is_on_disk

    run_team(rig, work)
