"""Roles and their attributes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.registry.store import RegistryTransactor
from app.registry import roles
from app.registry.roles import RoleAttrs
from tests.support.registry import give_capability


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("{}", RoleAttrs(), id="empty"),
        pytest.param("[]", RoleAttrs(), id="a list"),
        pytest.param("no json", RoleAttrs(), id="no JSON"),
        pytest.param(
            '{"ui_mode": "simple", "permission_groups": ["a", 1, "b"], "chat_agent": "x", '
            '"auto_grant": false}',
            RoleAttrs("simple", ("a", "b"), "x", auto_grant=False),
            id="all",
        ),
        pytest.param(
            '{"ui_mode": 3, "permission_groups": "a", "chat_agent": "", "auto_grant": "no"}',
            RoleAttrs(),
            id="wrong types",
        ),
    ],
)
def test_attributes_are_read_or_default(text: str, wanted: RoleAttrs) -> None:
    """Each by itself, so that one bad value closes nobody out."""
    assert roles.parse_attrs(text) == wanted


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_reading_attributes_never_fails(text: str) -> None:
    """Whatever the text, there are attributes."""
    assert isinstance(roles.parse_attrs(text), RoleAttrs)


def test_an_administrator_holds_every_capability(tx: RegistryTransactor) -> None:
    """Without a row; another role what it was given, and no more."""
    assert roles.holds(tx, "admin", "operate")
    assert roles.administers(tx, "admin")
    assert not roles.holds(tx, "guest", "users.read")
    assert not roles.administers(tx, "guest")
    give_capability(tx, "guest", "users.read")
    assert roles.holds(tx, "guest", "users.read")
    assert not roles.holds(tx, "guest", "users.manage")
    assert roles.administers(tx, "guest")
    assert ("guest", ["users.read"]) in [(role.id, held) for role, held in roles.list_all(tx)]


def test_a_role_has_its_groups(tx: RegistryTransactor) -> None:
    """Its own, and those among its attributes."""
    (role,) = (role for role, _ in roles.list_all(tx) if role.id == "member")
    assert roles.effective_groups(role) == {"default"}
    more = role._replace(attrs='{"permission_groups": ["kitchen"]}')
    assert roles.effective_groups(more) == {"default", "kitchen"}
