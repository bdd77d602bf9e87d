"""A password checked, wrapped or replaced. Opening the wrap is the check."""

from dataclasses import dataclass, replace
from typing import Final

from app import telemetry
from app.bridge.callers import Call
from app.bridge.stores import ROTATING
from app.bridge.strongroom import Strongroom, anonymous, member_actor
from app.crypto import envelope, kdf
from app.crypto.envelope import Binding, UnwrapError
from app.crypto.kdf import KdfParams
from app.crypto.keys import Key
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import InvalidCredentialsError
from app.errors.stores import OverloadedError, StoreBusyError
from app.ids import SlotId, UserId
from app.registry import accounts, throttle
from app.registry.throttle import Attempt

_NO_SALT: Final = bytes(kdf.SALT_BYTES)
_MEMORY_KIB_MIN: Final = 8
"""Of one lane (RFC 9106, 3.1)."""


@dataclass(frozen=True, slots=True, repr=False)
class PasswordWrap:
    """A data key under a password, as `users` keeps it."""

    database_password: bytes
    kdf_params: str
    kdf_salt: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Checked:
    """A member whose password, or recovery code, was right."""

    account: AccountRow
    dek: Key | None
    """The data key, the caller's to zero; None for a cleartext member."""
    slot_id: SlotId | None = None
    """The recovery slot that the code opened; None for a password."""

    def zero(self) -> None:
        """Wipe the key, if there is one."""
        if self.dek is not None:
            self.dek.zero()


def binding_of(user_id: UserId) -> Binding:
    """What the password's wrap is bound to."""
    return Binding(user_id, "password", user_id)


def attempt_of(room: Strongroom, username: str, network: str) -> Attempt:
    """The throttle's counters for a name tried from a network."""
    return Attempt.of(room.instance_key.throttle, accounts.username_key(username), network)


async def wrap(
    room: Strongroom, user_id: UserId, password: str, dek: Key, network: str
) -> PasswordWrap:
    """Wrap a data key under a password, at today's cost."""
    salt = kdf.new_salt()

    def work() -> bytes:
        with kdf.derive(password, salt, room.kdf_params) as kek:
            return envelope.wrap(kek, dek, binding_of(user_id))

    blob = await room.gate.run(network, work, trusted=True)
    return PasswordWrap(blob, room.kdf_params.to_json(), salt)


async def hash_password(room: Strongroom, password: str, network: str) -> bytes:
    """A cleartext member's verifier, at today's cost."""
    return await room.gate.run(
        network, lambda: kdf.hash_verifier(password, room.kdf_params), trusted=True
    )


async def check(room: Strongroom, username: str, password: str, call: Call) -> Checked:
    """Check a name's password under the throttle; every refusal costs and looks the same.

    Returns:
        The member; their throttle is cleared by `throttle.succeed` with what follows.

    Raises:
        TooManyAttemptsError: The delay after earlier failures is not over.
        OverloadedError: Too many derivations wait.
        InvalidCredentialsError: Wrong, unknown, inactive, or an account nobody signs in to.
    """
    attempt = attempt_of(room, username, call.network)
    registry = room.stores.registry
    actor = anonymous(call)
    trusted = await registry.write(lambda tx: throttle.admit(tx, attempt), actor)
    account = await registry.read(lambda reader: accounts.find_by_name(reader, username))
    checked = await _derive(room, account, password, call.network, trusted=trusted)
    if checked is None:
        await registry.write(lambda tx: throttle.fail(tx, attempt), actor)
        raise InvalidCredentialsError
    return checked


async def check_again(room: Strongroom, user_id: UserId, password: str, call: Call) -> Checked:
    """Check the password of a member who is signed in, under the same throttle.

    Returns:
        The member.

    Raises:
        InvalidCredentialsError: It is wrong.
        TooManyAttemptsError: The delay after earlier failures is not over.
    """
    account = await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    return require_same(await check(room, account.username, password, call), user_id)


def require_same(checked: Checked, user_id: UserId) -> Checked:
    """Refuse a member who took the caller's name after the caller was erased.

    Returns:
        The same.

    Raises:
        InvalidCredentialsError: It is somebody else.
    """
    if checked.account.id != user_id:
        checked.zero()
        raise InvalidCredentialsError
    return checked


def holds(reader: RegistryReader, checked: Checked) -> bool:
    """Whether what was checked is still what opens the member's store."""
    was = checked.account
    present = reader.one(sql.FIND_ACCOUNT, user_id=was.id)
    if present is None or not accounts.may_sign_in(present) or present.dek_id != was.dek_id:
        return False
    if checked.slot_id is not None:
        slot = reader.one(sql.FIND_SLOT, user_id=was.id, slot_id=checked.slot_id)
        return slot is not None
    return _secret(present) == _secret(was)


def require_still(tx: RegistryTransactor, checked: Checked) -> AccountRow:
    """Judge again, inside the transaction that acts on it: the check took its time.

    Returns:
        The member as they are now.

    Raises:
        InvalidCredentialsError: Password, code, key or member were changed meanwhile.
        StoreBusyError: The key is being changed: what is made for the present one now
            would be lost.
    """
    if not holds(tx, checked):
        raise InvalidCredentialsError
    present = accounts.get(tx, checked.account.id)
    if present.store_state == ROTATING:
        raise StoreBusyError
    return present


def _secret(account: AccountRow) -> bytes | None:
    return account.database_password or account.password_hash


async def _derive(
    room: Strongroom, account: AccountRow | None, password: str, network: str, *, trusted: bool
) -> Checked | None:
    """The slow part, of one length for every name."""

    def work() -> Checked | None:
        spent = None
        if account is not None and accounts.may_sign_in(account):
            spent = _stored_cost(room, account)
            checked = _open(account, password, spent) if spent is not None else None
            if checked is not None:
                return checked
        _spend_rest(password, room.kdf_params, spent)
        return None

    try:
        kdf.normalize(password)
    except ValueError:
        password = ""  # no password anybody could have set; nobody has the empty one either
    return await room.gate.run(network, work, trusted=trusted, on_dropped=_drop)


def _stored_cost(room: Strongroom, account: AccountRow) -> KdfParams | None:
    """The cost of a member's secret; None when they have none that could be opened."""
    try:
        if account.password_hash is not None:
            cost = kdf.verifier_params(account.password_hash)
        elif account.database_password is not None:
            cost = KdfParams.from_json(account.kdf_params or "")
        else:
            return None
        if not kdf.is_weaker(room.kdf_params, kdf.FLOOR):
            kdf.require_floor(cost)
    except ValueError as error:
        # A damaged row: refused like a wrong password, told to the operator alone.
        telemetry.unexpected("stored_cost", error)
        return None
    return cost


def _open(account: AccountRow, password: str, cost: KdfParams) -> Checked | None:
    if account.password_hash is not None:
        right = kdf.verify(password, account.password_hash)
        return Checked(account, None) if right else None
    with kdf.derive(password, account.kdf_salt or _NO_SALT, cost) as kek:
        try:
            dek = envelope.unwrap(kek, account.database_password or b"", binding_of(account.id))
        except UnwrapError:
            return None
    return Checked(account, dek)


def _spend_rest(password: str, default: KdfParams, spent: KdfParams | None) -> None:
    """Derive for nothing what a refusal has not cost yet, so that time tells no names apart.

    All of it for a name that opens nothing; the difference for a member whose password is
    stored at a lower cost than today's. Time is proportional to memory times passes.
    """
    done_kib = spent.memory_kib * spent.time_cost // default.time_cost if spent else 0
    rest_kib = default.memory_kib - done_kib
    if rest_kib >= _MEMORY_KIB_MIN * default.lanes:
        kdf.derive(password, _NO_SALT, replace(default, memory_kib=rest_kib)).zero()


def _drop(checked: Checked | None) -> None:
    if checked is not None:
        checked.zero()


async def raise_cost(room: Strongroom, checked: Checked, password: str, call: Call) -> Checked:
    """Wrap again at today's cost when the member's is lower; another time when there is no room.

    Args:
        room: The service.
        checked: The member; zeroed when another takes its place.
        password: What was right.
        call: The request.

    Returns:
        The member as they are then.

    Raises:
        InvalidCredentialsError: The password was changed meanwhile.
    """
    account = checked.account
    stored = _stored_cost(room, account)
    if stored is None or not kdf.is_weaker(stored, room.kdf_params):
        return checked
    values: dict[str, str | bytes | None]
    try:
        if checked.dek is None:
            verifier = await hash_password(room, password, call.network)
            values = {"password_hash": verifier, "database_password": None}
            values |= {"kdf_params": None, "kdf_salt": None}
        else:
            new = await wrap(room, account.id, password, checked.dek, call.network)
            values = {"password_hash": None, "database_password": new.database_password}
            values |= {"kdf_params": new.kdf_params, "kdf_salt": new.kdf_salt}
    except OverloadedError:
        return checked

    def write(tx: RegistryTransactor) -> AccountRow | None:
        was = _secret(account)
        raised = tx.run(
            sql.RAISE_PASSWORD_COST, user_id=account.id, was=was, now=tx.now_ms, **values
        )
        return accounts.get(tx, account.id) if raised else None

    raised = await room.stores.registry.write(write, member_actor(account, call))
    if raised is not None:
        return replace(checked, account=raised)
    # Another sign-in raised it meanwhile, or somebody changed it: what stands now decides.
    checked.zero()
    registry = room.stores.registry
    present = await registry.one(sql.FIND_ACCOUNT, user_id=account.id)
    again = await _derive(room, present, password, call.network, trusted=True)
    if again is None:
        raise InvalidCredentialsError
    return again
