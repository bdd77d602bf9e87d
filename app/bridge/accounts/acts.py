"""What others did to a member's account is copied into the member's own store.

At each unlock, and when the member asks. No transaction spans the two files: a copy is told
by its source, so one that is made twice is there once.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from app import telemetry
from app.bridge.access import with_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.db.context import system_actor
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.pool import StoreClosedError
from app.db.registry.store import RegistryReader, RegistryStore
from app.errors.stores import StoreError
from app.ids import UserId
from app.owner import acts as own
from app.registry import acts as recorded
from app.registry.acts import RecordedAct

T = TypeVar("T")
_ACTOR: Final = system_actor("acts")
_BATCH: Final = 200


class Acts:
    """Copies them at each unlock."""

    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry

    async def joined(self, user_id: UserId, store: OwnerStore) -> None:
        """Copy what is new since the last time."""
        await copy(self._registry, user_id, store)

    async def leaving(self, user_id: UserId, store: OwnerStore) -> None:
        """Nothing is under way."""


async def copy(registry: RegistryStore, user_id: UserId, store: OwnerStore) -> int:
    """Copy what others did to a member's account since the last copy.

    Args:
        registry: Where it is recorded.
        user_id: The member.
        store: Theirs, unlocked.

    Returns:
        How many acts were new.
    """
    last = await store.read(own.find_last)

    def begin(reader: RegistryReader) -> int:
        if last is None or not recorded.is_recorded(reader, last.seq, last.source):
            # Nothing yet, or the registry is another since: then all of it is looked at.
            return 0
        return last.seq

    place = await registry.read(begin)
    count = 0
    while True:
        found = await _next(registry, user_id, place)
        if not found:
            return count
        await store.write(partial(_add, batch=found), _ACTOR)
        place = found[-1].seq
        count += len(found)


async def _next(registry: RegistryStore, user_id: UserId, place: int) -> list[RecordedAct]:
    return await registry.read(lambda reader: recorded.list_after(reader, user_id, place, _BATCH))


def _add(tx: OwnerTransactor, batch: list[RecordedAct]) -> None:
    for act in batch:
        own.add_act(tx, **act._asdict())


async def read_own(
    room: Strongroom, caller: Caller, call: Call, work: Callable[[OwnerReader], T]
) -> T:
    """Read in the caller's own store, once what others did by now is copied there.

    Returns:
        What the work returned.
    """

    async def copy_and_read(store: OwnerStore) -> T:
        try:
            await copy(room.stores.registry, caller.user_id, store)
        except StoreClosedError:
            raise
        except StoreError as error:
            # A store that cannot be written, as on a full disk, is still read.
            telemetry.request_failed(call.action, error.code, call.request_id)
        return await store.read(work)

    return await with_own(room, caller, call, copy_and_read)
