"""What an agent writes: done at once, refused, or kept until its member decides.

The rules of the group say which (`app.registry.approval_rules`). What nobody else reads needs
nobody's approval: there a rule can only refuse. What waits is in the member's own store and
nowhere else, in the transaction that keeps the request's answer; the registry is told that
something waits, from there, by whoever finds that it was not told yet.
"""

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, TypeVar

from app import telemetry
from app.bridge.access import group_quota, own_quota, with_own
from app.bridge.callers import Call, Caller
from app.bridge.content import disk_asking, notes, waiting
from app.bridge.strongroom import Strongroom, uncut
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.pool import StoreClosedError
from app.db.registry.store import RegistryReader
from app.errors.callers import DeniedByRuleError
from app.errors.stores import QuotaExceededError, StoreError
from app.owner import pending_writes
from app.owner.notes import Condition
from app.owner.paths import USER_MEMORY
from app.owner.pending_writes import PendingFacts, Wanted
from app.registry import approval_rules
from app.registry.approval_rules import Action, Asking, Source
from app.runtime.idempotency import Replayed

T = TypeVar("T")
_DAY_MS: Final = 86_400_000


class Waiting(NamedTuple):
    """The outcome of a write that its member decides first: nothing is written yet."""

    approval_id: str
    expires_at: int
    """Unix milliseconds; until then the member can decide."""


async def write(  # noqa: PLR0913, PLR0917 - the parts of one write
    room: Strongroom,
    caller: Caller,
    call: Call,
    wanted: Wanted,
    work: Callable[[OwnerTransactor], T],
    condition: Condition,
    *,
    adds_bytes: int | None = 0,
    judge: Callable[[OwnerReader], object] | None = None,
) -> T | Waiting:
    """Write a note, or have its member asked first.

    Args:
        room: The service.
        caller: Who writes.
        call: The request.
        wanted: What is asked.
        work: The same, as it is done; one transaction.
        condition: What it requires of what stands there.
        adds_bytes: How much it adds at least, as `notes.write` takes it.
        judge: Refuses to give a kept answer again; None when there is no reason to.

    Returns:
        What the work returned; or what waits, if a person is to decide.

    Raises:
        NotPermittedError: The credential was not made for writing there.
        DeniedByRuleError: A rule keeps agents from it.
        TooManyApprovalsError: A person is to decide, and too much waits already.
        QuotaExceededError: There is no room for it, there or among what waits.
        StoreLockedError: What waits is kept in a store that this credential cannot open.
    """
    notes.require_may_write(caller, wanted.ref)
    if caller.is_agent and await action_of(room, caller, call, wanted) == "require":
        rehearse = partial(_rehearse, room, call, wanted, condition, adds_bytes)
        return await ask(room, caller, call, wanted, rehearse)
    return await notes.write(
        room,
        caller,
        call,
        wanted.ref,
        work,
        adds_bytes=adds_bytes,
        leaves_no_trace=wanted.purge,
        judge=judge,
    )


async def action_of(room: Strongroom, caller: Caller, call: Call, wanted: Wanted) -> Action:
    """What becomes of an agent's write.

    Returns:
        `allow` or `require`.

    Raises:
        DeniedByRuleError: A rule keeps agents from it.
        Replayed: This request waits already.
    """
    is_own = wanted.ref.root == USER_MEMORY
    if not is_own:
        await _require_not_asked(room, caller, call)
    asking = partial(_asking, caller, call, wanted)

    def read_rules(reader: RegistryReader) -> tuple[list[approval_rules.Rule], Asking]:
        return approval_rules.list_all(reader), asking(reader)

    rules, who = await room.stores.registry.read(read_rules)
    found = await _paths_of(room, caller, call, wanted)
    action = approval_rules.decide(rules, who, found)
    if action == "deny":
        raise DeniedByRuleError
    return "allow" if is_own else action


def _asking(caller: Caller, call: Call, wanted: Wanted, reader: RegistryReader) -> Asking:
    return Asking(
        agent_id=caller.agent_id,
        source=source_of(call),
        tool=wanted.tool,
        groups=approval_rules.groups_of(reader, caller.role_id),
    )


def source_of(call: Call) -> Source:
    """The surface by which a call came."""
    template = call.action.rpartition(" ")[2]
    if template.startswith("/api/tools"):
        return "tools"
    return "mcp" if template.startswith("/mcp") else "files"


async def _paths_of(room: Strongroom, caller: Caller, call: Call, wanted: Wanted) -> list[str]:
    if wanted.ref.is_on_disk:
        return await disk_asking.paths_of(room, caller, wanted)
    if wanted.recursive:
        read = partial(pending_writes.paths_of, wanted=wanted)
        return await notes.read(room, caller, call, wanted.ref, read)
    refs = [wanted.ref] if wanted.to is None else [wanted.ref, wanted.to]
    return [ref.display for ref in refs]


async def _require_not_asked(room: Strongroom, caller: Caller, call: Call) -> None:
    """Find out whether this request waits, for its answer is then in the member's own store.

    Raises:
        Replayed: It does.
    """
    once = call.once
    can_open = not caller.account.encrypted or caller.wrapped_dek is not None
    if once is None or not can_open:
        return

    async def look(store: OwnerStore) -> None:
        try:
            await store.read(once.require_new)
        except Replayed:
            # A crash may have come between the keeping and the telling.
            with contextlib.suppress(StoreClosedError):
                await waiting.settle(room.stores.registry, caller.user_id, store)
            raise

    await with_own(room, caller, call, look)


@uncut
async def ask(
    room: Strongroom,
    caller: Caller,
    call: Call,
    wanted: Wanted,
    rehearse: Callable[[], Awaitable[str | None]],
) -> Waiting:
    """Keep a write until its member decides.

    Args:
        room: The service.
        caller: The agent.
        call: The request.
        wanted: What is asked.
        rehearse: Finds out what stands against it, and tells what stands there.

    Returns:
        What waits.

    Raises:
        TooManyApprovalsError: Too much waits already.
        QuotaExceededError: The member's own store has no room for it.
        StoreLockedError: This credential cannot open that store.
    """
    settings, actor = room.settings, caller.actor(call)
    # First of all: who has asked too much costs nobody any work. What is kept meanwhile is
    # counted again where this is.
    require_fewer = partial(pending_writes.require_fewer, most=settings.approvals_waiting_max)
    await with_own(room, caller, call, lambda store: store.read(require_fewer))
    base = await rehearse()

    def keep(tx: OwnerTransactor) -> Waiting:
        kept = pending_writes.keep(
            tx,
            wanted,
            base,
            caller.agent_id,
            tx.now_ms + settings.approval_days * _DAY_MS,
            settings.approvals_waiting_max,
        )
        facts.append(kept)
        return Waiting(kept.id, kept.expires_at)

    facts: list[PendingFacts] = []
    quota = own_quota(room, caller)
    adds_bytes = wanted.adds_bytes
    asked = await with_own(
        room,
        caller,
        call,
        lambda store: store.write(
            lambda tx: quota.hold(tx, keep, adds_bytes), actor, once=call.once
        ),
    )
    room.reach("approval.kept")
    try:
        # The work may have run more than once; the last one is on the disk.
        await waiting.tell(room.stores.registry, caller.user_id, facts[-1:], actor)
    except StoreError as error:
        # It is kept, and told of when the store is settled next.
        telemetry.request_failed(call.action, error.code, call.request_id)
    room.reach("approval.told")
    return asked


async def _rehearse(
    room: Strongroom, call: Call, wanted: Wanted, condition: Condition, adds_bytes: int | None
) -> str | None:
    """Find out by reading what stands against a write where it is to be done.

    Returns:
        What stands there, as `pending_writes.base_of` tells it.

    Raises:
        QuotaExceededError: There is no room for it.
        StrongroomError: What else the write itself would raise, as far as reading tells.
    """
    size_max, quota = room.settings.note_bytes_max, group_quota(room)

    def judge(reader: OwnerReader) -> str | None:
        if call.once is not None:
            # Asked when the rules allowed it, it is done.
            call.once.require_new(reader)
        pending_writes.judge(reader, wanted, condition, size_max)
        if adds_bytes and (left := quota.bytes_max - quota.used(reader)) < adds_bytes:
            raise QuotaExceededError(limit_max=quota.bytes_max, left=left)
        return pending_writes.base_of(reader, wanted.ref.key)

    return await room.stores.group.read(judge)
