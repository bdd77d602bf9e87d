"""A member's own secrets changed: password, recovery code, key, recovery from loss."""

from dataclasses import dataclass

from app.bridge.accounts import passwords, rotation
from app.bridge.accounts.codes import check_code, recovery_slot
from app.bridge.accounts.passwords import Checked
from app.bridge.accounts.rotation import Rotated, Rotation
from app.bridge.accounts.signin import note_checked
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom, member_actor, uncut
from app.crypto import kdf
from app.crypto import passwords as password_rule
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.errors.conflicts import StoreNotEncryptedError
from app.errors.inputs import PasswordUnchangedError
from app.ids import SlotId, new_uuid7
from app.registry import sessions, throttle
from app.runtime.versions import Match, require_version


@dataclass(frozen=True, slots=True)
class _Endings:
    """Which of the caller's other ways in end with a new password, and what it depends on."""

    sessions: bool
    tokens: bool
    match: Match
    """Versions of the member of which one must stand; None for any."""

    def apply(self, tx: RegistryTransactor, caller: Caller) -> None:
        """End them; the calling session stays, and is one whose password was just checked."""
        if self.sessions:
            sessions.revoke_others(tx, caller.user_id, "browser", caller.session_id)
        if self.tokens:
            sessions.revoke_others(tx, caller.user_id, "token", sessions.NOBODY)
        tx.run(sql.SET_PASSWORD_CHECKED, session_id=caller.session_id, now=tx.now_ms)


@uncut
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
    match: Match = None,
) -> str | None:
    """Put a new password in the place of the present one.

    The first change of a temporary password ends every other way in, for whoever chose it
    may have made some; where there is a key, it is changed too. So it is when asked for.

    Returns:
        The new recovery code when the key was changed; None otherwise.

    Raises:
        InvalidCredentialsError: The present password is wrong.
        WeakPasswordError: The new one breaks the rule.
        PasswordUnchangedError: The new one is the present one.
        StoreNotEncryptedError: A new key was asked for where there is none.
        StoreBusyError: The store was not let go in time; nothing was changed.
        VersionConflictError: Another version of the member stands.
    """
    caller.require_human()
    checked = await passwords.check_again(room, caller.user_id, current, call)
    account = checked.account
    try:
        require_version(account.version, match)
        await room.stores.on_thread(lambda: password_rule.check(new, account.username))
        # Else a change of a password that somebody else chose would leave it theirs.
        if kdf.normalize(new) == kdf.normalize(current):
            raise PasswordUnchangedError
        if checked.dek is None and rotate_key:
            raise StoreNotEncryptedError
        is_first = bool(account.password_is_temporary)
        if checked.dek is not None and (is_first or rotate_key):
            await note_checked(room, caller, checked, call)
            wanted = Rotation(checked, new, caller, match=match)
            rotated = await rotation.rotate(room, wanted, call, caller.actor(call))
            return rotated.recovery_code
        endings = _Endings(is_first or not keep_sessions, is_first or end_tokens, match)
        await _replace(room, caller, checked, new, call, endings)
    finally:
        checked.zero()
    return None


async def _replace(  # noqa: PLR0913, PLR0917 - as change_password
    room: Strongroom, caller: Caller, checked: Checked, new: str, call: Call, endings: _Endings
) -> None:
    """The same key under a new password, or a new verifier where there is no key."""
    account = checked.account
    attempt = passwords.attempt_of(room, account.username, call.network)
    wrapped = verifier = None
    if checked.dek is not None:
        wrapped = await passwords.wrap(room, account.id, new, checked.dek, call.network)
    else:
        verifier = await passwords.hash_password(room, new, call.network)
    room.reach("password.wrapped")

    def write(tx: RegistryTransactor) -> None:
        require_version(passwords.require_still(tx, checked).version, endings.match)
        sessions.require_live(tx, caller.user_id, caller.session_id)
        if wrapped is not None:
            tx.run(
                sql.SET_PASSWORD_WRAP,
                user_id=account.id,
                was=account.database_password,
                database_password=wrapped.database_password,
                kdf_params=wrapped.kdf_params,
                kdf_salt=wrapped.kdf_salt,
                now=tx.now_ms,
            )
        else:
            tx.run(
                sql.SET_PASSWORD_HASH,
                user_id=account.id,
                was=account.password_hash,
                password_hash=verifier,
                is_temporary=0,
                now=tx.now_ms,
            )
        throttle.succeed(tx, attempt)
        endings.apply(tx, caller)

    await room.stores.registry.write(write, caller.actor(call))
    room.reach("password.written")
    # The old wrap, and the slots that ended, must leave the log as well as the table.
    await room.stores.registry.checkpoint()
    room.reach("password.checkpointed")


@uncut
async def renew_recovery_code(room: Strongroom, caller: Caller, password: str, call: Call) -> str:
    """Make a new recovery code; the one before it opens nothing any more.

    Returns:
        The code.

    Raises:
        StoreNotEncryptedError: A plain file has no key to recover.
        InvalidCredentialsError: The password is wrong.
        StoreBusyError: The key is being changed: this would be a code for nothing.
    """
    checked = await _check_key_holder(room, caller, password, call)
    account, dek = checked.account, checked.dek
    if dek is None or account.dek_id is None:
        raise StoreNotEncryptedError
    with dek:
        slot_id = SlotId(new_uuid7(room.clock()))
        code, slot = recovery_slot(account.id, dek, account.dek_id, slot_id)
    attempt = passwords.attempt_of(room, account.username, call.network)

    def write(tx: RegistryTransactor) -> None:
        passwords.require_still(tx, checked)
        sessions.require_live(tx, caller.user_id, caller.session_id)
        sessions.set_recovery_slot(tx, slot)
        throttle.succeed(tx, attempt)
        tx.run(sql.SET_PASSWORD_CHECKED, session_id=caller.session_id, now=tx.now_ms)

    await room.stores.registry.write(write, caller.actor(call))
    await room.stores.registry.checkpoint()
    return code


@uncut
async def rotate(room: Strongroom, caller: Caller, password: str, call: Call) -> Rotated:
    """Give the caller's store a new key under the same password; this session stays.

    Returns:
        The new recovery code, and what ended.

    Raises:
        StoreNotEncryptedError: A plain file has no key.
        InvalidCredentialsError: The password is wrong.
        StoreBusyError: The store was not let go in time; nothing was changed.
    """
    checked = await _check_key_holder(room, caller, password, call)
    try:
        await note_checked(room, caller, checked, call)
        is_temporary = bool(checked.account.password_is_temporary)
        wanted = Rotation(checked, password, caller, is_temporary)
        return await rotation.rotate(room, wanted, call, caller.actor(call))
    finally:
        checked.zero()


async def _check_key_holder(room: Strongroom, caller: Caller, password: str, call: Call) -> Checked:
    caller.require_human()
    if not caller.account.encrypted:
        raise StoreNotEncryptedError
    return await passwords.check_again(room, caller.user_id, password, call)


@uncut
async def recover(room: Strongroom, username: str, code: str, new: str, call: Call) -> str:
    """Come back with the recovery code: a new password, a new key, a new code; nothing else stays.

    Returns:
        The new recovery code.

    Raises:
        InvalidCredentialsError: The code, or the name, is wrong: one answer.
        WeakPasswordError: The new password breaks the rule.
        StoreBusyError: The store was not let go in time; nothing was changed.
    """
    checked = await check_code(room, username, code, call)
    account = checked.account
    try:
        await room.stores.on_thread(lambda: password_rule.check(new, account.username))
        await _clear_throttle(room, account, call)
        wanted = Rotation(checked, new, keep=None)
        rotated = await rotation.rotate(room, wanted, call, member_actor(account, call))
    finally:
        checked.zero()
    room.reach("recovery.done")
    return rotated.recovery_code


async def _clear_throttle(room: Strongroom, account: AccountRow, call: Call) -> None:
    # Before the key is changed: what fails after that would keep the new code from the member.
    attempt = passwords.attempt_of(room, account.username, call.network)
    await room.stores.registry.write(
        lambda tx: throttle.succeed(tx, attempt), member_actor(account, call)
    )
