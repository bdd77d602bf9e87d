"""Signing in, confirming, unlocking, signing out."""

from dataclasses import dataclass

from app import telemetry
from app.bridge import passwords
from app.bridge.access import record_opening
from app.bridge.callers import Call, Caller
from app.bridge.passwords import Checked
from app.bridge.strongroom import Strongroom, account_of, anonymous, member_actor
from app.clock import Millis
from app.crypto import envelope, recovery_code, tokens
from app.crypto.envelope import Binding, UnwrapError
from app.crypto.keys import Key
from app.crypto.tokens import Token
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors import InvalidCredentialsError, StoreError
from app.ids import DekId, SessionId, SlotId, UserId, new_uuid7
from app.registry import accounts, sessions, throttle
from app.registry.sessions import NewSession, NewSlot

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, repr=False)
class SignedIn:
    """A new session; its token is shown once."""

    token: Token
    session_id: SessionId
    ends_at: Millis
    account: AccountRow
    is_unlocked: bool


def slot_under(
    token: Token, dek: Key, user_id: UserId, dek_id: DekId, slot_id: SlotId, **more: object
) -> NewSlot:
    """The data key wrapped under a session's or token's secret."""
    kind = "session" if token.kind == "session" else "token"
    with tokens.slot_kek(token) as kek:
        blob = envelope.wrap(kek, dek, Binding(user_id, kind, slot_id))
    return NewSlot(slot_id, user_id, kind, dek_id, blob, **more)  # type: ignore[arg-type]


async def sign_in(  # noqa: PLR0913 - each is one fact of the request
    room: Strongroom,
    username: str,
    password: str,
    call: Call,
    *,
    is_cookie: bool = False,
    label: str = "",
    user_agent: str | None = None,
) -> SignedIn:
    """Make a session for whoever knows the password.

    Raises:
        InvalidCredentialsError: Wrong, unknown or inactive: one answer.
        TooManyAttemptsError: The throttle.
        OverloadedError: Too many sign-ins wait.
    """
    checked = await passwords.check(room, username, password, call)
    try:
        checked = await passwords.raise_cost(room, checked, password, call)
        return await _begin_session(room, checked, call, is_cookie, label, user_agent)
    finally:
        if checked.dek is not None:
            checked.dek.zero()


async def _begin_session(  # noqa: PLR0913, PLR0917 - as sign_in
    room: Strongroom,
    checked: Checked,
    call: Call,
    is_cookie: bool,  # noqa: FBT001 - as sign_in
    label: str,
    user_agent: str | None,
) -> SignedIn:
    account, dek = checked.account, checked.dek
    now = room.clock()
    token = tokens.mint("session", new_uuid7(now))
    slot = None
    if dek is not None and account.dek_id is not None:
        slot_id = SlotId(new_uuid7(now))
        slot = slot_under(token, dek, account.id, account.dek_id, slot_id, label=label)
    new = NewSession(
        id=SessionId(token.id),
        user_id=account.id,
        kind="browser",
        verifier=tokens.verifier(token.secret),
        ends_at=Millis(now + room.settings.session_days * _DAY_MS),
        slot=slot,
        needs_store=slot is not None,
        is_cookie=is_cookie,
        label=label,
        user_agent=user_agent,
        password_checked_at=now,
    )
    attempt = passwords.attempt_of(room, account.username, call.network)
    opened = (account.dek_id, account.database_password, account.password_hash)

    def write(tx: RegistryTransactor) -> AccountRow:
        # The wrap that was opened must still be the member's: a change of password or key
        # meanwhile would otherwise leave a session that outlives it.
        present = accounts.get(tx, account.id)
        secret = (present.dek_id, present.database_password, present.password_hash)
        if not present.active or present.store_state == "erasing" or secret != opened:
            raise InvalidCredentialsError
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
        store, _ = await room.stores.open(
            account_of(account), lambda: Key(bytes(dek.view())) if dek else None
        )
        await record_opening(room, account.id, store, "sign_in", session_id, None, call)
    except StoreError as error:
        telemetry.request_failed(call.action, error.code, call.request_id)
        return False
    return True


async def confirm(room: Strongroom, caller: Caller, password: str, call: Call) -> None:
    """Note that the person behind a session has just given their password.

    Raises:
        HumanSessionRequiredError: It is a token.
        InvalidCredentialsError: The password is wrong.
    """
    caller.require_human()
    checked = await passwords.check_again(room, caller.user_id, password, call)
    if checked.dek is not None:
        checked.dek.zero()
    attempt = passwords.attempt_of(room, checked.account.username, call.network)

    def write(tx: RegistryTransactor) -> None:
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
    """
    caller.require_human()
    if password is not None:
        checked = await passwords.check_again(room, caller.user_id, password, call)
    else:
        account = await room.stores.registry.read(lambda r: accounts.get(r, caller.user_id))
        checked = await check_code(room, account.username, code or "", call)
    dek, account = checked.dek, checked.account
    attempt = passwords.attempt_of(room, account.username, call.network)
    try:
        slot = None
        if dek is not None and account.dek_id is not None and caller.slot_id is None:
            slot_id = SlotId(new_uuid7(room.clock()))
            slot = slot_under(caller.token, dek, account.id, account.dek_id, slot_id)

        def write(tx: RegistryTransactor) -> None:
            if accounts.get(tx, account.id).dek_id != account.dek_id:
                raise InvalidCredentialsError
            throttle.succeed(tx, attempt)
            if password is not None:
                tx.run(sql.SET_PASSWORD_CHECKED, session_id=caller.session_id, now=tx.now_ms)
            if slot is not None:
                sessions.add_slot(tx, slot)
                tx.run(sql.SET_SESSION_SLOT, session_id=caller.session_id, slot_id=slot.id)

        await room.stores.registry.write(write, caller.actor(call))
        store, _ = await room.stores.open(
            caller.account, lambda: Key(bytes(dek.view())) if dek else None
        )
        await record_opening(room, account.id, store, "unlock", caller.session_id, None, call)
    finally:
        if dek is not None:
            dek.zero()


async def check_code(room: Strongroom, username: str, code: str, call: Call) -> Checked:
    """Check a member's recovery code, under the same throttle and with the same refusals.

    Raises:
        InvalidCredentialsError: Wrong, used, unknown, inactive, or a cleartext member.
        TooManyAttemptsError: The throttle.
    """
    attempt = passwords.attempt_of(room, username, call.network)
    registry = room.stores.registry
    actor = anonymous(call)
    await registry.write(lambda tx: throttle.admit(tx, attempt), actor)
    entropy = recovery_code.parse(code)

    def find(reader: RegistryReader) -> Checked | None:
        account = accounts.find_by_name(reader, username)
        if account is None or not account.active or account.store_state == "erasing":
            return None
        slot = reader.one(sql.FIND_RECOVERY_SLOT, user_id=account.id)
        if slot is None or entropy is None or slot.dek_id != account.dek_id:
            return None
        with recovery_code.kek(entropy) as kek:
            try:
                binding = Binding(account.id, "recovery", slot.id)
                return Checked(account, envelope.unwrap(kek, slot.wrapped_dek, binding))
            except UnwrapError:
                return None

    checked = await registry.read(find)
    if checked is None:
        await registry.write(lambda tx: throttle.fail(tx, attempt), actor)
        raise InvalidCredentialsError
    return checked


async def sign_out(room: Strongroom, caller: Caller, call: Call) -> None:
    """End the session and destroy its slot, then lock the store if it was the last way in."""
    await revoke(room, caller, caller.session_id, call)


async def revoke(room: Strongroom, caller: Caller, session_id: str, call: Call) -> None:
    """End one of the caller's sessions or tokens.

    Raises:
        NotFoundError: The caller has no such live session.
    """
    actor = caller.actor(call)

    def write(tx: RegistryTransactor) -> int:
        sessions.revoke(tx, caller.user_id, session_id)
        left = tx.one(sql.COUNT_LIVE_SLOTS, user_id=caller.user_id, now=tx.now_ms)
        return left.value if left else 0

    left = await room.stores.registry.write(write, actor)
    if left == 0 and caller.account.encrypted:
        await lock_everywhere(room, caller.user_id, caller.account.lock_number, actor)


async def lock_everywhere(
    room: Strongroom, user_id: UserId, lock_number: int, actor: Actor
) -> bool:
    """Close a member's store in every process; False when it was not let go in time."""
    try:
        async with room.stores.taken(user_id, lock_number, "closing", actor):
            pass
    except StoreError:
        return False
    return True


