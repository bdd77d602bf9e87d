"""Writes that agents asked for, decided by their member, and done exactly once.

    registry   approved, and the operation on record
    group      the write, with the mark that it was done, if what was seen stands there still
    registry   done or conflict, and the operation over
    own store  the text goes

The mark is a row of `sys_handled_deliveries`, and with it the step is answered: both are in
the file that is written, so whoever took the operation over after a crash knows whether it
was done, and whoever ran it before can do it no more. Not done, it waits again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from typing_extensions import override

from app import telemetry
from app.bridge.access import group_quota, with_own
from app.bridge.callers import Call, Caller
from app.bridge.content import disk_asking, waiting
from app.bridge.finishing import JANITOR, Desk, Operation
from app.bridge.strongroom import Strongroom, uncut
from app.bridge.taking import acquire_exclusive
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.db.runtime.store import RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import ApprovalOverError, ConflictError, RunnerLostError
from app.errors.inputs import InvalidInputError, PayloadTooLargeError
from app.errors.root import StrongroomError
from app.ids import UserId, new_uuid7
from app.owner import pending_writes
from app.owner.pending_writes import PendingWrite, Wanted
from app.registry import accounts, approvals
from app.registry.approvals import Approval, Status
from app.registry.approvals import Outcome as Effect
from app.runtime import deliveries, idempotency, steps
from app.runtime.idempotency import Once
from app.runtime.steps import Outcome, Run

ACTION: Final = "approve"
SHAPE: Final = ("lock", "write")
_SUBSCRIBER: Final = "approvals"
"""Under which name the group's store marks a write as done."""
PAGE_BYTES: Final = 4_194_304
"""Bytes of texts after which a page ends."""


class Entry(NamedTuple):
    """One approval, with what was asked while it waits."""

    approval: Approval
    asked: PendingWrite | None
    """None when it is over: the text is gone."""


async def list_own(  # noqa: PLR0913, PLR0917 - who lists which, from where, how many
    room: Strongroom,
    caller: Caller,
    call: Call,
    status: Status | None,
    before: str | None,
    limit: int,
) -> tuple[list[Entry], bool]:
    """What the caller's agents asked for, newest first.

    Returns:
        A page that ends early where its texts are large, and whether there are more.
    """
    registry, user_id = room.stores.registry, caller.user_id

    async def look(store: OwnerStore) -> tuple[list[Entry], bool]:
        await waiting.settle(registry, user_id, store)
        rows = await registry.read(
            lambda reader: approvals.list_of(reader, user_id, status, before, limit + 1)
        )
        shown = _fitting(rows[:limit])
        found = await store.read(partial(_entries, rows=shown))
        return found, len(rows) > len(shown)

    return await with_own(room, caller, call, look)


def _fitting(rows: Sequence[Approval]) -> Sequence[Approval]:
    """As many as fit into a page, and one at least."""
    size = 0
    for count, row in enumerate(rows):
        size += row.size_bytes if row.decided_at is None else 0
        if count and size > PAGE_BYTES:
            return rows[:count]
    return rows


def _entries(reader: OwnerReader, rows: Sequence[Approval]) -> list[Entry]:
    return [
        Entry(row, None if row.decided_at is not None else pending_writes.find(reader, row.id))
        for row in rows
    ]


async def get(room: Strongroom, caller: Caller, call: Call, approval_id: str) -> Entry:
    """One of them: with what was asked for its member, without for the agent that asked.

    Returns:
        It.

    Raises:
        NotFoundError: There is none, or another asked for it.
    """
    registry, user_id = room.stores.registry, caller.user_id
    if not caller.is_human:
        row = await registry.read(lambda reader: approvals.get(reader, user_id, approval_id))
        if row.agent_id != caller.agent_id:
            raise NotFoundError
        return Entry(row, None)

    async def look(store: OwnerStore) -> Entry:
        await waiting.settle(registry, user_id, store)
        row = await registry.read(lambda reader: approvals.get(reader, user_id, approval_id))
        [entry] = await store.read(partial(_entries, rows=[row]))
        return entry

    return await with_own(room, caller, call, look)


@uncut
async def reject(room: Strongroom, caller: Caller, call: Call, approval_id: str) -> Status:
    """Refuse what an agent asked for; the text goes.

    Returns:
        `rejected`.

    Raises:
        NotFoundError: There is none, or another's agent asked for it.
        ApprovalOverError: It was decided before, or its time is over.
        StoreLockedError: This credential cannot open the store in which it waits.
    """
    caller.require_key_way()
    registry, user_id = room.stores.registry, caller.user_id

    def write(tx: RegistryTransactor) -> Status:
        approvals.begin_decision(tx, user_id, approval_id, "rejected")
        return "rejected"

    status = await registry.write(write, caller.actor(call), once=call.once)
    room.reach("reject.decided")
    await _forget(room, caller, call, approval_id)
    room.reach("reject.forgotten")
    return status


async def _forget(room: Strongroom, caller: Caller, call: Call, approval_id: str) -> None:
    """Remove what is decided; what stands in the way of it does not change that it is."""
    actor = caller.actor(call)
    try:
        await with_own(
            room, caller, call, lambda store: waiting.forget(store, [approval_id], actor)
        )
    except StrongroomError as error:
        telemetry.request_failed(call.action, error.code, call.request_id)


@uncut
async def approve(room: Strongroom, caller: Caller, call: Call, approval_id: str) -> Status:
    """Have done what an agent asked for, if what it saw stands there still.

    Returns:
        `done`, or `conflict` when something else stands there and nothing was written.

    Raises:
        NotFoundError: There is none, or another's agent asked for it.
        ApprovalOverError: It was decided before, or its time is over.
        StoreLockedError: This credential cannot open the store in which it waits.
        StoreError: It cannot be written now; it waits on.
    """
    registry, once = room.stores.registry, call.once
    if once is not None:
        # Done, nothing is left of what was asked.
        await registry.read(once.require_new)
    asked = await _asked(room, caller, call, approval_id)
    decision = _Decision(room, caller, call, approval_id, asked, Run(new_uuid7(room.clock())))
    number = await registry.write(accounts.take_lock_number, caller.actor(call))
    # Held before the operation is on record, and to its end: a janitor that gets this lock
    # knows that a crash left the record.
    await acquire_exclusive(room, number)
    try:
        status = await decision.carry_out(number)
    finally:
        room.stores.locks.release_exclusive(number)
    await _forget(room, caller, call, approval_id)
    room.reach("approve.forgotten")
    return status


async def _asked(room: Strongroom, caller: Caller, call: Call, approval_id: str) -> PendingWrite:
    asked = await with_own(
        room,
        caller,
        call,
        lambda store: store.read(lambda reader: pending_writes.find(reader, approval_id)),
    )
    if asked is None:
        row = await room.stores.registry.read(
            lambda reader: approvals.get(reader, caller.user_id, approval_id)
        )
        raise ApprovalOverError(row.status)
    return asked


@dataclass(frozen=True, slots=True)
class _Decision:
    """One approval on its way through the files."""

    room: Strongroom
    caller: Caller
    call: Call
    approval_id: str
    asked: PendingWrite
    run: Run

    async def carry_out(self, number: int) -> Status:
        """Decide, write, and record what became of it."""
        room, registry = self.room, self.room.stores.registry
        actor, once = self.caller.actor(self.call), self._once()
        await registry.write(partial(self._begin, once=once, number=number), actor)
        room.reach("approve.begun")
        try:
            effect = await self._write()
        except Exception:
            # What a janitor has taken over by now is its own to undo.
            await registry.write(partial(_close, run=self.run, approval_id=self.approval_id), actor)
            raise
        room.reach("approve.written")

        def end(tx: RegistryTransactor) -> Status:
            approvals.end_decision(tx, self.approval_id, effect)
            steps.finish(tx, self.run, "done")
            return effect

        status = await registry.write(end, actor, once=once)
        room.reach("approve.ended")
        return status

    def _once(self) -> Once | None:
        return None if self.call.once is None else self.call.once.of(self.run.key)

    def _begin(self, tx: RegistryTransactor, *, once: Once | None, number: int) -> None:
        if once is not None:
            # Should a crash come after the write, this is what was answered.
            once.begin(tx, "done")
        approvals.begin_decision(tx, self.caller.user_id, self.approval_id, "approved")
        steps.begin(tx, self.run, ACTION, self.caller.user_id, SHAPE)
        steps.sent(tx, self.run, "lock", self.caller.user_id)
        steps.answered(tx, self.run, "lock", {"number": number, "approval": self.approval_id})
        steps.sent(tx, self.run, "write", self.caller.user_id)

    async def _write(self) -> Effect:
        room, wanted = self.room, pending_writes.wanted_of(self.asked)
        author = _author(self.caller.user_id, self.asked)
        try:
            if wanted.ref.is_on_disk:
                await self._write_on_disk(wanted, author)
            else:
                await self._write_in_store(wanted, author)
        except RunnerLostError:
            raise
        except (ConflictError, NotFoundError, InvalidInputError, PayloadTooLargeError):
            return "conflict"
        if wanted.purge:
            await room.stores.group.checkpoint()
        return "done"

    async def _write_in_store(self, wanted: Wanted, author: str) -> None:
        room, adds_bytes = self.room, wanted.adds_bytes
        quota, size_max = group_quota(room), room.settings.note_bytes_max

        def work(tx: OwnerTransactor) -> None:
            if self._mark(tx):
                return
            pending_writes.require_base(tx, wanted.ref.key, self.asked.base_version)
            pending_writes.perform(tx, wanted, author, size_max)

        actor = self.caller.actor(self.call)
        await room.stores.group.write(lambda tx: quota.hold(tx, work, adds_bytes), actor)

    async def _write_on_disk(self, wanted: Wanted, author: str) -> None:
        # The request's key is kept with the decision, not with the write.
        call, base = replace(self.call, once=None), self.asked.base_version
        await disk_asking.carry_out(self.room, self.caller, call, wanted, base, author, self._mark)

    def _mark(self, tx: RuntimeTransactor) -> bool:
        """Note in the write's own transaction that it is done; whether it was before."""
        if deliveries.handled(tx, self.approval_id, _SUBSCRIBER):
            return True
        steps.answered(tx, self.run, "write", {"done": 1})
        return False


def _author(user_id: UserId, asked: PendingWrite) -> str:
    return f"{user_id}/{asked.agent_id}" if asked.agent_id else user_id


def _close(tx: RegistryTransactor, run: Run, approval_id: str) -> Outcome:
    """Bring an operation to the end that its write says: done, or waiting again."""
    outcome: Outcome = "done" if "write" in steps.answers(tx, run.key) else "undone"
    if steps.finish(tx, run, outcome):
        if outcome == "done":
            approvals.end_decision(tx, approval_id, "done")
        else:
            approvals.undo_decision(tx, approval_id)
        idempotency.settle(tx, run.key, outcome)
    return outcome


async def _settle(desk: Desk) -> Outcome:
    """Written, it is done; else it waits again: neither needs the member's key."""

    def settle(tx: RegistryTransactor) -> Outcome:
        told = steps.answers(tx, desk.run.key)
        return _close(tx, desk.run, str(told["lock"]["approval"]))

    outcome = await desk.stores.registry.write(settle, JANITOR)
    # What a purge removed leaves the log.
    await desk.stores.registry.checkpoint()
    return outcome


class _OfMember(Operation):
    """An operation that is half-done whatever state its member's store is in."""

    __slots__ = ()

    @override
    def is_half_done(self, account: AccountRow | None) -> bool:
        return account is not None


OPERATION: Final = _OfMember(
    action=ACTION,
    shape=SHAPE,
    state=None,
    settle=_settle,
    asked=lambda subject, _account: {"lock": subject, "write": subject},
)
