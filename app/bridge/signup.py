"""Sign-up: the file first, then the registry row that makes it real."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from app.bridge import layout, passwords
from app.bridge.callers import Call
from app.bridge.strongroom import Strongroom
from app.crypto import envelope, recovery_code
from app.crypto import passwords as password_rule
from app.crypto.envelope import Binding
from app.crypto.keys import Key
from app.db import files
from app.db.context import Actor
from app.db.owner.store import OwnerTransactor
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.ids import DekId, RoleId, SlotId, UserId, new_uuid7
from app.owner import identity
from app.registry import accounts, sessions
from app.registry.accounts import NewAccount
from app.registry.sessions import NewSlot
from app.runtime import steps

ACTION: Final = "sign_up"
SHAPE: Final = ("lock", "file", "row")

Admit = Callable[[RegistryTransactor], None]
"""Judges, in the transaction that makes the member, whether they may be made."""


@dataclass(frozen=True, slots=True, repr=False)
class NewMember:
    """Who is to become a member."""

    username: str
    password: str
    role_id: RoleId
    display_name: str | None = None
    encrypted: bool = True
    is_temporary: bool = False
    """True when somebody else chose the password: then no recovery code is made."""


@dataclass(frozen=True, slots=True, repr=False)
class SignedUp:
    """A new member; the recovery code is shown once, None where there is none."""

    account: AccountRow
    recovery_code: str | None


def recovery_slot(
    user_id: UserId, dek: Key, dek_id: DekId, slot_id: SlotId, *, is_pending: bool = False
) -> tuple[str, NewSlot]:
    """A new recovery code, and the slot it opens."""
    code = recovery_code.generate()
    entropy = recovery_code.parse(code)
    if entropy is None:
        raise AssertionError("unreachable: a generated code parses")
    with recovery_code.kek(entropy) as kek:
        blob = envelope.wrap(kek, dek, Binding(user_id, "recovery", slot_id))
    slot = NewSlot(slot_id, user_id, "recovery", dek_id, blob, is_pending=is_pending)
    return code, slot


def require_member(new: NewMember) -> None:
    """Refuse a name or password that breaks the rules.

    Raises:
        InvalidUsernameError: See `accounts.require_username`.
        WeakPasswordError: See `crypto.passwords`.
    """
    accounts.require_username(new.username)
    password_rule.check(new.password, new.username)


async def sign_up(
    room: Strongroom, new: NewMember, call: Call, actor: Actor, admit: Admit
) -> SignedUp:
    """Make a member with a store of their own, or nothing at all.

    Raises:
        UsernameTakenError: Somebody has the name.
        InvalidInputError: The role is not there, or name or password break the rules.
    """
    await room.stores.on_thread(lambda: require_member(new))
    registry = room.stores.registry

    def require_room(reader: RegistryReader) -> None:
        accounts.require_free_name(reader, new.username)
        accounts.require_role(reader, new.role_id)

    await registry.read(require_room)
    user_id = UserId(new_uuid7(room.clock()))
    dek = Key.generate() if new.encrypted else None
    try:
        draft = await _draft(room, new, user_id, dek, call)

        def begin(tx: RegistryTransactor) -> int:
            require_room(tx)
            steps.begin(tx, user_id, ACTION, user_id, SHAPE)
            steps.sent(tx, user_id, "lock", user_id)
            number = accounts.take_lock_number(tx)
            steps.answered(tx, user_id, "lock", {"number": number})
            steps.sent(tx, user_id, "file", user_id)
            return number

        lock_number = await registry.write(begin, actor)
        room.reach("sign_up.begun")
        return await _make(room, draft, dek, lock_number, actor, admit)
    finally:
        if dek is not None:
            dek.zero()


@dataclass(frozen=True, slots=True, repr=False)
class _Draft:
    """A member worked out, and not written anywhere yet."""

    account: NewAccount
    slot: NewSlot | None
    recovery_code: str | None


async def _draft(
    room: Strongroom, new: NewMember, user_id: UserId, dek: Key | None, call: Call
) -> _Draft:
    account = NewAccount(
        id=user_id,
        username=new.username,
        role_id=new.role_id,
        lock_number=0,
        display_name=new.display_name,
        is_temporary=new.is_temporary,
    )
    if dek is None:
        verifier = await passwords.hash_password(room, new.password, call.network)
        return _Draft(replace(account, password_hash=verifier), None, None)
    wrapped = await passwords.wrap(room, user_id, new.password, dek, call.network)
    dek_id = DekId(new_uuid7(room.clock()))
    account = replace(
        account,
        dek_id=dek_id,
        database_password=wrapped.database_password,
        kdf_params=wrapped.kdf_params,
        kdf_salt=wrapped.kdf_salt,
    )
    if new.is_temporary:
        return _Draft(account, None, None)
    slot_id = SlotId(new_uuid7(room.clock()))
    code, slot = recovery_slot(user_id, dek, dek_id, slot_id)
    return _Draft(account, slot, code)


async def _make(  # noqa: PLR0913, PLR0917 - the parts of one operation
    room: Strongroom,
    draft: _Draft,
    dek: Key | None,
    lock_number: int,
    actor: Actor,
    admit: Admit,
) -> SignedUp:
    """File, then row; or neither."""
    registry, locks = room.stores.registry, room.stores.locks
    user_id = draft.account.id
    path = room.settings.user_file(user_id)

    def make_file() -> bytes:
        # Held to the end, so that the janitor of another process knows this one is alive.
        locks.acquire_exclusive(lock_number, room.settings.exclusive_wait_s)
        return files.create(
            path,
            dek,
            layout.MEMBER_KIND,
            room.clock,
            lambda connection: identity.set_identity(
                OwnerTransactor(connection), user_id, draft.account.dek_id
            ),
        )

    try:
        try:
            salt = await room.stores.on_thread(make_file)
            room.reach("sign_up.file_made")
            account = replace(draft.account, lock_number=lock_number, file_salt=salt or None)

            def write(tx: RegistryTransactor) -> AccountRow:
                admit(tx)
                row = accounts.add(tx, account)
                if draft.slot is not None:
                    sessions.add_slot(tx, draft.slot)
                steps.finish(tx, user_id, "done")
                return row

            row = await registry.write(write, actor)
        except BaseException:
            await room.stores.on_thread(lambda: files.remove(path))
            await registry.write(lambda tx: steps.finish(tx, user_id, "undone"), actor)
            raise
    finally:
        locks.release_exclusive(lock_number)
    room.reach("sign_up.done")
    return SignedUp(row, draft.recovery_code)

