"""Recovery codes: made, and checked like passwords."""

import secrets
from typing import Final

from app.bridge.accounts.passwords import Checked, attempt_of
from app.bridge.callers import Call
from app.bridge.strongroom import Strongroom, anonymous
from app.crypto import envelope, recovery_code
from app.crypto.envelope import Binding, UnwrapError
from app.crypto.keys import Key
from app.db.registry import statements as sql
from app.db.registry.store import RegistryReader
from app.errors.callers import InvalidCredentialsError
from app.ids import DekId, SlotId, UserId
from app.registry import accounts, throttle
from app.registry.sessions import NewSlot

_NOBODY: Final = UserId("00000000-0000-0000-0000-000000000000")
_DECOY: Final = secrets.token_bytes(61)
"""Stands in for the slot that a name does not have; no key opens it."""


def recovery_slot(
    user_id: UserId, dek: Key, dek_id: DekId, slot_id: SlotId, *, is_pending: bool = False
) -> tuple[str, NewSlot]:
    """A new recovery code, and the slot it opens."""
    code = recovery_code.generate()
    entropy = recovery_code.parse(code)
    if entropy is None:
        message = "unreachable: a generated code parses"
        raise AssertionError(message)
    with recovery_code.kek(entropy) as kek:
        blob = envelope.wrap(kek, dek, Binding(user_id, "recovery", slot_id))
    return code, NewSlot(slot_id, user_id, "recovery", dek_id, blob, is_pending=is_pending)


async def check_code(room: Strongroom, username: str, code: str, call: Call) -> Checked:
    """Check a member's recovery code, under the same throttle and with the same refusals.

    Returns:
        The member, with their data key and the slot that the code opened.

    Raises:
        InvalidCredentialsError: Wrong, used, unknown, inactive, or a cleartext member.
        TooManyAttemptsError: The throttle.
    """
    attempt = attempt_of(room, username, call.network)
    registry = room.stores.registry
    actor = anonymous(call)
    await registry.write(lambda tx: throttle.admit(tx, attempt), actor)
    entropy = recovery_code.parse(code)
    checked = None
    if entropy is not None:
        with recovery_code.kek(entropy) as kek:
            checked = await registry.read(lambda reader: _open(reader, username, kek))
    if checked is None:
        await registry.write(lambda tx: throttle.fail(tx, attempt), actor)
        raise InvalidCredentialsError
    return checked


def _open(reader: RegistryReader, username: str, kek: Key) -> Checked | None:
    """Try a code on a name; the same steps whether or not the name is anybody's."""
    account = accounts.find_by_name(reader, username)
    user_id = _NOBODY if account is None else account.id
    slot = reader.one(sql.FIND_RECOVERY_SLOT, user_id=user_id)
    blob, slot_id = (_DECOY, SlotId("")) if slot is None else (slot.wrapped_dek, slot.id)
    try:
        dek = envelope.unwrap(kek, blob, Binding(user_id, "recovery", slot_id))
    except UnwrapError:
        return None
    if account is None or slot is None or not accounts.may_sign_in(account):
        dek.zero()
        return None
    return Checked(account, dek, slot_id)
