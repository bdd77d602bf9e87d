"""Notices of what agents want to write where others read: who decides, and how it stands.

    pending  -> approved     its member said yes, and it is being done
    approved -> done         what was asked stands
    approved -> conflict     something else stood there by then: nothing was written
    approved -> pending      nothing was done, for a crash or trouble: the member decides again
    pending  -> rejected     its member said no
    pending  -> expired      nobody said anything in time

Neither path nor text is ever here: they wait in the member's own store.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from app.db.registry import statements as sql
from app.db.registry.approval_rows import ApprovalRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import ApprovalOverError
from app.ids import UserId

Status = Literal["pending", "approved", "rejected", "expired", "done", "conflict"]
Outcome = Literal["done", "conflict"]
Approval = ApprovalRow
"""One notice."""
PENDING: Final = "pending"
APPROVED: Final = "approved"
_LAST: Final = "~"
"""Comes after every id."""


class Notice(NamedTuple):
    """What the registry is told of a write that waits."""

    id: str
    """That of the pending write."""
    tool: str
    root: str
    """The first name of the path."""
    agent_id: str | None
    size_bytes: int
    created_at: int
    """Unix milliseconds, as the next."""
    expires_at: int


def add(tx: RegistryTransactor, user_id: UserId, notice: Notice) -> None:
    """Tell of a write that waits; told twice it is there once, as it stands by then."""
    tx.run(
        sql.ADD_APPROVAL,
        id=notice.id,
        user_id=user_id,
        agent_id=notice.agent_id,
        tool=notice.tool,
        target_root=notice.root,
        size_bytes=notice.size_bytes,
        created_at=notice.created_at,
        expires_at=notice.expires_at,
    )


def get(reader: RegistryReader, user_id: UserId, approval_id: str) -> Approval:
    """One of a member's.

    Returns:
        It.

    Raises:
        NotFoundError: There is none, or it is another's.
    """
    found = reader.one(sql.FIND_APPROVAL, id=approval_id, user_id=user_id)
    if found is None:
        raise NotFoundError
    return found


def list_of(
    reader: RegistryReader, user_id: UserId, status: Status | None, before: str | None, limit: int
) -> list[Approval]:
    """A member's, newest first.

    Args:
        reader: The registry.
        user_id: Whose.
        status: Those alone; None for all.
        before: Id of the one that ended the page before; None for the newest.
        limit: How many at most.

    Returns:
        The rows.
    """
    return reader.all(
        sql.LIST_APPROVALS_OF,
        user_id=user_id,
        status=status,
        before_id=before or _LAST,
        limit=limit,
    )


def list_all(
    reader: RegistryReader, status: Status | None, before: str | None, limit: int
) -> list[Approval]:
    """Everybody's, newest first; otherwise as `list_of`."""
    return reader.all(sql.LIST_APPROVALS, status=status, before_id=before or _LAST, limit=limit)


def states_of(
    reader: RegistryReader, user_id: UserId, approval_ids: Sequence[str]
) -> Mapping[str, str]:
    """How each of a member's stands; those that nobody has told of are not in it."""
    ids = json.dumps(list(approval_ids))
    rows = reader.all(sql.LIST_APPROVAL_STATES, user_id=user_id, ids=ids)
    return {row.id: row.status for row in rows}


def begin_decision(
    tx: RegistryTransactor,
    user_id: UserId,
    approval_id: str,
    status: Literal["approved", "rejected"],
) -> None:
    """Take the member's word; of several the first one counts.

    Args:
        tx: The registry.
        user_id: The member, whose agent asked.
        approval_id: Which.
        status: Rejected it is over; approved it is to be done.

    Raises:
        NotFoundError: There is none, or it is another's.
        ApprovalOverError: It was decided before, or its time is over.
    """
    taken = tx.run(
        sql.BEGIN_DECISION,
        id=approval_id,
        user_id=user_id,
        status=status,
        decided_at=None if status == APPROVED else tx.now_ms,
        now=tx.now_ms,
    )
    if not taken:
        raise ApprovalOverError(get(tx, user_id, approval_id).status)


def end_decision(tx: RegistryTransactor, approval_id: str, outcome: Outcome) -> None:
    """Record what became of an approved one."""
    tx.run(sql.END_DECISION, id=approval_id, status=outcome, decided_at=tx.now_ms, now=tx.now_ms)


def undo_decision(tx: RegistryTransactor, approval_id: str) -> None:
    """Have an approved one wait again, for nothing of it was done."""
    tx.run(sql.END_DECISION, id=approval_id, status=PENDING, decided_at=None, now=tx.now_ms)


def expire(tx: RegistryTransactor, limit: int) -> int:
    """Have those be over that nobody decided in time; how many there were."""
    return len(tx.run(sql.EXPIRE_APPROVALS, now=tx.now_ms, limit=limit))


def expire_of(tx: RegistryTransactor, user_id: UserId) -> int:
    """The same of one member's alone."""
    return len(tx.run(sql.EXPIRE_APPROVALS_OF, user_id=user_id, now=tx.now_ms))


def prune(tx: RegistryTransactor, before_ms: int, limit: int) -> int:
    """Remove notices that were over before a moment; how many there were."""
    return len(tx.run(sql.PRUNE_APPROVALS, before=before_ms, limit=limit))
