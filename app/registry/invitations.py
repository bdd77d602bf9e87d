"""Invitations: single use, a few days, known by their verifiers alone."""

from app.crypto import tokens
from app.crypto.tokens import Token
from app.db.registry import statements as sql
from app.db.registry.rows import InvitationRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors import InvalidCredentialsError, NotFoundError
from app.ids import RoleId, UserId


def add(
    tx: RegistryTransactor, token: Token, role_id: str, invited_by: UserId, hours: int
) -> InvitationRow:
    """Write one that the token's bearer can accept within so many hours."""
    tx.run(
        sql.ADD_INVITATION,
        id=token.id,
        verifier=tokens.verifier(token.secret),
        role_id=role_id,
        invited_by=invited_by,
        expires_at=tx.now_ms + hours * 3_600_000,
        now=tx.now_ms,
    )
    row = tx.one(sql.FIND_INVITATION, invitation_id=token.id)
    if row is None:
        raise NotFoundError
    return row


Invitation = InvitationRow
"""One invitation."""


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
    """The invitation this token is for, still good.

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
    """Take it, once; the role it gives.

    Raises:
        InvalidCredentialsError: Somebody took it meanwhile, or it has ended.
    """
    taken = tx.run(sql.USE_INVITATION, invitation_id=invitation_id, now=tx.now_ms)
    if not taken:
        raise InvalidCredentialsError
    return RoleId(taken[0].value)
