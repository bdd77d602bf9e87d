"""Invitations: single use, a few days, known by their verifiers alone."""

from typing import Final

from app.clock import Millis
from app.crypto import tokens
from app.crypto.tokens import Token
from app.db.registry import statements as sql
from app.db.registry.rows import InvitationRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import InvalidCredentialsError, NotFoundError
from app.ids import InvitationId, RoleId, UserId

_HOUR_MS: Final = 3_600_000

Invitation = InvitationRow
"""One invitation."""


def add(
    tx: RegistryTransactor, token: Token, role_id: str, invited_by: UserId, hours: int
) -> InvitationRow:
    """Write one that the token's bearer can accept within so many hours."""
    row = InvitationRow(
        id=InvitationId(token.id),
        verifier=tokens.verifier(token.secret),
        role_id=RoleId(role_id),
        invited_by=invited_by,
        expires_at=tx.now_ms + hours * _HOUR_MS,
        used_at=None,
        created_at=tx.now_ms,
    )
    tx.run(
        sql.ADD_INVITATION,
        id=row.id,
        verifier=row.verifier,
        role_id=row.role_id,
        invited_by=row.invited_by,
        expires_at=row.expires_at,
        now=row.created_at,
    )
    return row


def list_good(reader: RegistryReader) -> list[InvitationRow]:
    """Those that can still be accepted; newest first."""
    return reader.all(sql.LIST_INVITATIONS, now=reader.now_ms)


def take_back(tx: RegistryTransactor, invitation_id: str) -> None:
    """Void one that nobody has accepted.

    Raises:
        NotFoundError: There is no such one.
    """
    if not tx.run(sql.REMOVE_INVITATION, invitation_id=invitation_id):
        raise NotFoundError


def require(reader: RegistryReader, token: Token | None) -> InvitationRow:
    """Judge an invitation's token.

    Returns:
        The invitation it is for, still good.

    Raises:
        InvalidCredentialsError: Unknown, used, ended, or another's secret.
    """
    if token is None or token.kind != "invite":
        raise InvalidCredentialsError
    row = reader.one(sql.FIND_INVITATION, invitation_id=token.id)
    if (
        row is None
        or not tokens.verifier_matches(token.secret, row.verifier)
        or row.used_at is not None
        or row.expires_at <= reader.now_ms
    ):
        raise InvalidCredentialsError
    return row


def use(tx: RegistryTransactor, invitation_id: str) -> RoleId:
    """Take an invitation, once.

    Returns:
        The role it gives.

    Raises:
        InvalidCredentialsError: Somebody took it meanwhile, or it has ended.
    """
    taken = tx.run(sql.USE_INVITATION, invitation_id=invitation_id, now=tx.now_ms)
    if not taken:
        raise InvalidCredentialsError
    return RoleId(taken[0].value)


def prune(tx: RegistryTransactor, before: Millis, limit: int) -> int:
    """Take invitations that were used, or at their end, before a time off the record; how many."""
    return len(tx.run(sql.REMOVE_OLD_INVITATIONS, before=before, limit=limit))
