"""Whose file this is: written when a store is made, required whenever one is opened."""

import secrets

from app.db.files import Admit
from app.db.owner import statements
from app.db.owner.rows import IdentityRow
from app.db.owner.store import FORMAT, OwnerReader, OwnerTransactor
from app.errors.stores import StoreDamagedError, StoreSwappedError, StoreTooNewError
from app.ids import DekId

_EPOCH_BYTES = 8
_PATH_KEY_BYTES = 32


def set_identity(tx: OwnerTransactor, owner_id: str, dek_id: DekId | None) -> None:
    """Make a new file this owner's, or name the key it is under from now on.

    Args:
        tx: The store's transaction.
        owner_id: The member's id, or `instance` for the group's store.
        dek_id: The name of its key; None for a plain file.

    Raises:
        StoreSwappedError: The file is another owner's.
    """
    named = tx.run(
        statements.SET_IDENTITY,
        owner_id=owner_id,
        dek_id=dek_id,
        epoch=secrets.token_hex(_EPOCH_BYTES),
        format=FORMAT,
        path_key=secrets.token_bytes(_PATH_KEY_BYTES),
        now=tx.now_ms,
    )
    if not named:
        raise StoreSwappedError


def get_identity(reader: OwnerReader) -> IdentityRow:
    """Read whose file this is.

    Returns:
        The identity's one row.

    Raises:
        StoreDamagedError: It was never finished.
    """
    identity = reader.one(statements.FIND_IDENTITY)
    if identity is None:
        raise StoreDamagedError
    return identity


def require_identity(reader: OwnerReader, owner_id: str, dek_ids: frozenset[DekId]) -> None:
    """Refuse a file that is not this owner's, or not of a form this program knows.

    Args:
        reader: The store.
        owner_id: Whose it must be.
        dek_ids: The keys it may be under: two during a change of key, none for a plain file.

    Raises:
        StoreTooNewError: A newer program made it.
        StoreSwappedError: Another owner's, or under another key than it should be.
        StoreDamagedError: It was never finished.
    """
    identity = get_identity(reader)
    if identity.format > FORMAT:
        raise StoreTooNewError
    fits = identity.dek_id in dek_ids if dek_ids else identity.dek_id is None
    if identity.owner_id != owner_id or not fits:
        raise StoreSwappedError


def admit_plain(owner_id: str) -> Admit:
    """Make what refuses a plain file that is sound and another owner's, when it is opened.

    An encrypted one needs none: what the key opens is its owner's.

    Args:
        owner_id: Whose it must be.

    Returns:
        What raises as `require_identity` does.
    """
    return lambda connection: require_identity(OwnerReader(connection), owner_id, frozenset())
