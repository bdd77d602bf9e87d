"""Members: names, profiles, administrators."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.conflicts import (
    ConstraintError,
    LastAdministratorError,
    UsernameTakenError,
    VersionConflictError,
)
from app.errors.inputs import InvalidInputError, InvalidUsernameError
from app.registry import accounts
from app.registry.accounts import USERNAME_MAX, require_username, username_key
from tests.support.registry import add_member
from tests.support.stores import MovedClock


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "Ana",
        "ana maria",
        "o'neill",
        "ana@example.org",
        "日本語",
        "Ünïcode",
        "a" * USERNAME_MAX,
    ],
)
def test_an_ordinary_name_is_taken(name: str) -> None:
    """Letters of any script, inner spaces and punctuation are fine, up to 64 characters."""
    require_username(name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("a" * (USERNAME_MAX + 1), id="too long"),
        pytest.param(" ana", id="space before"),
        pytest.param("ana\u3000", id="wide space after"),
        pytest.param("\u00a0", id="space alone"),
        pytest.param("a/b", id="slash"),
        pytest.param("a\uff0fb", id="wide slash"),
        pytest.param("a\x00b", id="NUL"),
        pytest.param("a\nb", id="line"),
        pytest.param("a\u200bb", id="zero width"),
        pytest.param("\u202eana", id="right to left"),
        pytest.param("a\ud800", id="lone surrogate"),
        pytest.param("a\u2028b", id="line separator"),
        pytest.param("a\ue000", id="private use"),
        pytest.param("a\\b", id="backslash"),
        pytest.param("a\uff3cb", id="wide backslash"),
        pytest.param(".", id="dot"),
        pytest.param("..", id="dots"),
        pytest.param("\uff0e\uff0e", id="wide dots"),
        pytest.param("\ufdfa" * 60, id="folds to over 255 bytes"),
    ],
)
def test_a_name_that_misleads_is_refused(name: str) -> None:
    """Nothing invisible, no outer space, nothing that is not one component of a path."""
    with pytest.raises(InvalidUsernameError):
        require_username(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("ana", "ANA", id="case"),
        pytest.param("ana", "\uff21\uff2e\uff21", id="width"),
        pytest.param("jos\u00e9", "jose\u0301", id="form"),
        pytest.param("strasse", "stra\u00dfe", id="sharp s"),
        pytest.param("\ufb01n", "FIN", id="ligature"),
    ],
)
def test_equal_names_have_one_holder(tx: RegistryTransactor, one: str, other: str) -> None:
    """Names that differ in case, width or form alone are the same name."""
    made = add_member(tx, one)
    assert accounts.find_by_name(tx, other) == made
    with pytest.raises(UsernameTakenError):
        accounts.require_free_name(tx, other)
    with pytest.raises(UsernameTakenError):
        add_member(tx, other)


def test_a_long_name_is_not_normalized() -> None:
    """A name longer than any may be costs nothing, and is nobody's."""
    text = "e" + "\u0301\u0323" * 500_000
    assert username_key(text) is text


@given(st.text(max_size=USERNAME_MAX))
def test_a_key_is_its_own_key(name: str) -> None:
    """The folded form of a name folds to itself, so it is one name for ever."""
    key = username_key(name)
    assert len(key) > USERNAME_MAX or username_key(key) == key


def test_nobody_has_an_odd_name(tx: RegistryTransactor) -> None:
    """A text that no database can hold finds nobody, and is no error."""
    assert accounts.find_by_name(tx, "\ud800") is None
    accounts.require_free_name(tx, "ana")


def test_a_member_is_found_by_id(tx: RegistryTransactor) -> None:
    """By theirs, or not at all."""
    made = add_member(tx, "ana")
    assert accounts.get(tx, made.id) == made
    with pytest.raises(NotFoundError):
        accounts.get(tx, "nobody")


def test_members_come_in_pages(tx: RegistryTransactor, clock: MovedClock) -> None:
    """In the order of their making, after a given one."""
    ids = []
    for name in ("ana", "ben", "cyd"):
        clock.advance(1)
        ids.append(add_member(tx, name).id)
    assert [row.id for row in accounts.list_page(tx, "", 2)] == ids[:2]
    assert [row.id for row in accounts.list_page(tx, ids[1], 2)] == ids[2:]


def test_a_lock_number_is_given_once(tx: RegistryTransactor) -> None:
    """None comes twice, though its row is taken away again."""
    numbers = [accounts.take_lock_number(tx) for _ in range(3)]
    assert numbers == sorted(set(numbers))


def test_a_member_needs_a_role_that_is_there(tx: RegistryTransactor) -> None:
    """Another is refused, by the service and by the schema alike."""
    with pytest.raises(InvalidInputError):
        accounts.require_role(tx, "owner")
    with pytest.raises(ConstraintError):
        add_member(tx, "ana", "owner")


def test_a_profile_changes_in_the_fields_that_are_named(tx: RegistryTransactor) -> None:
    """What is not named stays, and the version counts."""
    ana = add_member(tx, "ana")
    changes = {"display_name": "Ana", "birthdate": "2000-02-29", "quota_bytes": 5}
    row = accounts.set_profile(tx, ana.id, changes, may_grant_admin=False)
    assert (row.display_name, row.birthdate, row.quota_bytes) == ("Ana", "2000-02-29", 5)
    row = accounts.set_profile(tx, ana.id, {"display_name": None}, may_grant_admin=False)
    assert (row.display_name, row.birthdate, row.version) == (None, "2000-02-29", 3)


@pytest.mark.parametrize("changes", [{}, {"active": True}, {"display_name": None}])
def test_a_change_that_changes_nothing_leaves_no_trace(
    tx: RegistryTransactor, changes: dict[str, Any]
) -> None:
    """No version, so nobody else's condition fails for nothing."""
    ana = add_member(tx, "ana")
    assert accounts.set_profile(tx, ana.id, changes, may_grant_admin=False).version == 1


def test_a_profile_changes_from_the_version_that_was_read(tx: RegistryTransactor) -> None:
    """A version that does not stand any more changes nothing, and the present one is told."""
    ana = add_member(tx, "ana")
    accounts.set_profile(tx, ana.id, {"sex": "f"}, may_grant_admin=False, match=frozenset({1}))
    with pytest.raises(VersionConflictError) as refused:
        accounts.set_profile(tx, ana.id, {"sex": "m"}, may_grant_admin=False, match=frozenset({1}))
    assert refused.value.current_version == 2
    assert accounts.get(tx, ana.id).sex == "f"


@pytest.mark.parametrize(
    "text", ["2001-02-29", "01-01-2000", "2000-1-1", "today", "3000-01-01", "2000-01-01 ", ""]
)
def test_a_birthdate_is_a_past_day(tx: RegistryTransactor, text: str) -> None:
    """What is no day of the calendar, or is still to come, is refused."""
    ana = add_member(tx, "ana")
    with pytest.raises(InvalidInputError):
        accounts.set_profile(tx, ana.id, {"birthdate": text}, may_grant_admin=True)


@pytest.mark.parametrize(
    ("role", "changes"),
    [
        pytest.param("member", {"role_id": "admin"}, id="makes one"),
        pytest.param("admin", {"role_id": "member"}, id="unmakes one"),
        pytest.param("admin", {"notes": "x"}, id="touches one"),
    ],
)
def test_only_an_administrator_changes_administrators(
    tx: RegistryTransactor, role: str, changes: dict[str, str]
) -> None:
    """The capability to manage users does not reach that far."""
    ana, _ = add_member(tx, "ana", role), add_member(tx, "ben", "admin")
    with pytest.raises(NotPermittedError):
        accounts.set_profile(tx, ana.id, changes, may_grant_admin=False)
    accounts.set_profile(tx, ana.id, changes, may_grant_admin=True)


@pytest.mark.parametrize("changes", [{"role_id": "member"}, {"active": False}])
def test_the_last_administrator_stays(
    tx: RegistryTransactor, changes: dict[str, str | bool]
) -> None:
    """Neither role nor activity of the last one goes; with another active one, it does."""
    ana = add_member(tx, "ana", "admin")
    ben = add_member(tx, "ben", "admin")
    accounts.set_profile(tx, ben.id, {"active": False}, may_grant_admin=True)
    with pytest.raises(LastAdministratorError):
        accounts.set_profile(tx, ana.id, changes, may_grant_admin=True)
    with pytest.raises(LastAdministratorError):
        accounts.require_other_administrator(tx, accounts.get(tx, ana.id))
    # One who is not active is not the last, whatever their role.
    accounts.require_other_administrator(tx, accounts.get(tx, ben.id))
    accounts.set_profile(tx, ben.id, {"active": True}, may_grant_admin=True)
    accounts.set_profile(tx, ana.id, changes, may_grant_admin=True)


def test_a_credential_holds_for_an_active_member_alone(tx: RegistryTransactor) -> None:
    """Neither for an inactive one nor for one who is being erased."""
    ana = add_member(tx, "ana")
    assert accounts.may_sign_in(ana)
    assert accounts.may_sign_in(ana._replace(store_state="rotating"))
    assert not accounts.may_sign_in(ana._replace(active=0))
    assert not accounts.may_sign_in(ana._replace(store_state="erasing"))
