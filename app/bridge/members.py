"""What administrators do to members: make, change, deactivate, invite, connect."""

from collections.abc import Mapping
from typing import Any, Final

from app.bridge import passwords
from app.bridge.callers import Call, Caller
from app.bridge.signin import lock_everywhere
from app.bridge.signup import NewMember, SignedUp, sign_up
from app.bridge.strongroom import Strongroom
from app.crypto import passwords as password_rule
from app.crypto import tokens
from app.crypto.tokens import Token
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow, InvitationRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors import KeyNotHeldError, NotPermittedError, StoreBusyError
from app.ids import new_uuid7
from app.registry import accounts, invitations
from app.registry.accounts import ADMIN

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
    return await sign_up(room, new, call, caller.actor(call), lambda _tx: None)


async def patch_member(
    room: Strongroom, caller: Caller, user_id: str, changes: Mapping[str, Any], call: Call
) -> AccountRow:
    """Change what an administrator may set; deactivation takes effect before this returns.

    Raises:
        NotFoundError: Nobody has this id.
        KeyNotHeldError: A password was given for an encrypted member.
        LastAdministratorError: Nobody would be left to administer.
        StoreBusyError: The member's store was not let go in time; nothing was changed.
    """
    registry = room.stores.registry
    before = await registry.read(lambda reader: accounts.get(reader, user_id))
    may_grant_admin = caller.role_id == ADMIN
    if ADMIN in {before.role_id, changes.get("role_id")} and not may_grant_admin:
        raise NotPermittedError
    profile = {name: value for name, value in changes.items() if name != PASSWORD}
    verifier = None
    if PASSWORD in changes:
        if before.encrypted:
            raise KeyNotHeldError
        await room.stores.on_thread(
            lambda: password_rule.check(changes[PASSWORD], before.username)
        )
        verifier = await passwords.hash_password(room, changes[PASSWORD], call.network)
    actor = caller.actor(call)

    def write(tx: RegistryTransactor) -> AccountRow:
        row = accounts.set_profile(tx, user_id, profile, may_grant_admin=may_grant_admin)
        if verifier is not None:
            tx.run(
                sql.SET_PASSWORD_HASH,
                user_id=user_id,
                was=before.password_hash,
                password_hash=verifier,
                is_temporary=1,
                now=tx.now_ms,
            )
        if verifier is not None or not row.active:
            tx.run(sql.REVOKE_ALL_SESSIONS, user_id=user_id, now=tx.now_ms)
            for kind in ("session", "token"):
                tx.run(sql.REMOVE_SLOTS_OF_KIND, user_id=user_id, kind=kind)
        return row

    if profile.get("active") is False and before.active:
        # Closed everywhere first: a store that is not let go leaves the member as they were.
        async with room.stores.taken(before.id, before.lock_number, "closing", actor):
            row = await registry.write(write, actor)
        await registry.checkpoint()
        return row
    return await registry.write(write, actor)


async def require_may_erase(room: Strongroom, caller: Caller, user_id: str) -> None:
    """Refuse to erase an administrator by one who is none.

    Raises:
        NotFoundError: Nobody has this id.
        NotPermittedError: The capability to manage users does not reach that far.
    """
    account = await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    require_may_grant(caller, account.role_id)


async def invite(room: Strongroom, caller: Caller, role_id: str, call: Call) -> tuple[Token, InvitationRow]:
    """Make an invitation; its token is shown once."""
    require_may_grant(caller, role_id)
    token = tokens.mint("invite", new_uuid7(room.clock()))
    hours = room.settings.invitation_hours

    def write(tx: RegistryTransactor) -> InvitationRow:
        accounts.require_role(tx, role_id)
        return invitations.add(tx, token, role_id, caller.user_id, hours)

    return token, await room.stores.registry.write(write, caller.actor(call))


async def require_invitation(room: Strongroom, token: Token | None) -> InvitationRow:
    """Judge an invitation's token, before anything else of the request.

    Raises:
        InvalidCredentialsError: It is no good invitation.
    """
    return await room.stores.registry.read(lambda reader: invitations.require(reader, token))


async def accept(
    room: Strongroom, invitation: InvitationRow, new: NewMember, call: Call, actor: Actor
) -> SignedUp:
    """Make the invited member, and take the invitation, in one step.

    Raises:
        InvalidCredentialsError: Somebody took it meanwhile.
    """

    def admit(tx: RegistryTransactor) -> None:
        invitations.use(tx, invitation.id)

    return await sign_up(room, new, call, actor, admit)


async def lock_member(room: Strongroom, user_id: str, actor: Actor) -> None:
    """Close a member's store in every process; the next valid credential opens it again.

    Raises:
        NotFoundError: Nobody has this id.
        StoreBusyError: It was not let go in time.
    """

    def find(reader: RegistryReader) -> AccountRow:
        return accounts.get(reader, user_id)

    account = await room.stores.registry.read(find)
    if not await lock_everywhere(room, account.id, account.lock_number, actor):
        raise StoreBusyError
