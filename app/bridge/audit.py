"""The record of changes in system.db: listed to who may read it, checked from outside."""

from app.bridge import inspection
from app.bridge.strongroom import Strongroom
from app.clock import Clock, system_clock
from app.runtime import audit
from app.runtime.audit import Change, ChangeFilter, Head, Verdict
from app.settings import Settings


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
    with inspection.reading(settings, clock) as reader:
        return audit.verify(reader, kept)


def head(settings: Settings, clock: Clock = system_clock) -> Head | None:
    """The end of the chain of a root; None while nothing is chained.

    Returns:
        What is to be kept elsewhere.

    Raises:
        UnreadableRootError: The root cannot be read.
        StoreError: system.db is in trouble; which, says its type.
    """
    with inspection.reading(settings, clock) as reader:
        return audit.head(reader)
