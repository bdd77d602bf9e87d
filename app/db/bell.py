"""A bell a file: rung after each commit of this process, for whoever waits for news of it."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator


class Bell:
    """Rings for every listener; each hears at least one ring after the last one it heard."""

    __slots__ = ("_listeners", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, tuple[asyncio.AbstractEventLoop, Callable[[], object]]] = {}

    @contextlib.contextmanager
    def listen(self) -> Iterator[asyncio.Event]:
        """Hear every ring until the end of the context.

        Yields:
            An event of the running loop that each ring sets; see `heard`.
        """
        event = asyncio.Event()
        with self.calling(event.set):
            yield event

    @contextlib.contextmanager
    def calling(self, listener: Callable[[], object]) -> Iterator[None]:
        """Call this at every ring, on the running loop, until the end of the context.

        For who listens to many bells at once.

        Yields:
            Once it listens.
        """
        place = object()
        with self._lock:
            self._listeners[place] = (asyncio.get_running_loop(), listener)
        try:
            yield
        finally:
            with self._lock:
                del self._listeners[place]

    def ring(self) -> None:
        """Wake the listeners; from any thread."""
        if not self._listeners:
            return
        with self._lock:
            listeners = list(self._listeners.values())
        for loop, listener in listeners:
            # A loop that has ended has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(listener)


async def heard(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the next ring, at most so long; whether there was one."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    rang = event.is_set()
    event.clear()
    return rang
