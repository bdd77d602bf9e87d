"""What an agent asks to write where others read: whom it is told to, and which rules decide."""

import json
from collections.abc import Callable
from typing import TypeVar

import pytest

from app.bridge.callers import Call, Caller
from app.bridge.content import approval_rules, approvals, asking, files
from app.bridge.content.asking import Waiting
from app.bridge.notifications import events
from app.bridge.strongroom import Strongroom
from app.db.context import Actor
from app.db.writer import Lane, Work, Writer, WriteTarget
from app.errors.callers import DeniedByRuleError, NotFoundError, TooManyApprovalsError
from app.errors.conflicts import PathConflictError, VersionConflictError
from app.errors.inputs import InvalidPathError, RecursiveRequiredError
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from app.owner.pending_writes import Wanted
from app.registry import approval_rules as rules
from app.registry.approval_rules import NewRule
from app.runtime.events import Types
from tests.support.asking import PLAN, TEXT, agent_of, ask, kept, pair, shared_text, write_as_person
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

T = TypeVar("T")
_ANY = Condition()
_OTHER = PathRef(SHARED_MEMORY, "a-secret-other.md")
_FOLDER = PathRef(SHARED_MEMORY, "a-secret-folder")


def _in_folder(name: str) -> PathRef:
    return PathRef(SHARED_MEMORY, f"{_FOLDER.key}/{name}")


async def _told(room: Strongroom, caller: Caller) -> list[tuple[str, str]]:
    page = await events.read_page(room, caller, CALL, "group", None, Types(), 1000)
    of_approvals = [each for each in page.items if each.entity_type == "approval"]
    for each in of_approvals:
        assert "secret" not in each.payload
        assert TEXT not in each.payload
    return [(each.type, json.loads(each.payload)["status"]) for each in of_approvals]


def test_its_member_alone_is_told_of_an_approval(rig: Rig) -> None:
    """Asked and decided, without path or text; no administrator, no token, no other member."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        for name, role in (("ben", "member"), ("cyd", "admin")):
            await add(room, name, role)
        waits = await ask(room, who.agent)
        await approvals.approve(room, who.member, CALL, waits)
        assert await _told(room, who.member) == [
            ("approval.requested", "pending"),
            ("approval.updated", "approved"),
            ("approval.decided", "done"),
        ]
        token = await agent_of(room, who.member, "scribe", "events:read", "shared:write")
        for other in (token, await enter(room, "ben"), await enter(room, "cyd")):
            assert await _told(room, other) == []

    rig.run(work)


def test_a_rule_refuses_an_agent_and_lets_another_write(rig: Rig) -> None:
    """At once, in whatever memory; of a folder each note counts, and its own memory too."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        await write_as_person(room, who.member, "x", _in_folder("closed/a.md"))
        trusted = await agent_of(room, who.member, "trusted")
        allowed = NewRule("*", "allow", 1, agent_id="trusted")
        denied = NewRule("@fs_write", "deny", 0, path_pattern="*/closed/*")
        made = [
            await approval_rules.add(room, who.member, CALL, each) for each in (allowed, denied)
        ]
        noted = await approval_rules.change(
            room, who.member, CALL, made[1].id, {"note": "closed"}, frozenset({1})
        )
        assert (noted.note, noted.action, noted.version) == ("closed", "deny", 2)
        done = await files.put(room, trusted, CALL, PLAN, TEXT, _ANY)
        assert not isinstance(done, Waiting)
        assert await shared_text(room) == TEXT
        for agent in (who.agent, trusted):
            for ref in (_in_folder("closed/b.md"), PathRef(USER_MEMORY, "closed/b.md")):
                with pytest.raises(DeniedByRuleError):
                    await files.put(room, agent, CALL, ref, TEXT, _ANY)
            with pytest.raises(DeniedByRuleError):
                await files.move(room, agent, CALL, _FOLDER, _OTHER, _ANY, recursive=True)
        await files.put(room, who.member, CALL, _in_folder("closed/b.md"), "a person", _ANY)
        own = await files.put(room, who.agent, CALL, PathRef(USER_MEMORY, "n.md"), TEXT, _ANY)
        assert not isinstance(own, Waiting)

    rig.run(work)


def test_what_nobody_else_reads_is_never_asked_about(rig: Rig) -> None:
    """Though no rule allows it: there is nothing that leaves the member's own store."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        for rule in await room.stores.registry.read(rules.list_all):
            await approval_rules.remove(room, who.member, CALL, rule.id, None)
        own = await files.put(room, who.agent, CALL, PathRef(USER_MEMORY, "n.md"), TEXT, _ANY)
        assert not isinstance(own, Waiting)
        await ask(room, who.agent)

    rig.run(work)


async def _ask_everything(room: Strongroom, agent: Caller, text: PathRef) -> list[object]:
    gone, free = _in_folder("gone.md"), PathRef(SHARED_MEMORY, "free")
    return [
        await files.put(room, agent, CALL, text, TEXT, _ANY),
        await files.append(room, agent, CALL, text, TEXT, _ANY),
        await files.move(room, agent, CALL, text, free, _ANY),
        await files.move(room, agent, CALL, _FOLDER, free, _ANY, recursive=True),
        await files.delete(room, agent, CALL, _FOLDER, _ANY, recursive=True),
        await files.delete(room, agent, CALL, text, _ANY, purge=True),
        await files.delete(room, agent, CALL, gone, _ANY, purge=True),
        await files.restore(room, agent, CALL, gone, 1, _ANY),
    ]


def _writes_of_group(room: Strongroom, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets longer with every write transaction of the group's store."""
    written: list[str] = []
    really = Writer.submit

    async def submit(
        writer: Writer, lane: Lane, target: WriteTarget, work: Work[T], actor: Actor
    ) -> T:
        if target is room.stores.group.handles:
            written.append(actor.kind)
        return await really(writer, lane, target, work, actor)

    monkeypatch.setattr(Writer, "submit", submit)
    return written


def test_to_ask_takes_no_turn_to_write_where_others_read(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked is judged by reading: while it is, everybody else writes and signs in."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        text, gone = _in_folder("a.md"), _in_folder("gone.md")
        for ref in (text, gone):
            await write_as_person(room, who.member, "x", ref)
        await files.delete(room, who.member, CALL, gone, _ANY)
        written = _writes_of_group(room, monkeypatch)
        asked = await _ask_everything(room, who.agent, text)
        assert all(isinstance(each, Waiting) for each in asked)
        assert not written
        await write_as_person(room, who.member, "y", text)
        assert len(written) == 1

    rig.run(work)


def test_what_reading_tells_is_refused_when_it_is_asked(rig: Rig) -> None:
    """With the error of the act itself, of which nobody is asked."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        agent, text, none = who.agent, _in_folder("a.md"), PathRef(SHARED_MEMORY, "none")
        await write_as_person(room, who.member, "x", text)
        deep = PathRef(SHARED_MEMORY, "/".join("d" * 32))
        inside, below = _in_folder("b"), PathRef(SHARED_MEMORY, f"{text.key}/b")
        stale = Condition(frozenset({99}))
        for error, attempt in (
            (NotFoundError, files.move(room, agent, CALL, none, _OTHER, _ANY)),
            (VersionConflictError, files.move(room, agent, CALL, text, _OTHER, stale)),
            (RecursiveRequiredError, files.move(room, agent, CALL, _FOLDER, _OTHER, _ANY)),
            (
                InvalidPathError,
                files.move(room, agent, CALL, _FOLDER, inside, _ANY, recursive=True),
            ),
            (InvalidPathError, files.move(room, agent, CALL, _FOLDER, deep, _ANY, recursive=True)),
            (PathConflictError, files.move(room, agent, CALL, text, below, _ANY)),
            (NotFoundError, files.delete(room, agent, CALL, none, _ANY, purge=True)),
            (
                NotFoundError,
                files.delete(room, agent, CALL, none, _ANY, purge=True, recursive=True),
            ),
            (VersionConflictError, files.delete(room, agent, CALL, text, stale)),
            (VersionConflictError, files.restore(room, agent, CALL, text, 1, stale)),
            (NotFoundError, files.restore(room, agent, CALL, none, 1, _ANY)),
        ):
            with pytest.raises(error):
                await attempt
        assert await kept(room, who.member) == []

    rig.run(work)


def test_who_asked_too_much_is_told_before_anything_is_looked_at(
    make_rig: Callable[..., Rig],
) -> None:
    """Also of what could not be written: neither store nor disk is read for it."""
    rig = make_rig(approvals_waiting_max=1)

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        await ask(room, who.agent)
        with pytest.raises(TooManyApprovalsError):
            await files.move(room, who.agent, CALL, _FOLDER, _OTHER, _ANY)

        async def never() -> str | None:
            raise AssertionError

        with pytest.raises(TooManyApprovalsError):
            await asking.ask(room, who.agent, CALL, Wanted("delete_file", _OTHER), never)

    rig.run(work)


def test_the_surface_is_told_by_the_call() -> None:
    """As rules name it."""
    for action, source in (
        ("PUT /api/file", "files"),
        ("POST /api/tools/write_file", "tools"),
        ("POST /mcp", "mcp"),
        ("test", "files"),
    ):
        assert asking.source_of(Call(action, "")) == source
