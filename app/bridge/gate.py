"""The gate before password derivations: few at a time, a short fair queue, then a refusal.

One Argon2id derivation takes up to 256 MiB and a second of a core, and anybody may ask for
one by trying to sign in. So two run at a time over all processes of the server, and what
cannot soon be served is told so at once.
"""

import asyncio
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar

from app.db.locks import ROLE_DERIVATIONS, LockFile
from app.errors.stores import OverloadedError, StoreBusyError

MAX_WAITING: Final = 20
"""How many may wait in one process."""

MAX_WAITING_UNTRUSTED: Final = 10
"""From how many on only networks with a recent success may join them."""

_NICENESS = 10  # the event loop's lag through fifty sign-ins: 0.4 ms instead of 4 ms
_PATIENCE_S = 30.0  # one wait for the slot; the next one takes up where it left off
_PAUSE_S = 0.05  # so that locks that cannot be had at all make no busy loop

T = TypeVar("T")


class _Derivation(Generic[T]):
    """One caller's call, on its way from the event loop to a thread and back.

    A result that reaches nobody goes to `on_dropped`.
    """

    def __init__(self, fn: Callable[[], T], on_dropped: Callable[[T], None] | None) -> None:
        self._fn = fn
        self._on_dropped = on_dropped
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()

    async def outcome(self) -> T:
        """Wait for what `work` or `refuse` has to say."""
        try:
            return await self._future
        except asyncio.CancelledError:
            # The result may have come in the same turn of the loop as the cancellation.
            if not self._future.cancelled() and self._future.exception() is None:
                self._drop(self._future.result())
            raise

    def work(self) -> None:
        """Derive, on the thread that calls, and tell the caller."""
        try:
            result = self._fn()
        except BaseException as error:  # noqa: BLE001  the caller gets it, whatever it is
            self._tell(partial(self._fail, error))
            return
        if not self._tell(partial(self._succeed, result)):
            self._drop(result)

    def refuse(self) -> None:
        """Tell the caller that the call will not be made; from any thread."""
        self._tell(partial(self._fail, OverloadedError()))

    def _tell(self, message: Callable[[], None]) -> bool:
        """Run `message` on the caller's event loop; False when the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(message)
        except RuntimeError:
            return False
        return True

    def _succeed(self, result: T) -> None:
        if self._future.done():  # cancelled meanwhile
            self._drop(result)
        else:
            self._future.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)

    def _drop(self, result: T) -> None:
        if self._on_dropped is not None:
            self._on_dropped(result)


class DerivationGate:
    """Admits derivations to two threads, one a slot that all processes of the server share.

    Networks are served in turn, one derivation each, however many of one network wait.
    """

    def __init__(self, locks: LockFile) -> None:
        self._locks = locks
        self._changed = threading.Condition()
        self._closed = False
        self._waiting = 0
        self._queues: OrderedDict[str, deque[_Derivation[Any]]] = OrderedDict()
        for slot in ROLE_DERIVATIONS:
            threading.Thread(
                target=self._serve, args=(slot,), name=f"derivation-{slot}", daemon=True
            ).start()

    async def run(
        self,
        network: str,
        fn: Callable[[], T],
        *,
        trusted: bool = False,
        on_dropped: Callable[[T], None] | None = None,
    ) -> T:
        """Run `fn` on a derivation thread when its turn comes.

        A cancelled call leaves the queue; once `fn` runs it is finished and its result
        dropped.

        Args:
            network: Whoever is to share one place in the order, as the throttle sees them.
            fn: The derivation. What it raises is raised here.
            trusted: Whether a sign-in from the network succeeded recently.
            on_dropped: Called with a result that no caller takes, to zero it; on the event
                loop, or on the derivation's thread when the loop is closed.

        Returns:
            What `fn` returned.

        Raises:
            OverloadedError: Too many wait already, or the gate was closed; `fn` did not run.
        """
        derivation = _Derivation(fn, on_dropped)
        self._join(network, derivation, MAX_WAITING if trusted else MAX_WAITING_UNTRUSTED)
        try:
            return await derivation.outcome()
        finally:
            self._leave(network, derivation)

    def close(self) -> None:
        """Refuse those who wait and whoever comes; what runs is finished, not waited for."""
        with self._changed:
            self._closed = True
            while self._waiting:
                self._pop().refuse()
            self._changed.notify_all()

    def _join(self, network: str, derivation: _Derivation[Any], limit: int) -> None:
        with self._changed:
            if self._closed or self._waiting >= limit:
                raise OverloadedError
            self._queues.setdefault(network, deque()).append(derivation)
            self._waiting += 1
            # Both threads: one slot may be another process's just now, and which is unknown.
            self._changed.notify_all()

    def _leave(self, network: str, derivation: _Derivation[Any]) -> None:
        """Take it out of the queue if it is still there."""
        with self._changed:
            queue = self._queues.get(network, deque())
            if derivation in queue:
                queue.remove(derivation)
                self._waiting -= 1
                if not queue:
                    del self._queues[network]

    def _pop(self) -> _Derivation[Any]:
        """The first of the network whose turn it is; the network goes to the end."""
        network, queue = self._queues.popitem(last=False)
        self._waiting -= 1
        derivation = queue.popleft()
        if queue:
            self._queues[network] = queue
        return derivation

    def _serve(self, slot: int) -> None:
        """Live as a derivation thread: first the slot, then whoever is next by then."""
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while self._await_call():
            try:
                with self._locks.role_lock(slot, _PATIENCE_S):
                    self._serve_one()
            except (StoreBusyError, OSError, RuntimeError):
                # Held elsewhere for long, or no lock or thread to be had: those who wait
                # wait on, and the thread lives to serve them.
                with self._changed:
                    self._changed.wait(_PAUSE_S)

    def _await_call(self) -> bool:
        """Wait until somebody waits; False once the gate is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting)
            return not self._closed

    def _serve_one(self) -> None:
        # A frame of its own: an idle thread must not keep the last password alive.
        with self._changed:
            if not self._waiting:
                return
            derivation = self._pop()
        derivation.work()
