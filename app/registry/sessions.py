"""Sessions and API tokens, and the slots by which they open their member's store."""

import json
from dataclasses import dataclass
from typing import Final, Literal

from app.clock import Millis
from app.db.registry import statements as sql
from app.db.registry.rows import SessionRow, SlotRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import InvalidCredentialsError, NotFoundError
from app.ids import DekId, SessionId, SlotId, UserId

Session = SessionRow
"""A session or token as its member sees it."""

ALL_SCOPES: Final = "*"
"""The one scope of a person's session."""
NOBODY: Final = ""
"""An id that no session has: keeps none."""
Kind = Literal["browser", "token"]


@dataclass(frozen=True, slots=True, repr=False)
class NewSlot:
    """One more way to a member's data key."""

    id: SlotId
    user_id: UserId
    kind: Literal["recovery", "session", "token"]
    dek_id: DekId
    wrapped_dek: bytes
    label: str = ""
    expires_at: Millis | None = None
    is_pending: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class NewSession:
    """A session or token about to become real."""

    id: SessionId
    user_id: UserId
    kind: Kind
    verifier: bytes
    ends_at: Millis
    scopes: tuple[str, ...] = (ALL_SCOPES,)
    slot: NewSlot | None = None
    needs_store: bool = False
    """Whether it is refused once its slot is gone."""
    is_cookie: bool = False
    agent_id: str | None = None
    is_agent: bool = False
    label: str = ""
    user_agent: str | None = None
    password_checked_at: Millis | None = None


def list_of_kind(reader: RegistryReader, user_id: UserId, kind: Kind) -> list[SessionRow]:
    """A member's live sessions, or tokens; newest first."""
    return reader.all(sql.LIST_SESSIONS, user_id=user_id, kind=kind, now=reader.now_ms)


def list_slots(reader: RegistryReader, user_id: UserId) -> list[SlotRow]:
    """Every way to a member's data key beside the password; newest first."""
    return reader.all(sql.LIST_SLOTS, user_id=user_id)


def require_live(reader: RegistryReader, user_id: UserId, session_id: str) -> SessionRow:
    """Judge a session again, inside the transaction that acts for it.

    Returns:
        Its row.

    Raises:
        InvalidCredentialsError: It was ended since the request began.
    """
    found = reader.one(sql.FIND_SESSION, user_id=user_id, session_id=session_id)
    if found is None:
        raise InvalidCredentialsError
    return found


def count_ways_in(reader: RegistryReader, user_id: UserId) -> int:
    """How many live sessions and tokens can still open the member's store."""
    found = reader.one(sql.COUNT_LIVE_SLOTS, user_id=user_id, now=reader.now_ms)
    return found.value if found else 0


def add_slot(tx: RegistryTransactor, slot: NewSlot) -> None:
    """Write a slot."""
    tx.run(
        sql.ADD_SLOT,
        id=slot.id,
        user_id=slot.user_id,
        kind=slot.kind,
        dek_id=slot.dek_id,
        wrapped_dek=slot.wrapped_dek,
        label=slot.label,
        expires_at=slot.expires_at,
        is_pending=int(slot.is_pending),
        now=tx.now_ms,
    )


def add(tx: RegistryTransactor, new: NewSession) -> None:
    """Write a session with its slot."""
    if new.slot is not None:
        add_slot(tx, new.slot)
    tx.run(
        sql.ADD_SESSION,
        id=new.id,
        user_id=new.user_id,
        kind=new.kind,
        is_cookie=int(new.is_cookie),
        agent_id=new.agent_id,
        is_agent=int(new.is_agent),
        verifier=new.verifier,
        slot_id=new.slot.id if new.slot else None,
        needs_store=int(new.needs_store),
        scopes=json.dumps(new.scopes),
        label=new.label,
        user_agent=new.user_agent,
        ends_at=new.ends_at,
        password_checked_at=new.password_checked_at,
        now=tx.now_ms,
    )


def revoke(tx: RegistryTransactor, user_id: UserId, kind: Kind, session_id: str) -> None:
    """End one session or token and destroy its slot, in one step.

    Raises:
        NotFoundError: The member has no such live session of this kind.
    """
    found = tx.one(sql.FIND_SESSION, user_id=user_id, session_id=session_id)
    if found is None or found.kind != kind:
        raise NotFoundError
    ended = tx.run(sql.REVOKE_SESSION, user_id=user_id, session_id=session_id, now=tx.now_ms)
    if not ended:
        raise NotFoundError
    _destroy(tx, user_id, ended[0].value)


def revoke_others(tx: RegistryTransactor, user_id: UserId, kind: Kind, keep: str) -> int:
    """End all of one kind but one, with their slots; how many they were."""
    ended = tx.run(sql.REVOKE_SESSIONS, user_id=user_id, kind=kind, except_id=keep, now=tx.now_ms)
    for row in ended:
        _destroy(tx, user_id, row.value)
    return len(ended)


def revoke_all(tx: RegistryTransactor, user_id: UserId) -> None:
    """End every session and token of a member, and destroy every slot of that kind."""
    tx.run(sql.REVOKE_ALL_SESSIONS, user_id=user_id, now=tx.now_ms)
    for kind in ("session", "token"):
        tx.run(sql.REMOVE_SLOTS_OF_KIND, user_id=user_id, kind=kind)


def revoke_slot(tx: RegistryTransactor, user_id: UserId, slot_id: str) -> None:
    """Destroy a slot and end the session that had it.

    Raises:
        NotFoundError: The member has no such slot.
    """
    if tx.one(sql.FIND_SLOT, user_id=user_id, slot_id=slot_id) is None:
        raise NotFoundError
    tx.run(sql.REVOKE_SESSION_OF_SLOT, user_id=user_id, slot_id=slot_id, now=tx.now_ms)
    tx.run(sql.REMOVE_SLOT, user_id=user_id, slot_id=slot_id)


def set_recovery_slot(tx: RegistryTransactor, slot: NewSlot) -> None:
    """Write a recovery slot; the one before it is destroyed."""
    tx.run(sql.REMOVE_SLOTS_OF_KIND, user_id=slot.user_id, kind="recovery")
    add_slot(tx, slot)


def _destroy(tx: RegistryTransactor, user_id: UserId, slot_id: str | None) -> None:
    if slot_id is not None:
        tx.run(sql.REMOVE_SLOT, user_id=user_id, slot_id=slot_id)


def prune(tx: RegistryTransactor, before: Millis, limit: int) -> int:
    """Take sessions and tokens that ended before a time off the record; how many."""
    return len(tx.run(sql.REMOVE_ENDED_SESSIONS, before=before, limit=limit))
