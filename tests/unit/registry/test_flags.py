"""Flags: declared names and types, a default where nobody set one, each change on record."""

import pytest

from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.registry import flags


def test_a_flag_is_its_default_until_it_is_set(tx: RegistryTransactor) -> None:
    """And again once it is unset; every declared one is listed."""
    names = [state.flag.name for state in flags.list_all(tx)]
    assert names == sorted(flags.FLAGS)
    assert all(state.is_default for state in flags.list_all(tx))
    assert flags.get(tx, "webhooks").value is True
    made = flags.set_value(tx, "webhooks", value=False, operator="box")
    assert (made.value, made.is_default) == (False, False)
    assert {s.flag.name: s.value for s in flags.list_all(tx)}["webhooks"] is False
    assert flags.unset(tx, "webhooks", "box").is_default
    assert flags.unset(tx, "webhooks", "box").value is True


def test_each_change_is_on_record_and_no_change_is_none(tx: RegistryTransactor) -> None:
    """With what it was and is, by whom; null is the default."""
    for value in (False, False, True):
        flags.set_value(tx, "invitations", value=value, operator="someone")
    flags.unset(tx, "invitations", "box")
    flags.unset(tx, "invitations", "box")
    found = flags.list_changes(tx, "invitations", None, 10)
    assert {(row.before, row.after, row.changed_by) for row in found} == {
        (None, "false", "someone"),
        ("false", "true", "someone"),
        ("true", None, "box"),
    }
    assert len(found) == 3
    assert flags.list_changes(tx, "invitations", min(row.id for row in found), 10) == []
    assert flags.list_changes(tx, "webhooks", None, 10) == []


def test_an_unknown_name_is_refused(tx: RegistryTransactor) -> None:
    """To read, set, unset and look back."""
    for work in (
        lambda: flags.get(tx, "nosuch"),
        lambda: flags.set_value(tx, "nosuch", value=True, operator="box"),
        lambda: flags.unset(tx, "nosuch", "box"),
        lambda: flags.list_changes(tx, "nosuch", None, 1),
    ):
        with pytest.raises(NotFoundError):
            work()


@pytest.mark.parametrize("value", [0, 1, "true", ""])
def test_a_value_of_another_type_is_refused(tx: RegistryTransactor, value: flags.Value) -> None:
    """A number is no switch, be it 1."""
    with pytest.raises(InvalidInputError):
        flags.set_value(tx, "webhooks", value, "box")


def test_a_row_of_a_type_that_was_is_passed_over() -> None:
    """The declared default stands."""
    assert flags.value_of(flags.FLAGS["webhooks"], '"off"') is True
