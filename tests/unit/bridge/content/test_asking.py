"""What an agent asks to write where others read: whom it is told to, and which rules decide."""

import json

import pytest

from app.bridge.callers import Call, Caller
from app.bridge.content import approval_rules, approvals, asking, files
from app.bridge.content.asking import Waiting
from app.bridge.notifications import events
from app.bridge.strongroom import Strongroom
from app.errors.callers import DeniedByRuleError
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from app.registry import approval_rules as rules
from app.registry.approval_rules import NewRule
from app.runtime.events import Types
from tests.support.asking import PLAN, TEXT, agent_of, ask, pair, shared_text, write_as_person
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

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


def test_the_surface_is_told_by_the_call() -> None:
    """As rules name it."""
    for action, source in (
        ("PUT /api/file", "files"),
        ("POST /api/tools/write_file", "tools"),
        ("POST /mcp", "mcp"),
        ("test", "files"),
    ):
        assert asking.source_of(Call(action, "")) == source
