"""Live tails of the feed: told of each commit, judged anew all the time.

A tail only follows its store: it keeps none from idle locking, and opens none that nobody
uses. While its store is locked it says nothing; it goes on when somebody uses it again, be it
in another process.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from app.bridge.access import authenticate, follow_own, with_own
from app.bridge.callers import Call, Caller
from app.bridge.content.reports import Home
from app.bridge.notifications import events
from app.bridge.strongroom import Strongroom
from app.db.bell import heard
from app.db.owner.store import OwnerReader, OwnerStore
from app.errors.callers import NotPermittedError
from app.errors.stores import OutOfHandlesError, StoreBusyError, StoreMigratingError
from app.owner import identity
from app.runtime import events as log
from app.runtime.events import Cursor, Page, Types

PAGE: Final = 200
"""Most events that are sent at once."""


class Tail:
    """One caller's way along one log, from `subscribe`; whoever has it closes it."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of one subscription
        self,
        room: Strongroom,
        caller: Caller,
        call: Call,
        home: Home,
        place: Cursor,
        types: Types,
    ) -> None:
        self.place = place
        """After everything that was shown or passed over."""
        self._room = room
        self._caller = caller
        self._call = call
        self._home = home
        self._types = types
        self._store: OwnerStore | None = None
        self._rung = asyncio.Event()
        self._listening = contextlib.ExitStack()
        self._is_open = True

    def close(self) -> None:
        """Hear no more; again is no harm."""
        if self._is_open:
            self._is_open = False
            self._listening.close()
            self._room.streams.leave(self._caller.user_id)

    async def pages(self) -> AsyncIterator[Page | None]:
        """Everything after the place, as it comes, until the process is asked to end.

        Yields:
            What is new; None when nothing was for a while.

        Raises:
            StrongroomError: The caller may not go on, or the log cannot be followed.
        """
        settings = self._room.settings
        clock = asyncio.get_running_loop().time
        spoke_at = clock()
        while not self._room.ending.is_set():
            page = await self._look()
            if page is not None and page.items:
                yield page
                spoke_at = clock()
            elif clock() - spoke_at >= settings.event_heartbeat_s:
                yield None
                spoke_at = clock()
            if page is None or page.is_end:
                await heard(self._rung, settings.event_look_ms / 1000)

    async def _look(self) -> Page | None:
        """Judge the caller, and read on; None while the store is locked, or busy."""
        self._caller = await authenticate(self._room, self._caller.token)
        if not self._caller.is_human and not self._caller.has_scope(events.SCOPE):
            raise NotPermittedError
        try:
            store = await self._attach()
            return None if store is None else await self._read(store)
        except (StoreBusyError, StoreMigratingError, OutOfHandlesError):
            return None

    async def _attach(self) -> OwnerStore | None:
        """The store as it is open here now; its bell is heard before anything is read."""
        store: OwnerStore | None = self._room.stores.group
        if self._home == "own":
            store = await follow_own(self._room, self._caller, self._call)
        if store is not self._store:
            self._listening.close()
            self._store = store
            if store is not None:
                self._rung = self._listening.enter_context(store.bell.listen())
        return store

    async def _read(self, store: OwnerStore) -> Page:
        if not await store.watch(self._has_more):
            return Page([], self.place, is_end=True)
        # Rights are read after the look and before the page: none is older than what it shows.
        admit = await events.admission(self._room, self._caller, self._home, self._types)
        page = await store.watch(
            partial(events.read_log, after=self.place, limit=PAGE, admit=admit)
        )
        self.place = page.next
        return page

    def _has_more(self, reader: OwnerReader) -> bool:
        return _place_in(reader, self.place).seq < log.last_seq(reader)


def _place_in(reader: OwnerReader, after: Cursor | None) -> Cursor:
    epoch = identity.get_identity(reader).epoch
    return Cursor(epoch, log.require_place(reader, epoch, after))


async def subscribe(  # noqa: PLR0913, PLR0917 - the parts of one subscription
    room: Strongroom, caller: Caller, call: Call, home: Home, after: Cursor | None, types: Types
) -> Tail:
    """Begin to follow a log; the store is opened for it as for any read.

    Args:
        room: The service.
        caller: Who follows.
        call: The request.
        home: Whose log.
        after: From which place on; None for the beginning of what is kept.
        types: What is wanted of it.

    Returns:
        The tail, to be closed.

    Raises:
        TooManyStreamsError: The caller follows as many as one may.
        OverloadedError: The process bears no more.
        EventCursorError: The log cannot be followed from this place; which, says its type.
    """
    settings = room.settings
    room.streams.enter(caller.user_id, settings.event_streams_each, settings.event_streams_max)
    try:
        find = partial(_place_in, after=after)
        if home == "group":
            place = await room.stores.group.read(find)
        else:
            place = await with_own(room, caller, call, lambda store: store.read(find))
        return Tail(room, caller, call, home, place, types)
    except BaseException:
        room.streams.leave(caller.user_id)
        raise
