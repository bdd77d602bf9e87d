"""An owner's secrets."""

from collections.abc import Callable

import pytest

from app.db.owner.rows import SecretRow
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.owner.secrets import get_secret, remove_secret, set_secret
from tests.support.stores import OwnerFile

_CANARY = b"canary-of-a-secret"


def test_a_secret_is_given_back_as_it_was_set(store: OwnerFile) -> None:
    """The last value set is the one read, byte by byte."""
    with store.write() as tx:
        set_secret(tx, "mail", b"first")
        set_secret(tx, "mail", _CANARY)
    assert get_secret(store.reader, "mail") == _CANARY


def test_a_removed_secret_is_gone(store: OwnerFile) -> None:
    """After removal there is nothing to read or to remove."""
    with store.write() as tx:
        set_secret(tx, "mail", _CANARY)
        remove_secret(tx, "mail")
    with pytest.raises(NotFoundError):
        get_secret(store.reader, "mail")
    with pytest.raises(NotFoundError), store.write() as tx:
        remove_secret(tx, "mail")


def test_no_record_holds_a_value(store: OwnerFile) -> None:
    """Events and audit say that a secret changed, never to what; nor does a representation."""
    with store.write() as tx:
        set_secret(tx, "mail", _CANARY)
        set_secret(tx, "mail", _CANARY + b"2")
        remove_secret(tx, "mail")
    records = store.rows("SELECT payload FROM sys_events") + store.rows(
        "SELECT fields FROM sys_audit"
    )
    assert len(records) == 6
    assert "canary" not in repr(records)
    assert "canary" not in repr(SecretRow(_CANARY))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda tx: set_secret(tx, "\ud800", b""), id="set"),
        pytest.param(lambda tx: get_secret(tx, "\ud800"), id="get"),
        pytest.param(lambda tx: remove_secret(tx, "\ud800"), id="remove"),
    ],
)
def test_a_name_that_cannot_be_stored_is_refused(
    store: OwnerFile, call: Callable[[object], object]
) -> None:
    """Such a name is an input error everywhere."""
    with pytest.raises(InvalidInputError), store.write() as tx:
        call(tx)
