"""Operations that run to their end, whatever becomes of whoever asked for them."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from app import telemetry
from app.errors.root import StrongroomError
from app.runtime.idempotency import Replayed

T = TypeVar("T")


class Operations:
    """Those under way in one process.

    A request may be cancelled at any await. An operation cut there would leave a store out
    of service, or zero a key that a thread still copies with; so each is a task of its own,
    and who waits for it may go.
    """

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[Any]] = set()

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run one, and wait for it; a cancelled wait does not reach it.

        Returns:
            What it returned. What it raises is raised here.
        """
        task = asyncio.create_task(operation)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_tell_untaken)
            raise

    async def settle(self) -> None:
        """Wait for those under way; how they end is told to who asked."""
        await asyncio.gather(*self._under_way, return_exceptions=True)


def _tell_untaken(task: asyncio.Task[Any]) -> None:
    """Put on record the fault of an operation whose asker has gone; no refusal is one."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, StrongroomError | Replayed):
        telemetry.unexpected("operation", error)
