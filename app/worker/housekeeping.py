"""Housekeeping in every store that this process can work in: a round an hour, each by one process.

To keep house is no use of a store: it keeps none from being locked as idle.
"""

import secrets
import socket
from typing import Final

from app import telemetry
from app.bridge.strongroom import Strongroom
from app.bridge.work import housekeeping as bridge
from app.db.owner.store import OwnerStore
from app.errors.conflicts import LeaseLostError
from app.errors.stores import StoreError
from app.ids import UserId
from app.runtime import housekeeping

POLL_S: Final = 5.0
"""Seconds between two looks at which store has a round due."""
_TRY_AGAIN_MS: Final = 60_000
"""After trouble in a store."""


class Housekeeper:
    """The rounds of one process's stores, one after another."""

    def __init__(self, room: Strongroom) -> None:
        self._room = room
        self._owner = f"{socket.gethostname()}/{secrets.token_hex(4)}"
        self._next_at: dict[OwnerStore, int] = {}

    async def round(self) -> None:
        """Do what rounds are due; trouble in one store is none of another's."""
        stores = self._stores()
        self._next_at = {store: at for store, at in self._next_at.items() if store in stores}
        for store, user_id in stores.items():
            # A time far ahead is one by a clock that was set back since.
            next_at = self._next_at.get(store, 0)
            ahead = next_at - self._room.clock()
            if 0 < ahead <= self._room.settings.housekeeping_s * 1000:
                continue
            await self._keep(user_id, store)

    def _stores(self) -> dict[OwnerStore, UserId | None]:
        unlocked = self._room.stores.unlocked()
        return {
            self._room.stores.group: None,
            **{each.store: user_id for user_id, each in unlocked.items()},
        }

    async def _keep(self, user_id: UserId | None, store: OwnerStore) -> None:
        terms = bridge.terms_of(self._room.settings)
        self._next_at[store] = self._room.clock() + _TRY_AGAIN_MS
        try:
            row = await store.watch(housekeeping.find)
            due_at = housekeeping.due_at(row, self._room.clock(), terms)
            if due_at <= self._room.clock():
                removed = await bridge.run(self._room, user_id, store, self._owner)
                if removed:
                    telemetry.housekeeping_done(removed)
                row = await store.watch(housekeeping.find)
                due_at = housekeeping.due_at(row, self._room.clock(), terms)
            self._next_at[store] = due_at
        except (StoreError, LeaseLostError):
            # Closed or busy, or taken over: another process, or the next unlock, goes on.
            return
        except Exception as error:  # noqa: BLE001 - the boundary of one store
            telemetry.unexpected("housekeeping", error)
