"""Members for the registry's services, without stores or real keys."""

from typing import Final, Literal

from app.clock import Millis
from app.db.context import Actor, system_actor
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.db.sqlite import Value
from app.ids import DekId, RoleId, SessionId, SlotId, UserId
from app.registry import accounts, sessions
from app.registry.accounts import NewAccount
from app.registry.sessions import Kind, NewSession, NewSlot

ACTOR: Final[Actor] = system_actor("test")
DEK: Final = DekId("dek")


def add_member(
    tx: RegistryTransactor, username: str, role_id: str = "member", *, encrypted: bool = True
) -> AccountRow:
    """Make a member whose secrets open nothing."""
    secret = (
        {"database_password": b"wrap", "kdf_params": "{}", "kdf_salt": b"salt", "dek_id": DEK}
        if encrypted
        else {"password_hash": b"verifier"}
    )
    number = accounts.take_lock_number(tx)
    new = NewAccount(
        id=UserId(tx.new_id()),
        username=username,
        role_id=RoleId(role_id),
        lock_number=number,
        **secret,
    )
    return accounts.add(tx, new)


def give_capability(tx: RegistryTransactor, role_id: str, capability: str) -> None:
    """Give a role a capability, which no part of the program does yet."""
    row: dict[str, Value] = {"role_id": role_id, "capability": capability, "now": tx.now_ms}
    tx._connection.all("INSERT INTO role_capabilities VALUES (:role_id, :capability, :now)", row)


def add_session(
    tx: RegistryTransactor, user_id: UserId, kind: Kind = "browser", *, has_slot: bool = True
) -> NewSession:
    """Make a session or token, with a slot that opens nothing."""
    slot = None
    if has_slot:
        slot_kind: Literal["session", "token"] = "session" if kind == "browser" else "token"
        slot = NewSlot(SlotId(tx.new_id()), user_id, slot_kind, DEK, b"wrap", label="device")
    new = NewSession(
        id=SessionId(tx.new_id()),
        user_id=user_id,
        kind=kind,
        verifier=b"verifier",
        ends_at=Millis(tx.now_ms + 1000),
        slot=slot,
        needs_store=has_slot,
        label="device",
    )
    sessions.add(tx, new)
    return new
