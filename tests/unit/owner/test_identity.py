"""Whose file a store is."""

from pathlib import Path

import pytest

from app.db.owner.store import FORMAT
from app.errors.stores import StoreDamagedError, StoreError, StoreSwappedError, StoreTooNewError
from app.ids import DekId
from app.owner.identity import get_identity, require_identity, set_identity
from tests.support.stores import ANA, BEN, DEK, OwnerFile, owner_file

_OTHER = DekId("another")


@pytest.mark.parametrize(
    ("owner_id", "dek_ids", "error"),
    [
        pytest.param(ANA, {DEK}, None, id="its own"),
        pytest.param(ANA, {DEK, _OTHER}, None, id="during a change of key"),
        pytest.param(BEN, {DEK}, StoreSwappedError, id="another owner"),
        pytest.param(ANA, {_OTHER}, StoreSwappedError, id="another key"),
        pytest.param(ANA, set(), StoreSwappedError, id="an encrypted file for a plain one"),
    ],
)
def test_a_file_is_its_owners_alone(
    store: OwnerFile, owner_id: str, dek_ids: set[DekId], error: type[StoreError] | None
) -> None:
    """A file passes for its owner under a key it may have, and for nothing else."""
    if error is None:
        require_identity(store.reader, owner_id, frozenset(dek_ids))
    else:
        with pytest.raises(error):
            require_identity(store.reader, owner_id, frozenset(dek_ids))


def test_a_plain_file_has_no_key(tmp_path: Path) -> None:
    """A plain file passes where no key is expected, and not where one is."""
    with owner_file(tmp_path, encrypted=False) as store:
        require_identity(store.reader, ANA, frozenset())
        with pytest.raises(StoreSwappedError):
            require_identity(store.reader, ANA, frozenset({DEK}))


def test_a_newer_form_is_told_from_a_swapped_file(store: OwnerFile) -> None:
    """A file of a newer program says so, whatever else its identity holds."""
    with store.write():
        store.rows("UPDATE store_identity SET format = format + 1, owner_id = 'whoever'")
    with pytest.raises(StoreTooNewError):
        require_identity(store.reader, ANA, frozenset({DEK}))


def test_an_unfinished_file_is_damaged(store: OwnerFile) -> None:
    """A file without an identity belongs to no one."""
    with store.write():
        store.rows("DELETE FROM store_identity")
    with pytest.raises(StoreDamagedError):
        require_identity(store.reader, ANA, frozenset({DEK}))


def test_a_new_key_changes_its_name_alone(store: OwnerFile) -> None:
    """After a change of key the file keeps its epoch and the key of its path digests."""
    before = get_identity(store.reader)
    assert before.format == FORMAT
    store.clock.advance(1)
    with store.write() as tx:
        set_identity(tx, ANA, _OTHER)
    assert get_identity(store.reader) == before._replace(dek_id=_OTHER)


def test_an_identity_is_not_handed_over(store: OwnerFile) -> None:
    """A file never becomes another owner's."""
    before = get_identity(store.reader)
    with pytest.raises(StoreSwappedError), store.write() as tx:
        set_identity(tx, BEN, DEK)
    assert get_identity(store.reader) == before


def test_an_identity_keeps_its_key_out_of_sight(store: OwnerFile) -> None:
    """The key of the path digests is in no representation."""
    identity = get_identity(store.reader)
    assert len(identity.path_key) == 32
    assert repr(identity) == f"<IdentityRow {ANA}>"
