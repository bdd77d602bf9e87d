"""Settles what of each schedule is due, in every store that this process can work in.

A look is one entry of an index on a handle that is open anyway, once a second. To look, and
to tick, is no use of a store: a schedule keeps none from being locked as idle.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from app import telemetry
from app.bridge.strongroom import Strongroom
from app.bridge.work.schedules import watch_of
from app.clock import Millis
from app.db.context import system_actor
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.db.runtime import statements as sql
from app.db.runtime.store import Later
from app.errors.root import StrongroomError
from app.errors.stores import StoreError
from app.runtime import schedules

POLL_S: Final = 1.0
"""Seconds between two looks; a tick is at most so late."""
_ACTOR: Final = system_actor("schedules")
_SLOW_S: Final = 15.0
"""Between two looks at a store whose handles are closed, for what other processes wrote."""
_GLANCES: Final = 200
"""Looks in a row before the loop may do something else."""
_SCHEDULES: Final = 500
"""Schedules of a store that one round settles."""
_STEPS: Final = 20
"""Transactions of a schedule in one round: what was missed for long delays no other."""


@dataclass(slots=True, eq=False)
class _Place:
    """One store that this process can work in."""

    store: OwnerStore
    is_locked_at_times: bool
    since: Millis
    """From when on this process looks."""
    next_at: int | None = None
    """Unix milliseconds; when a tick is next due, as far as known."""
    looked_at: float = 0.0
    """Monotonic seconds of the last slow look."""
    is_rung: bool = True
    told: set[str] = field(default_factory=set)
    """Schedules whose trouble is on record."""
    bell: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Ticker:
    """The schedules of one process's stores."""

    def __init__(self, room: Strongroom) -> None:
        self._room = room
        self._places: dict[OwnerStore, _Place] = {}
        self._looks_left = 0

    async def round(self) -> None:
        """Settle what is due now, everywhere; trouble in one store is none of another's."""
        self._follow()
        self._looks_left = self._room.settings.stale_looks_max
        # Whoever waits longest for a look comes first, for there may be too many for one round.
        places = sorted(self._places.values(), key=lambda place: place.looked_at)
        for number, place in enumerate(places):
            if number % _GLANCES == _GLANCES - 1:
                await asyncio.sleep(0)
            if self._is_due(place):
                await self._guarded(place, "", partial(self._settle, place))

    def close(self) -> None:
        """Look no more."""
        for place in self._places.values():
            place.bell.close()
        self._places.clear()

    def _follow(self) -> None:
        """Take up the stores that have come, and forget those that have gone."""
        live = dict.fromkeys(self._room.stores.live())
        for store in self._places.keys() - live.keys():
            self._places.pop(store).bell.close()
        for store in live:
            if store not in self._places:
                self._places[store] = self._place(store)

    def _place(self, store: OwnerStore) -> _Place:
        place = _Place(store, store is not self._room.stores.group, self._room.clock())

        def ring() -> None:
            place.is_rung = True

        place.bell.enter_context(store.bell.calling(ring))
        return place

    def _is_due(self, place: _Place) -> bool:
        """Whether a tick is due in a store, or it must be asked by a thread."""
        now, seconds = self._room.clock(), time.monotonic()
        found = place.store.glance(sql.FIND_NEXT_TICK)
        if not isinstance(found, Later):
            place.is_rung = False
            place.next_at = None if found is None else found.value
            return place.next_at is not None and place.next_at <= now
        is_known_due = place.next_at is not None and place.next_at <= now
        is_called = is_known_due or place.is_rung
        if not is_called:
            if seconds - place.looked_at < _SLOW_S or not self._looks_left:
                return False
            self._looks_left -= 1
        place.is_rung = False
        place.looked_at = seconds
        return True

    async def _settle(self, place: _Place) -> None:
        due = await place.store.watch(lambda reader: schedules.list_due(reader, _SCHEDULES))
        for schedule_id in due:
            await self._guarded(place, schedule_id, partial(self._settle_one, place, schedule_id))
        place.next_at = await place.store.watch(schedules.next_tick)

    async def _settle_one(self, place: _Place, schedule_id: str) -> None:
        room = self._room

        def settle(tx: OwnerTransactor) -> bool:
            watch = watch_of(room, place.since, place.is_locked_at_times)
            is_more = schedules.settle(tx, schedule_id, watch)
            room.reach("schedule.written")
            return is_more

        room.reach("schedule.due")
        for _ in range(_STEPS):
            if not await place.store.write(settle, _ACTOR, is_watch=True):
                break
        room.reach("schedule.settled")
        place.told.discard(schedule_id)

    async def _guarded(
        self, place: _Place, name: str, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Do one store's or schedule's work; what stands in its way is told once."""
        try:
            await work()
        except StoreError:
            # Closed, busy or full: it is looked at again with the next round.
            return
        except Exception as error:  # noqa: BLE001 - the boundary of one schedule
            if isinstance(error, StrongroomError) or name not in place.told:
                telemetry.unexpected("schedules", error)
            place.told.add(name)
