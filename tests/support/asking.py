"""A member and their agent, on a rig, and what the agent asks to write where others read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from app.bridge import access
from app.bridge.accounts.api_tokens import NewToken, mint
from app.bridge.callers import Caller
from app.bridge.content import files
from app.bridge.content.asking import Waiting
from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom
from app.owner import notes as owner_notes
from app.owner import pending_writes
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, PathRef
from app.owner.pending_writes import PendingFacts
from app.registry import approvals
from app.registry.approvals import Approval
from app.runtime.idempotency import Answer, Once
from tests.support.rig import add, enter
from tests.support.rooms import CALL

PLAN: Final = PathRef(SHARED_MEMORY, "a-secret-plan.md")
TEXT: Final = "a canary of the pending text"
SCOPES: Final = ("memory:read", "memory:write", "shared:write")


@dataclass(frozen=True, slots=True)
class Pair:
    """Who decides, and who asks."""

    member: Caller
    agent: Caller


async def agent_of(
    room: Strongroom, member: Caller, name: str | None = "scribe", *scopes: str
) -> Caller:
    """An agent's token of a member's."""
    new = NewToken("", scopes or SCOPES, name, is_agent=True, expires_at=None)
    token, _ = await mint(room, member, new, CALL)
    return await access.authenticate(room, token)


async def pair(room: Strongroom, name: str = "ana") -> Pair:
    """A new member and their agent."""
    await add(room, name)
    member = await enter(room, name)
    return Pair(member, await agent_of(room, member))


async def again(room: Strongroom, name: str = "ana") -> Pair:
    """The same in a room that was opened later."""
    member = await enter(room, name)
    return Pair(member, await agent_of(room, member))


async def ask(room: Strongroom, agent: Caller, text: str = TEXT, ref: PathRef = PLAN) -> str:
    """Ask for a text to be written; the id of the approval."""
    found = await files.put(room, agent, CALL, ref, text, Condition())
    assert isinstance(found, Waiting)
    return found.approval_id


async def shared_text(room: Strongroom, ref: PathRef = PLAN) -> str | None:
    """What stands at a place that all read; None for nothing."""
    note = await room.stores.group.read(lambda reader: owner_notes.find_note(reader, ref.key))
    return None if note is None else note.content


async def status_of(room: Strongroom, member: Caller, approval_id: str) -> str:
    """How one stands, in the registry."""
    return (await notice_of(room, member, approval_id)).status


async def notice_of(room: Strongroom, member: Caller, approval_id: str) -> Approval:
    """What the registry knows of it."""
    return await room.stores.registry.read(
        lambda reader: approvals.get(reader, member.user_id, approval_id)
    )


async def kept(room: Strongroom, member: Caller) -> list[PendingFacts]:
    """What waits in a member's own store."""
    return await access.with_own(
        room, member, CALL, lambda store: store.read(pending_writes.list_facts)
    )


async def write_as_person(room: Strongroom, member: Caller, text: str, ref: PathRef = PLAN) -> None:
    """A person writes where others read."""
    await files.put(room, member, CALL, ref, text, Condition())


async def repair(room: Strongroom) -> None:
    """What the janitor does in a round."""
    await Janitor(room.settings, room.stores).settle()


def once_of(
    caller: Caller, room: Strongroom, key: str = "key", render: Callable[[Any], str] = str
) -> Once:
    """What lets a request act once; its answer is what the render makes of the result."""
    return Once(
        caller=caller.author,
        key=key,
        route="test",
        digest=b"asked",
        render=lambda result: Answer(202, {}, render(result).encode()),
        keep_ms=86_400_000,
        body_bytes_max=100_000,
        reach=room.reach,
    )
