"""A password checked, wrapped or replaced. Opening the wrap is the check."""

from dataclasses import dataclass, replace

from app.bridge.callers import Call
from app.bridge.strongroom import Strongroom, anonymous
from app.crypto import envelope, kdf
from app.crypto.envelope import Binding, UnwrapError
from app.crypto.kdf import KdfParams
from app.crypto.keys import Key
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.errors import InvalidCredentialsError
from app.ids import UserId
from app.registry import accounts, throttle
from app.registry.throttle import Attempt


@dataclass(frozen=True, slots=True, repr=False)
class PasswordWrap:
    """A data key under a password, as `users` keeps it."""

    database_password: bytes
    kdf_params: str
    kdf_salt: bytes


def binding_of(user_id: UserId) -> Binding:
    """What the password's wrap is bound to."""
    return Binding(user_id, "password", user_id)


def attempt_of(room: Strongroom, username: str, network: str) -> Attempt:
    """The throttle's counters for a name tried from a network."""
    return Attempt.of(room.instance_key.throttle, accounts.username_key(username), network)


async def wrap(room: Strongroom, user_id: UserId, password: str, dek: Key, network: str) -> PasswordWrap:
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


@dataclass(frozen=True, slots=True, repr=False)
class Checked:
    """A member whose password was right."""

    account: AccountRow
    dek: Key | None
    """The data key, the caller's to zero; None for a cleartext member."""


async def check(room: Strongroom, username: str, password: str, call: Call) -> Checked:
    """Check a name's password under the throttle; every refusal costs and looks the same.

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

    Raises:
        InvalidCredentialsError: It is wrong.
    """
    account = await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    return await check(room, account.username, password, call)


async def _derive(
    room: Strongroom, account: AccountRow | None, password: str, network: str, *, trusted: bool
) -> Checked | None:
    """The slow part, the same for every name: one derivation, whatever it is for."""

    def work() -> Checked | None:
        if account is not None and account.active and account.store_state != "erasing":
            if account.password_hash is not None:
                right = kdf.verify(password, account.password_hash)
                return Checked(account, None) if right else None
            if account.database_password is not None:
                return _unwrap(account, password)
        # Nobody, or nobody who may: pay as much, and open nothing.
        kdf.derive(password, bytes(kdf.SALT_BYTES), room.kdf_params).zero()
        return None

    try:
        kdf.normalize(password)
    except ValueError:
        password = ""  # a lone surrogate: no password anybody could have set
    return await room.gate.run(network, work, trusted=trusted, on_dropped=_drop)


def _unwrap(account: AccountRow, password: str) -> Checked | None:
    params = KdfParams.from_json(account.kdf_params or "")
    with kdf.derive(password, account.kdf_salt or b"", params) as kek:
        try:
            dek = envelope.unwrap(kek, account.database_password or b"", binding_of(account.id))
        except UnwrapError:
            return None
    return Checked(account, dek)


def _drop(checked: Checked | None) -> None:
    if checked is not None and checked.dek is not None:
        checked.dek.zero()


async def raise_cost(room: Strongroom, checked: Checked, password: str, call: Call) -> Checked:
    """Wrap again at today's cost when the member's is lower; the member as they are then."""
    account = checked.account
    if account.password_hash is not None:
        stored = kdf.verifier_params(account.password_hash)
    else:
        stored = KdfParams.from_json(account.kdf_params or "")
    if not kdf.is_weaker(stored, room.kdf_params):
        return checked
    values: dict[str, str | bytes | None]
    if checked.dek is None:
        verifier = await hash_password(room, password, call.network)
        values = {"password_hash": verifier, "database_password": None}
        values |= {"kdf_params": None, "kdf_salt": None}
    else:
        new = await wrap(room, account.id, password, checked.dek, call.network)
        values = {"password_hash": None, "database_password": new.database_password}
        values |= {"kdf_params": new.kdf_params, "kdf_salt": new.kdf_salt}

    def write(tx: RegistryTransactor) -> AccountRow:
        was = account.password_hash or account.database_password
        tx.run(sql.RAISE_PASSWORD_COST, user_id=account.id, was=was, now=tx.now_ms, **values)
        return accounts.get(tx, account.id)

    return replace(checked, account=await room.stores.registry.write(write, anonymous(call)))
