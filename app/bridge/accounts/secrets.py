"""The group's secrets: in system.db, sealed under the instance key.

The seal protects copies and backups, which never hold that key; not the box, which does.
"""

from typing import Final

from app.bridge.strongroom import Strongroom
from app.crypto import envelope
from app.crypto.envelope import UnwrapError
from app.db.context import Actor
from app.errors.stores import StoreDamagedError
from app.owner import secrets

_TABLE: Final = "secrets"
_COLUMN: Final = "value"


async def set_secret(room: Strongroom, name: str, value: bytes, actor: Actor) -> None:
    """Set one, over an old one of the name.

    Args:
        room: The service.
        name: Its name.
        value: Any bytes; they stand nowhere but under the seal.
        actor: Who sets it.

    Raises:
        InvalidInputError: The name cannot be stored.
    """
    key = room.instance_key.secrets
    sealed = envelope.seal(key, value, table=_TABLE, column=_COLUMN, row_id=name)
    await room.stores.group.write(lambda tx: secrets.set_secret(tx, name, sealed), actor)


async def get_secret(room: Strongroom, name: str) -> bytes:
    """Read one.

    Returns:
        Its value, as it was set.

    Raises:
        NotFoundError: There is none of this name.
        StoreDamagedError: It does not open: it was moved from another row, or changed.
    """
    sealed = await room.stores.group.read(lambda reader: secrets.get_secret(reader, name))
    key = room.instance_key.secrets
    try:
        return envelope.open_sealed(key, sealed, table=_TABLE, column=_COLUMN, row_id=name)
    except UnwrapError as error:
        raise StoreDamagedError from error


async def remove_secret(room: Strongroom, name: str, actor: Actor) -> None:
    """Destroy one, in the file and in its log.

    Raises:
        NotFoundError: There is none of this name.
    """
    await room.stores.group.write(lambda tx: secrets.remove_secret(tx, name), actor)
    await room.stores.group.checkpoint()
