"""Signing in, confirming the password, unlocking."""

from dataclasses import dataclass
from typing import Final, Literal

from app import telemetry
from app.bridge import migration
from app.bridge.access import record_opening
from app.bridge.accounts import passwords
from app.bridge.accounts.codes import check_code
from app.bridge.accounts.passwords import Checked
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom, account_of, member_actor
from app.clock import Millis
from app.crypto import envelope, tokens
from app.crypto.envelope import Binding
from app.crypto.keys import Key
from app.crypto.tokens import Token
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.errors.stores import StoreError
from app.ids import DekId, SessionId, SlotId, UserId, new_uuid7
from app.owner import access
from app.registry import accounts, sessions, throttle
from app.registry.sessions import NewSession, NewSlot

_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Device:
    """What a session is made for, as its member will know it again."""

    is_cookie: bool = False
    label: str = ""
    user_agent: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class SignedIn:
    """A new session; its token is shown once."""

    token: Token
    session_id: SessionId
    ends_at: Millis
    account: AccountRow
    is_unlocked: bool
    """Whether the store is open; False says that it is in trouble, or busy."""


def slot_under(  # noqa: PLR0913 - each is one column
    token: Token,
    dek: Key,
    user_id: UserId,
    dek_id: DekId,
    slot_id: SlotId,
    *,
    label: str = "",
    expires_at: Millis | None = None,
    is_pending: bool = False,
) -> NewSlot:
    """The data key wrapped under a session's or token's secret."""
    kind: Literal["session", "token"] = "session" if token.kind == "session" else "token"
    with tokens.slot_kek(token) as kek:
        blob = envelope.wrap(kek, dek, Binding(user_id, kind, slot_id))
    return NewSlot(slot_id, user_id, kind, dek_id, blob, label, expires_at, is_pending)


async def sign_in(
    room: Strongroom, username: str, password: str, call: Call, device: Device | None = None
) -> SignedIn:
    """Make a session for whoever knows the password.

    Returns:
        It, with its token.

    Raises:
        InvalidCredentialsError: Wrong, unknown or inactive: one answer.
        TooManyAttemptsError: The throttle.
        OverloadedError: Too many sign-ins wait.
        StoreBusyError: The member's key is being changed: this session would end with it.
    """
    checked = await passwords.check(room, username, password, call)
    try:
        checked = await passwords.raise_cost(room, checked, password, call)
        return await _begin_session(room, checked, call, device or Device())
    finally:
        checked.zero()


async def _begin_session(
    room: Strongroom, checked: Checked, call: Call, device: Device
) -> SignedIn:
    account, dek = checked.account, checked.dek
    now = room.clock()
    token = tokens.mint("session", new_uuid7(now))
    slot = None
    if dek is not None and account.dek_id is not None:
        slot_id = SlotId(new_uuid7(now))
        slot = slot_under(token, dek, account.id, account.dek_id, slot_id, label=device.label)
    new = NewSession(
        id=SessionId(token.id),
        user_id=account.id,
        kind="browser",
        verifier=tokens.verifier(token.secret),
        ends_at=Millis(now + room.settings.session_days * _DAY_MS),
        slot=slot,
        needs_store=slot is not None,
        is_cookie=device.is_cookie,
        label=device.label,
        user_agent=device.user_agent,
        password_checked_at=now,
    )
    attempt = passwords.attempt_of(room, account.username, call.network)

    def write(tx: RegistryTransactor) -> AccountRow:
        # A change of password or key meanwhile would leave a session that outlives it.
        present = passwords.require_still(tx, checked)
        sessions.add(tx, new)
        throttle.succeed(tx, attempt)
        return present

    present = await room.stores.registry.write(write, member_actor(account, call))
    is_unlocked = await _open_now(room, present, dek, new.id, call)
    return SignedIn(token, new.id, new.ends_at, present, is_unlocked)


async def _open_now(
    room: Strongroom, account: AccountRow, dek: Key | None, session_id: SessionId, call: Call
) -> bool:
    """Open the store with the key at hand; a store in trouble does not stop a sign-in."""
    try:
        store, _ = await migration.open_present(room, account_of(account), lambda: _copy(dek))
        await record_opening(room, account.id, store, "sign_in", session_id, None, call)
    except StoreError as error:
        telemetry.request_failed(call.action, error.code, call.request_id)
        return False
    return True


def _copy(dek: Key | None) -> Key | None:
    """A key of the open store's own, for it outlives this call."""
    return None if dek is None else Key(bytes(dek.view()))


async def confirm(room: Strongroom, caller: Caller, password: str, call: Call) -> None:
    """Note that the person behind a session has just given their password.

    Raises:
        HumanSessionRequiredError: It is a token.
        InvalidCredentialsError: The password is wrong.
    """
    caller.require_human()
    checked = await passwords.check_again(room, caller.user_id, password, call)
    checked.zero()
    await note_checked(room, caller, checked, call)


async def note_checked(room: Strongroom, caller: Caller, checked: Checked, call: Call) -> None:
    """Clear the member's throttle, and note on the session that the password was given.

    Raises:
        InvalidCredentialsError: Password or session were ended meanwhile.
        StoreBusyError: The key is being changed.
    """
    attempt = passwords.attempt_of(room, checked.account.username, call.network)

    def write(tx: RegistryTransactor) -> None:
        passwords.require_still(tx, checked)
        sessions.require_live(tx, caller.user_id, caller.session_id)
        tx.run(sql.SET_PASSWORD_CHECKED, session_id=caller.session_id, now=tx.now_ms)
        throttle.succeed(tx, attempt)

    await room.stores.registry.write(write, caller.actor(call))


async def unlock(
    room: Strongroom,
    caller: Caller,
    call: Call,
    *,
    password: str | None = None,
    code: str | None = None,
) -> None:
    """Give a session without a slot one of its own, and open the store; in every worker.

    Raises:
        HumanSessionRequiredError: It is a token.
        InvalidCredentialsError: The password or the code is wrong.
        StoreBusyError: An operation of its own has the store.
    """
    caller.require_human()
    if password is not None:
        checked = await passwords.check_again(room, caller.user_id, password, call)
    else:
        account = await room.stores.registry.read(lambda r: accounts.get(r, caller.user_id))
        by_code = await check_code(room, account.username, code or "", call)
        checked = passwords.require_same(by_code, caller.user_id)
    try:
        present = await _add_way_in(room, caller, checked, call)
        place = account_of(present)
        store, _ = await migration.open_present(room, place, lambda: _copy(checked.dek))
        way: access.Way = "unlock" if checked.slot_id is None else "recovery"
        await record_opening(room, present.id, store, way, caller.session_id, None, call)
    finally:
        checked.zero()


async def _add_way_in(room: Strongroom, caller: Caller, checked: Checked, call: Call) -> AccountRow:
    account, dek = checked.account, checked.dek
    attempt = passwords.attempt_of(room, account.username, call.network)
    slot = None
    if dek is not None and account.dek_id is not None and caller.slot_id is None:
        slot_id = SlotId(new_uuid7(room.clock()))
        slot = slot_under(caller.token, dek, account.id, account.dek_id, slot_id)

    def write(tx: RegistryTransactor) -> AccountRow:
        present = passwords.require_still(tx, checked)
        sessions.require_live(tx, caller.user_id, caller.session_id)
        throttle.succeed(tx, attempt)
        if checked.slot_id is None:
            tx.run(sql.SET_PASSWORD_CHECKED, session_id=caller.session_id, now=tx.now_ms)
        if slot is not None:
            sessions.add_slot(tx, slot)
            tx.run(sql.SET_SESSION_SLOT, session_id=caller.session_id, slot_id=slot.id)
        return present

    return await room.stores.registry.write(write, caller.actor(call))
