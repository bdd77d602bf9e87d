"""An owner's secrets: named values that no list, event or log ever shows."""

from app.db.owner import statements
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError
from app.owner.text import measure


def set_secret(tx: OwnerTransactor, key: str, sealed: bytes) -> None:
    """Set a secret, over an old one of the name.

    Args:
        tx: The store's transaction.
        key: Its name.
        sealed: Its value; sealed by the caller where the file is not encrypted.

    Raises:
        InvalidInputError: The name cannot be stored.
    """
    measure(key)
    tx.run(statements.SET_SECRET, key=key, sealed=sealed, now=tx.now_ms)


def get_secret(reader: OwnerReader, key: str) -> bytes:
    """Read a secret's value.

    Returns:
        It, as it was set.

    Raises:
        NotFoundError: There is none of this name.
        InvalidInputError: No secret can have this name.
    """
    measure(key)
    found = reader.one(statements.FIND_SECRET, key=key)
    if found is None:
        raise NotFoundError
    return found.value


def remove_secret(tx: OwnerTransactor, key: str) -> None:
    """Destroy a secret.

    Raises:
        NotFoundError: There is none of this name.
        InvalidInputError: No secret can have this name.
    """
    measure(key)
    if not tx.run(statements.REMOVE_SECRET, key=key):
        raise NotFoundError
