"""When a session was last used: written seldom, and never on the request's own path."""

import asyncio
from typing import Final

from app import telemetry
from app.bridge.stores import Stores
from app.db.context import system_actor
from app.db.registry import statements as sql
from app.errors.root import StrongroomError
from app.ids import SessionId

_ACTOR: Final = system_actor("last_seen")


class SeenNotes:
    """The notes of one process that are on their way to the registry."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._pending: dict[SessionId, asyncio.Task[None]] = {}

    def note(self, session_id: SessionId) -> None:
        """Have it written, unless that is under way."""
        if session_id not in self._pending:
            self._pending[session_id] = asyncio.create_task(self._write(session_id))

    async def _write(self, session_id: SessionId) -> None:
        try:
            await self._stores.registry.write(
                lambda tx: tx.run(sql.SET_SESSION_SEEN, session_id=session_id, now=tx.now_ms),
                _ACTOR,
            )
        except StrongroomError as error:
            telemetry.unexpected("last_seen", error)
        finally:
            del self._pending[session_id]

    async def settle(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._pending.values(), return_exceptions=True)
