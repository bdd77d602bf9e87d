"""Sign-up: the file first, then the registry row that makes it real."""

from dataclasses import dataclass, replace
from typing import Final

from app.bridge import layout
from app.bridge.accounts import passwords
from app.bridge.accounts.codes import recovery_slot
from app.bridge.callers import Call
from app.bridge.finishing import JANITOR, Desk, Operation
from app.bridge.strongroom import Strongroom, uncut
from app.bridge.taking import Judge, acquire_exclusive
from app.crypto import passwords as password_rule
from app.crypto.keys import Key
from app.db import files
from app.db.context import Actor, system_actor
from app.db.files import Connection
from app.db.owner.store import OwnerTransactor
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.ids import DekId, RoleId, SlotId, UserId, new_uuid7
from app.owner import identity, scaffold
from app.registry import accounts, sessions
from app.registry.accounts import NewAccount
from app.registry.sessions import NewSlot
from app.runtime import steps
from app.runtime.steps import Outcome, Run

ACTION: Final = "sign_up"
SHAPE: Final = ("lock", "file", "row")
_SCAFFOLDER: Final = system_actor("sign_up")


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


def require_member(new: NewMember) -> None:
    """Refuse a name or password that breaks the rules.

    Raises:
        InvalidUsernameError: See `accounts.require_username`.
        WeakPasswordError: See `crypto.passwords`.
    """
    accounts.require_username(new.username)
    password_rule.check(new.password, new.username)


@uncut
async def sign_up(
    room: Strongroom, new: NewMember, call: Call, actor: Actor, admit: Judge
) -> SignedUp:
    """Make a member with a store of their own, or nothing at all.

    Args:
        room: The service.
        new: The member.
        call: The request.
        actor: Who does it.
        admit: Judges, in the transaction that makes them real, whether they may be made.

    Returns:
        The member, and their recovery code if it is theirs to have.

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
        number = await registry.write(accounts.take_lock_number, actor)
        room.reach("sign_up.numbered")

        def begin(tx: RegistryTransactor) -> None:
            require_room(tx)
            steps.begin(tx, Run(user_id), ACTION, user_id, SHAPE)
            steps.sent(tx, Run(user_id), "lock", user_id)
            steps.answered(tx, Run(user_id), "lock", {"number": number})
            steps.sent(tx, Run(user_id), "file", user_id)

        # Held before the operation is on record, and to its end: a janitor that gets this
        # lock knows that a crash left the record.
        await acquire_exclusive(room, number)
        try:
            await registry.write(begin, actor)
            room.reach("sign_up.begun")
            made = await _make(room, draft, dek, number, actor, admit)
        finally:
            room.stores.locks.release_exclusive(number)
        room.reach("sign_up.done")
        return made
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
    admit: Judge,
) -> SignedUp:
    """File, then row; or neither."""
    registry = room.stores.registry
    user_id = draft.account.id
    path = room.settings.user_file(user_id)

    def fill(connection: Connection) -> None:
        tx = OwnerTransactor(connection)
        identity.set_identity(tx, user_id, draft.account.dek_id)
        connection.actor = _SCAFFOLDER
        scaffold.lay_out(tx, user_id, scaffold.OWN_INDEX)
        connection.actor = None
        room.reach("sign_up.filling")

    def write(tx: RegistryTransactor, account: NewAccount) -> AccountRow:
        admit(tx)
        row = accounts.add(tx, account)
        if draft.slot is not None:
            sessions.add_slot(tx, draft.slot)
        steps.finish(tx, Run(user_id), "done")
        return row

    try:
        salt = await room.stores.on_thread(
            lambda: files.create(path, dek, layout.MEMBER_KIND, room.clock, fill)
        )
        room.reach("sign_up.file_made")
        account = replace(draft.account, lock_number=lock_number, file_salt=salt or None)
        row = await registry.write(lambda tx: write(tx, account), actor)
    except BaseException:
        # In this order: while the record is open the janitor knows whose file it is.
        await room.stores.on_thread(lambda: files.remove(path))
        await registry.write(lambda tx: steps.finish(tx, Run(user_id), "undone"), actor)
        raise
    return SignedUp(row, draft.recovery_code)


async def _settle(desk: Desk) -> Outcome:
    """A sign-up that has no row gets no file: the name is free."""
    await desk.stores.on_thread(lambda: files.remove_all(desk.path))
    await desk.stores.registry.write(lambda tx: steps.finish(tx, desk.run, "undone"), JANITOR)
    return "undone"


OPERATION: Final = Operation(
    action=ACTION,
    shape=SHAPE,
    state=None,
    settle=_settle,
    asked=lambda subject, _account: {"lock": subject, "file": subject},
)
