"""What administrators do to members: make, change, deactivate, invite, connect."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from app.bridge import flags
from app.bridge.access import require_still
from app.bridge.accounts import erasure, passwords
from app.bridge.accounts.erasure import Receipt
from app.bridge.accounts.revocation import lock_everywhere
from app.bridge.accounts.signup import NewMember, SignedUp, sign_up
from app.bridge.callers import Call, Caller
from app.bridge.stores import OPEN
from app.bridge.strongroom import Strongroom, uncut
from app.bridge.taking import CLOSING, taken
from app.crypto import passwords as password_rule
from app.crypto import tokens
from app.crypto.tokens import Token
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow, InvitationRow
from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotPermittedError
from app.errors.conflicts import KeyNotHeldError, VersionConflictError
from app.errors.stores import StoreBusyError
from app.ids import new_uuid7
from app.registry import accounts, invitations, sessions
from app.registry.accounts import ADMIN
from app.runtime.idempotency import Once
from app.runtime.versions import Match, require_version

PASSWORD: Final = "password"  # noqa: S105 - a field's name


def require_may_grant(caller: Caller, role_id: str) -> None:
    """Refuse to make an administrator by one who is none.

    Raises:
        NotPermittedError: The capability to manage users does not reach that far.
    """
    if role_id == ADMIN and caller.role_id != ADMIN:
        raise NotPermittedError


async def add_member(room: Strongroom, caller: Caller, new: NewMember, call: Call) -> SignedUp:
    """Make a member with a temporary password; no recovery code, for it would be the maker's."""
    require_may_grant(caller, new.role_id)
    return await sign_up(
        room, new, call, caller.actor(call), lambda tx: require_still(room, tx, caller)
    )


@uncut
async def patch_member(  # noqa: PLR0913 - the call's six facts, one of them by name
    room: Strongroom,
    caller: Caller,
    user_id: str,
    changes: Mapping[str, Any],
    call: Call,
    *,
    match: frozenset[int] | None = None,
) -> AccountRow:
    """Change what an administrator may set; deactivation takes effect before this returns.

    Args:
        room: The service.
        caller: The administrator.
        user_id: Whom.
        changes: Values by the names of `PROFILE_FIELDS`, and `password`.
        call: The request.
        match: Versions of which one must stand; None for any.

    Returns:
        The member as they are now.

    Raises:
        NotFoundError: Nobody has this id.
        NotPermittedError: Only an administrator makes or changes administrators.
        KeyNotHeldError: A password was given for an encrypted member.
        LastAdministratorError: Nobody would be left to administer.
        VersionConflictError: Another version stands.
        StoreBusyError: The member's store was not let go in time; nothing was changed.
    """
    before = await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    may_grant_admin = caller.role_id == ADMIN
    if before.role_id == ADMIN and not may_grant_admin:
        raise NotPermittedError
    profile = {name: value for name, value in changes.items() if name != PASSWORD}
    verifier = await _verifier_for(room, before, changes, call)

    def write(tx: RegistryTransactor) -> AccountRow:
        if verifier is not None:
            require_still(room, tx, caller)
        row = accounts.set_profile(
            tx, user_id, profile, may_grant_admin=may_grant_admin, match=match
        )
        if verifier is not None:
            _give_password(tx, before, verifier)
        if verifier is not None or not row.active:
            sessions.revoke_all(tx, row.id)
        return _in_service(accounts.get(tx, user_id))

    actor = caller.actor(call)
    if profile.get("active") is False:
        return await _close_and_write(room, before, write, actor, call.once)
    row = await room.stores.registry.write(write, actor, once=call.once)
    if verifier is not None:
        await room.stores.registry.checkpoint()
    return row


async def _verifier_for(
    room: Strongroom, member: AccountRow, changes: Mapping[str, Any], call: Call
) -> bytes | None:
    """The verifier of a new password; None when none is given."""
    if PASSWORD not in changes:
        return None
    if member.encrypted:
        raise KeyNotHeldError
    password = changes[PASSWORD]
    await room.stores.on_thread(lambda: password_rule.check(password, member.username))
    return await passwords.hash_password(room, password, call.network)


def _give_password(tx: RegistryTransactor, member: AccountRow, verifier: bytes) -> None:
    given = tx.run(
        sql.SET_PASSWORD_HASH,
        user_id=member.id,
        was=member.password_hash,
        password_hash=verifier,
        is_temporary=1,
        now=tx.now_ms,
    )
    if not given:
        raise VersionConflictError(accounts.get(tx, member.id).version)


async def _close_and_write(
    room: Strongroom,
    member: AccountRow,
    write: Callable[[RegistryTransactor], AccountRow],
    actor: Actor,
    once: Once | None = None,
) -> AccountRow:
    """Write with the store closed everywhere: one that is not let go changes nothing."""
    registry = room.stores.registry
    async with taken(room, member.id, member.lock_number, CLOSING, actor, once=once) as hold:
        room.reach("close.taken")
        row = await registry.write(write, actor, once=hold.once)
        room.reach("close.written")
    await registry.checkpoint()
    return row


def _in_service(row: AccountRow) -> AccountRow:
    """A member as they are once the store that is closed for them is back in service."""
    return row._replace(store_state=OPEN) if row.store_state == CLOSING else row


@uncut
async def deactivate(room: Strongroom, user_id: str, actor: Actor) -> AccountRow:
    """Close a member's account: sessions, tokens and their slots end, the store is let go.

    Returns:
        The member as they are now.

    Raises:
        NotFoundError: Nobody has this id.
        LastAdministratorError: Nobody would be left to administer.
        StoreBusyError: The member's store was not let go in time; nothing was changed.
    """
    member = await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))

    def write(tx: RegistryTransactor) -> AccountRow:
        row = accounts.set_profile(tx, member.id, {"active": False}, may_grant_admin=True)
        sessions.revoke_all(tx, row.id)
        return _in_service(accounts.get(tx, row.id))

    return await _close_and_write(room, member, write, actor)


async def erase_member(
    room: Strongroom, caller: Caller, user_id: str, call: Call, match: Match = None
) -> Receipt:
    """Erase a member; an administrator, only by another.

    Returns:
        What was taken away.

    Raises:
        NotFoundError: Nobody has this id.
        NotPermittedError: The capability to manage users does not reach that far.
        LastAdministratorError: Nobody would be left to administer.
        StoreBusyError: The member's store was not let go in time; nothing was changed.
        VersionConflictError: Another version stands.
    """

    def admit(member: AccountRow) -> None:
        require_may_grant(caller, member.role_id)
        require_version(member.version, match)

    return await erasure.erase(room, user_id, call, caller.actor(call), admit)


async def invite(
    room: Strongroom, caller: Caller, role_id: str, call: Call
) -> tuple[Token, InvitationRow]:
    """Make an invitation; its token is shown once.

    Returns:
        The token, and the invitation.

    Raises:
        NotPermittedError: The caller may not give that role.
        InvalidInputError: There is no such role.
        TurnedOffError: Nobody is invited for now.
    """
    require_may_grant(caller, role_id)
    await flags.require_on(room, "invitations")
    token = tokens.mint("invite", new_uuid7(room.clock()))
    hours = room.settings.invitation_hours

    def write(tx: RegistryTransactor) -> InvitationRow:
        accounts.require_role(tx, role_id)
        return invitations.add(tx, token, role_id, caller.user_id, hours)

    return token, await room.stores.registry.write(write, caller.actor(call))


async def require_invitation(room: Strongroom, token: Token | None) -> InvitationRow:
    """Judge an invitation's token, before anything else of the request.

    Returns:
        The invitation.

    Raises:
        InvalidCredentialsError: It is no good invitation.
        TurnedOffError: It is good, and nobody is invited for now.
    """
    found = await room.stores.registry.read(lambda reader: invitations.require(reader, token))
    await flags.require_on(room, "invitations")
    return found


async def accept(
    room: Strongroom, invitation: InvitationRow, new: NewMember, call: Call, actor: Actor
) -> SignedUp:
    """Make the invited member, and take the invitation, in one step.

    Returns:
        The member, and their recovery code.

    Raises:
        InvalidCredentialsError: Somebody took it meanwhile.
    """

    def admit(tx: RegistryTransactor) -> None:
        invitations.use(tx, invitation.id)

    return await sign_up(room, new, call, actor, admit)


async def lock_member(
    room: Strongroom, user_id: str, actor: Actor, once: Once | None = None
) -> None:
    """Close a member's store in every process; the next valid credential opens it again.

    Args:
        room: The service.
        user_id: Whose.
        actor: Who does it.
        once: Of the request; None for the operator's command.

    Raises:
        NotFoundError: Nobody has this id.
        StoreBusyError: It was not let go in time.
    """
    account = await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    if not await lock_everywhere(room, account.id, account.lock_number, actor, once):
        raise StoreBusyError
