"""A member's data key changed: a new file under a new key, every other slot destroyed.

The new wraps, the new key's name and the salt the new file begins with are recorded
before the file is exchanged. After a crash the salt of the file in place tells which
key opens it, and the pending wraps are adopted or dropped; no secret is needed.
"""

from dataclasses import dataclass
from typing import Final

from app.bridge import layout, passwords
from app.bridge.callers import Call, Caller
from app.bridge.passwords import PasswordWrap
from app.bridge.signin import slot_under
from app.bridge.signup import recovery_slot
from app.bridge.stores import Hold
from app.bridge.strongroom import Strongroom
from app.crypto.keys import Key
from app.db import files
from app.db.context import Actor
from app.db.files import Connection
from app.db.owner.store import OwnerTransactor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.errors import StoreBusyError, StoreNotEncryptedError
from app.ids import DekId, SlotId, UserId, new_uuid7
from app.owner import identity
from app.registry import sessions
from app.registry.sessions import NewSlot
from app.runtime import steps

ACTION: Final = "rotate"
SHAPE: Final = ("copy", "exchange", "switch")


@dataclass(frozen=True, slots=True, repr=False)
class Rotated:
    """What a change of key leaves: the new code, shown once, and how many ways in it ended."""

    recovery_code: str
    dropped: dict[str, int]
    """How many slots of each kind were destroyed."""


@dataclass(frozen=True, slots=True, repr=False)
class _Plan:
    user_id: UserId
    dek_id: DekId
    wrapped: PasswordWrap
    slots: tuple[NewSlot, ...]
    recovery_code: str


async def rotate(  # noqa: PLR0913, PLR0917 - each is one fact of the operation
    room: Strongroom,
    account: AccountRow,
    dek: Key,
    password: str,
    keep: Caller | None,
    call: Call,
    actor: Actor,
) -> Rotated:
    """Give a member's store a new data key under a password.

    Args:
        room: The service.
        account: As it was when the present key was taken out of its wrap.
        dek: The present key; the caller zeroes it.
        password: The one that opens the store from now on.
        keep: The session that stays; None ends all.
        call: The request.
        actor: Who does it.

    Raises:
        StoreNotEncryptedError: A plain file has no key.
        StoreBusyError: The store was not let go in time, or its key was changed meanwhile;
            nothing was changed.
    """
    if account.dek_id is None:
        raise StoreNotEncryptedError
    new_dek = Key.generate()
    try:
        plan = await _plan(room, account, new_dek, password, keep, call)
        stores = room.stores
        async with stores.taken(account.id, account.lock_number, "rotating", actor) as hold:
            return await _exchange(room, account, dek, new_dek, plan, actor, hold)
    finally:
        new_dek.zero()


async def _plan(  # noqa: PLR0913, PLR0917 - as rotate
    room: Strongroom,
    account: AccountRow,
    new_dek: Key,
    password: str,
    keep: Caller | None,
    call: Call,
) -> _Plan:
    """Everything that needs time or a secret, before anybody is kept waiting."""
    now = room.clock()
    dek_id = DekId(new_uuid7(now))
    wrapped = await passwords.wrap(room, account.id, password, new_dek, call.network)
    code, recovery = recovery_slot(
        account.id, new_dek, dek_id, SlotId(new_uuid7(now)), is_pending=True
    )
    slots = [recovery]
    if keep is not None:
        # The label carries which session it is for until it is adopted.
        slot_id = SlotId(new_uuid7(now))
        slots.append(
            slot_under(
                keep.token,
                new_dek,
                account.id,
                dek_id,
                slot_id,
                label=keep.session_id,
                is_pending=True,
            )
        )
    return _Plan(account.id, dek_id, wrapped, tuple(slots), code)


async def _exchange(  # noqa: PLR0913, PLR0917 - as rotate
    room: Strongroom,
    account: AccountRow,
    dek: Key,
    new_dek: Key,
    plan: _Plan,
    actor: Actor,
    hold: Hold,
) -> Rotated:
    registry = room.stores.registry
    path = room.settings.user_file(account.id)
    record = new_uuid7(room.clock())

    def begin(tx: RegistryTransactor) -> None:
        present = tx.one(sql.FIND_ACCOUNT, user_id=account.id)
        # Password or key may have been changed since the present key was unwrapped.
        if present is None or present.database_password != account.database_password:
            raise StoreBusyError
        steps.begin(tx, record, ACTION, account.id, SHAPE)

    await registry.write(begin, actor)
    room.reach("rotate.begun")

    def amend(connection: Connection) -> None:
        identity.set_identity(OwnerTransactor(connection), account.id, plan.dek_id)

    try:
        salt = await room.stores.on_thread(
            lambda: files.copy_under_new_key(
                path, dek, new_dek, layout.MEMBER_KIND, room.clock, amend
            )
        )
        room.reach("rotate.copied")
        await registry.write(lambda tx: _record_pending(tx, plan, salt), actor)
        room.reach("rotate.recorded")
    except BaseException:
        await room.stores.on_thread(lambda: files.remove_new(path))
        await registry.write(lambda tx: undo(tx, account.id, record), actor)
        raise
    hold.must_finish = True
    await room.stores.on_thread(lambda: files.replace_with_new(path))
    room.reach("rotate.exchanged")
    dropped = await registry.write(lambda tx: adopt(tx, account.id, record), actor)
    room.reach("rotate.switched")
    await room.stores.registry.checkpoint()
    return Rotated(plan.recovery_code, dropped)


def _record_pending(tx: RegistryTransactor, plan: _Plan, salt: bytes) -> None:
    tx.run(
        sql.SET_PENDING_KEY,
        user_id=plan.user_id,
        database_password=plan.wrapped.database_password,
        kdf_params=plan.wrapped.kdf_params,
        kdf_salt=plan.wrapped.kdf_salt,
        dek_id=plan.dek_id,
        file_salt=salt,
    )
    for slot in plan.slots:
        sessions.add_slot(tx, slot)


def adopt(tx: RegistryTransactor, user_id: UserId, record: str) -> dict[str, int]:
    """The new file stands: its key is the member's, and every other way in is destroyed.

    Returns:
        How many slots of each kind were destroyed.
    """
    tx.run(sql.ADOPT_PENDING_KEY, user_id=user_id, now=tx.now_ms)
    for slot in tx.run(sql.ADOPT_PENDING_SLOTS, user_id=user_id):
        if slot.kind == "session":
            tx.run(sql.SET_SESSION_SLOT, session_id=slot.label, slot_id=slot.value)
    account = tx.one(sql.FIND_ACCOUNT, user_id=user_id)
    dropped: dict[str, int] = {}
    for gone in tx.run(
        sql.REMOVE_SLOTS_OF_OLD_KEY, user_id=user_id, dek_id=account.dek_id if account else None
    ):
        dropped[gone.kind] = dropped.get(gone.kind, 0) + 1
    tx.run(sql.REVOKE_SESSIONS_WITHOUT_SLOT, user_id=user_id, now=tx.now_ms)
    steps.finish(tx, record, "done")
    return dropped


def undo(tx: RegistryTransactor, user_id: UserId, record: str) -> None:
    """The old file stands: what was prepared goes."""
    tx.run(sql.REMOVE_PENDING_SLOTS, user_id=user_id)
    tx.run(sql.DROP_PENDING_KEY, user_id=user_id)
    steps.finish(tx, record, "undone")
