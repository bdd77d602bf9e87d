"""The record of changes in system.db: listed to who may read it, checked from outside."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from app.bridge.arguments import Answer, Arguments, Command, command
from app.bridge.reading import reading
from app.bridge.strongroom import Strongroom
from app.clock import Clock, system_clock
from app.db.context import system_actor
from app.db.registry.store import RegistryTransactor
from app.runtime import audit, operator_actions
from app.runtime.audit import Change, ChangeFilter, Head, Verdict
from app.settings import Settings

_ACTOR: Final = system_actor("audit.trim")


class _Trim(Arguments):
    """Up to which row the oldest go."""

    through: Annotated[int, Field(ge=1)]


async def list_changes(
    room: Strongroom, which: ChangeFilter, before: int | None, limit: int
) -> list[Change]:
    """Changes, newest first; see `app.runtime.audit.list_changes`."""
    return await room.stores.registry.read(
        lambda reader: audit.list_changes(reader, which, before, limit)
    )


def verify(settings: Settings, kept: bytes | None, clock: Clock = system_clock) -> Verdict:
    """Check the chain of a root, whether or not it is served.

    Args:
        settings: Of the root.
        kept: The hash of a head that was kept elsewhere.
        clock: The time.

    Returns:
        What was found.

    Raises:
        UnreadableRootError: The root cannot be read.
        StoreError: system.db is in trouble; which, says its type.
    """
    with reading(settings, clock) as reader:
        return audit.verify(reader, kept)


def head(settings: Settings, clock: Clock = system_clock) -> Head | None:
    """The end of the chain of a root; None while nothing is chained.

    Returns:
        What is to be kept elsewhere.

    Raises:
        UnreadableRootError: The root cannot be read.
        StoreError: system.db is in trouble; which, says its type.
    """
    with reading(settings, clock) as reader:
        return audit.head(reader)


async def _trim(room: Strongroom, asked: _Trim) -> Answer:
    """Remove the oldest rows; a checkpoint stands for them, and the act is on record."""

    def write(tx: RegistryTransactor) -> int:
        removed = audit.remove_through(tx, asked.through)
        state = {"removed": removed}
        operator_actions.record(tx, "audit.trim", str(asked.through), state, operator_actions.BOX)
        return removed

    removed = await room.stores.registry.write(write, _ACTOR)
    await room.stores.registry.checkpoint()
    return {"removed": removed, "through": asked.through}


COMMANDS: Final[Mapping[str, Command]] = {"audit.trim": command(_Trim, _trim)}
"""The operator's."""
