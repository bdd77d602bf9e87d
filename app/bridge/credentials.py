"""A member's own secrets changed: password, recovery code, key, recovery from loss."""

from typing import Final

from app.bridge import passwords, rotation
from app.bridge.callers import Call, Caller
from app.bridge.passwords import Checked
from app.bridge.rotation import Rotated
from app.bridge.signin import check_code
from app.bridge.signup import recovery_slot
from app.bridge.strongroom import Strongroom, member_actor
from app.crypto import passwords as password_rule
from app.crypto.keys import Key
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.errors import InvalidCredentialsError, StoreNotEncryptedError, VersionConflictError
from app.ids import SlotId, new_uuid7
from app.registry import accounts, sessions, throttle

NOBODY: Final = ""
"""An id no session has: ends all of them."""


async def change_password(  # noqa: PLR0913 - each is one field of the request
    room: Strongroom,
    caller: Caller,
    current: str,
    new: str,
    call: Call,
    *,
    keep_sessions: bool = False,
    end_tokens: bool = False,
    rotate_key: bool = False,
) -> str | None:
    """Put a new password in the place of the present one.

    The first change of a temporary password, and one that asks for it, changes the data
    key too: then every other way in ends.

    Returns:
        The new recovery code when the key was changed; None otherwise.

    Raises:
        InvalidCredentialsError: The present password is wrong.
        WeakPasswordError: The new one breaks the rule.
    """
    caller.require_human()
    checked = await passwords.check_again(room, caller.user_id, current, call)
    account, dek = checked.account, checked.dek
    try:
        await room.stores.on_thread(lambda: password_rule.check(new, account.username))
        if dek is None:
            await _set_hash(room, caller, checked, new, call, keep_sessions, end_tokens)
            return None
        if account.password_is_temporary or rotate_key:
            actor = caller.actor(call)
            await _clear_throttle(room, account, call)
            rotated = await rotation.rotate(room, account, dek, new, caller, call, actor)
            return rotated.recovery_code
        await _set_wrap(room, caller, checked, dek, new, call, keep_sessions, end_tokens)
    finally:
        if dek is not None:
            dek.zero()
    return None


async def _set_wrap(  # noqa: PLR0913, PLR0917 - as change_password
    room: Strongroom,
    caller: Caller,
    checked: Checked,
    dek: Key,
    new: str,
    call: Call,
    keep_sessions: bool,  # noqa: FBT001 - as change_password
    end_tokens: bool,  # noqa: FBT001 - as change_password
) -> None:
    account = checked.account
    wrapped = await passwords.wrap(room, account.id, new, dek, call.network)
    attempt = passwords.attempt_of(room, account.username, call.network)
    room.reach("password.wrapped")

    def write(tx: RegistryTransactor) -> None:
        changed = tx.run(
            sql.SET_PASSWORD_WRAP,
            user_id=account.id,
            was=account.database_password,
            database_password=wrapped.database_password,
            kdf_params=wrapped.kdf_params,
            kdf_salt=wrapped.kdf_salt,
            now=tx.now_ms,
        )
        if len(changed) != 1:
            raise InvalidCredentialsError
        throttle.succeed(tx, attempt)
        _end_others(tx, caller, keep_sessions=keep_sessions, end_tokens=end_tokens)

    await room.stores.registry.write(write, caller.actor(call))
    room.reach("password.written")
    # The old wrap must leave the log as well as the table.
    await room.stores.registry.checkpoint()


async def _set_hash(  # noqa: PLR0913, PLR0917 - as change_password
    room: Strongroom,
    caller: Caller,
    checked: Checked,
    new: str,
    call: Call,
    keep_sessions: bool,  # noqa: FBT001 - as change_password
    end_tokens: bool,  # noqa: FBT001 - as change_password
) -> None:
    account = checked.account
    verifier = await passwords.hash_password(room, new, call.network)
    attempt = passwords.attempt_of(room, account.username, call.network)

    def write(tx: RegistryTransactor) -> None:
        changed = tx.run(
            sql.SET_PASSWORD_HASH,
            user_id=account.id,
            was=account.password_hash,
            password_hash=verifier,
            is_temporary=0,
            now=tx.now_ms,
        )
        if len(changed) != 1:
            raise InvalidCredentialsError
        throttle.succeed(tx, attempt)
        _end_others(tx, caller, keep_sessions=keep_sessions, end_tokens=end_tokens)

    await room.stores.registry.write(write, caller.actor(call))


def _end_others(
    tx: RegistryTransactor, caller: Caller, *, keep_sessions: bool, end_tokens: bool
) -> None:
    if not keep_sessions:
        sessions.revoke_others(tx, caller.user_id, "browser", caller.session_id)
    if end_tokens:
        sessions.revoke_others(tx, caller.user_id, "token", NOBODY)
    tx.run(sql.SET_PASSWORD_CHECKED, session_id=caller.session_id, now=tx.now_ms)


async def _clear_throttle(room: Strongroom, account: AccountRow, call: Call) -> None:
    attempt = passwords.attempt_of(room, account.username, call.network)
    await room.stores.registry.write(
        lambda tx: throttle.succeed(tx, attempt), member_actor(account, call)
    )


async def renew_recovery_code(room: Strongroom, caller: Caller, password: str, call: Call) -> str:
    """Make a new recovery code; the one before it opens nothing any more.

    Raises:
        StoreNotEncryptedError: A plain file has no key to recover.
        InvalidCredentialsError: The password is wrong.
    """
    caller.require_human()
    if not caller.account.encrypted:
        raise StoreNotEncryptedError
    checked = await passwords.check_again(room, caller.user_id, password, call)
    account, dek = checked.account, checked.dek
    if dek is None or account.dek_id is None:
        raise StoreNotEncryptedError
    with dek:
        slot_id = SlotId(new_uuid7(room.clock()))
        code, slot = recovery_slot(account.id, dek, account.dek_id, slot_id)
    attempt = passwords.attempt_of(room, account.username, call.network)

    def write(tx: RegistryTransactor) -> None:
        # Judged again: a change of key meanwhile would make this a code for nothing.
        if accounts.get(tx, account.id).dek_id != account.dek_id:
            raise VersionConflictError
        sessions.set_recovery_slot(tx, slot)
        throttle.succeed(tx, attempt)
        tx.run(sql.SET_PASSWORD_CHECKED, session_id=caller.session_id, now=tx.now_ms)

    await room.stores.registry.write(write, caller.actor(call))
    await room.stores.registry.checkpoint()
    return code


async def rotate(room: Strongroom, caller: Caller, password: str, call: Call) -> Rotated:
    """Give the caller's store a new key under the same password; this session stays.

    Raises:
        StoreNotEncryptedError: A plain file has no key.
        InvalidCredentialsError: The password is wrong.
    """
    caller.require_human()
    if not caller.account.encrypted:
        raise StoreNotEncryptedError
    checked = await passwords.check_again(room, caller.user_id, password, call)
    if checked.dek is None:
        raise StoreNotEncryptedError
    with checked.dek as dek:
        await _clear_throttle(room, checked.account, call)
        return await rotation.rotate(
            room, checked.account, dek, password, caller, call, caller.actor(call)
        )


async def recover(room: Strongroom, username: str, code: str, new: str, call: Call) -> str:
    """Come back with the recovery code: a new password, a new key, a new code; nothing else stays.

    Returns:
        The new recovery code.

    Raises:
        InvalidCredentialsError: The code, or the name, is wrong: one answer.
        WeakPasswordError: The new password breaks the rule.
    """
    checked = await check_code(room, username, code, call)
    account, dek = checked.account, checked.dek
    if dek is None:
        raise InvalidCredentialsError
    with dek:
        await room.stores.on_thread(lambda: password_rule.check(new, account.username))
        actor = member_actor(account, call)
        rotated = await rotation.rotate(room, account, dek, new, None, call, actor)
        await _clear_throttle(room, account, call)
        return rotated.recovery_code
