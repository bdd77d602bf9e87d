"""A bell a file: rung after each commit of this process, for whoever waits for news of it."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator


class Bell:
    """Rings for every listener; each hears at least one ring after the last one it heard."""

    __slots__ = ("_listeners", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    @contextlib.contextmanager
    def listen(self) -> Iterator[asyncio.Event]:
        """Hear every ring until the end of the context.

        Yields:
            An event of the running loop that each ring sets; see `heard`.
        """
        event = asyncio.Event()
        with self._lock:
            self._listeners[event] = asyncio.get_running_loop()
        try:
            yield event
        finally:
            with self._lock:
                del self._listeners[event]

    def ring(self) -> None:
        """Wake the listeners; from any thread."""
        if not self._listeners:
            return
        with self._lock:
            listeners = list(self._listeners.items())
        for event, loop in listeners:
            # A loop that has ended has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)


async def heard(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the next ring, at most so long; whether there was one."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    rang = event.is_set()
    event.clear()
    return rang
