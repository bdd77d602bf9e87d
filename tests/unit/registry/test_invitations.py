"""Invitations."""

import pytest

from app.crypto import tokens
from app.crypto.tokens import Token
from app.db.registry.store import RegistryTransactor
from app.errors.callers import InvalidCredentialsError, NotFoundError
from app.registry import invitations
from tests.support.registry import add_member
from tests.support.stores import MovedClock

_HOURS = 72


@pytest.fixture
def token(tx: RegistryTransactor) -> Token:
    """An invitation's token."""
    made = tokens.mint("invite", tx.new_id())
    invitations.add(tx, made, "guest", add_member(tx, "ana", "admin").id, _HOURS)
    return made


def test_an_invitation_is_good_once(tx: RegistryTransactor, token: Token) -> None:
    """Whoever takes it gets its role; the next one finds it gone."""
    assert invitations.require(tx, token).role_id == "guest"
    assert [row.id for row in invitations.list_good(tx)] == [token.id]
    assert invitations.use(tx, token.id) == "guest"
    assert invitations.list_good(tx) == []
    with pytest.raises(InvalidCredentialsError):
        invitations.require(tx, token)
    with pytest.raises(InvalidCredentialsError):
        invitations.use(tx, token.id)
    with pytest.raises(NotFoundError):
        invitations.take_back(tx, token.id)


def test_an_invitation_ends(tx: RegistryTransactor, token: Token, clock: MovedClock) -> None:
    """After its hours nobody can take it."""
    clock.advance(_HOURS * 3_600_000)
    with pytest.raises(InvalidCredentialsError):
        invitations.require(tx, token)
    with pytest.raises(InvalidCredentialsError):
        invitations.use(tx, token.id)
    assert invitations.list_good(tx) == []


def test_an_invitation_is_taken_back(tx: RegistryTransactor, token: Token) -> None:
    """Then it is as if there had been none."""
    invitations.take_back(tx, token.id)
    with pytest.raises(InvalidCredentialsError):
        invitations.require(tx, token)
    with pytest.raises(NotFoundError):
        invitations.take_back(tx, token.id)


def test_only_its_own_token_opens_an_invitation(tx: RegistryTransactor, token: Token) -> None:
    """Neither another secret, nor another kind of token, nor none."""
    for wrong in (
        None,
        tokens.mint("invite", token.id),
        tokens.mint("invite", tx.new_id()),
        Token("session", token.id, token.secret),
    ):
        with pytest.raises(InvalidCredentialsError):
            invitations.require(tx, wrong)
