"""What the flags steer, as the service asks for it: from the database, each time."""

from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.conflicts import TurnedOffError
from app.registry import flags
from app.registry.flags import Name, State, Value
from app.runtime.versions import Match, require_version


async def is_on(room: Strongroom, name: Name) -> bool:
    """Whether a switch is on; one short row, read on the event loop."""
    row = await room.stores.registry.one(sql.FIND_FLAG, name=name)
    flag = flags.require_declared(name)
    return flags.value_of(flag, None if row is None else row.value) is True


async def require_on(room: Strongroom, name: Name) -> None:
    """Refuse what an administrator has turned off.

    Raises:
        TurnedOffError: It is.
    """
    if not await is_on(room, name):
        raise TurnedOffError


async def set_value(  # noqa: PLR0913, PLR0917 - who, which, what, if
    room: Strongroom, caller: Caller, call: Call, name: str, value: Value, match: Match
) -> State:
    """Set a flag, as an administrator; see `app.registry.flags`.

    Returns:
        It.

    Raises:
        NotFoundError: There is no such flag.
        InvalidInputError: The value is of another type, or too long.
        VersionConflictError: It stands at another version than was asked for.
    """

    def write(tx: RegistryTransactor) -> State:
        require_version(flags.get(tx, name).version, match)
        return flags.set_value(tx, name, value, caller.user_id)

    return await room.stores.registry.write(write, caller.actor(call), once=call.once)


async def unset(room: Strongroom, caller: Caller, call: Call, name: str, match: Match) -> State:
    """Have a flag be its default again, as an administrator.

    Returns:
        It.

    Raises:
        NotFoundError: There is no such flag.
        VersionConflictError: It stands at another version than was asked for.
    """

    def write(tx: RegistryTransactor) -> State:
        require_version(flags.get(tx, name).version, match)
        return flags.unset(tx, name, caller.user_id)

    return await room.stores.registry.write(write, caller.actor(call), once=call.once)
