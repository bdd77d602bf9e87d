"""The descriptors a process has for its stores, and who gives some back."""

import contextlib
import ctypes
import resource
import threading
import time
from typing import Final, Protocol

from app.errors.stores import OutOfHandlesError

FIRST_COST: Final = 3
"""Descriptors of a process's first handle on a file: the database, its log, its shared memory."""
RESERVED: Final = 40
"""Descriptors the process needs beside stores and clients: sockets, locks, libraries, the loop."""
_WAIT_STEP_S: Final = 0.005
_TRIM_EVERY: Final = 32
_UNLIMITED: Final = 1_000_000


def budget_for(descriptors: int) -> int:
    """How many of a process's descriptors its handles may take; the rest is for clients."""
    clients = min(descriptors // 4, 1024)
    return max(descriptors - clients - RESERVED, 8 * FIRST_COST)


def descriptors_allowed() -> int:
    """How many descriptors this process may have; a bound of a million when it is unlimited."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if 0 <= soft < _UNLIMITED else _UNLIMITED


class Spender(Protocol):
    """One store's handles, as far as they spend descriptors; `pool.Handles` is one."""

    is_pinned: bool
    last_used: float

    def close_idle(self) -> bool:
        """Close every handle if none is lent; False when one is, or there is none."""

    def close_idle_writer(self, idle_s: float) -> None:
        """Close the writing handle if it is not lent and was not for so many seconds."""


class Pool:
    """The budget, and the stores that spend it, least recently used first to give."""

    def __init__(self, budget: int, *, wait_s: float = 5.0) -> None:
        """Make an empty one.

        Args:
            budget: Descriptors that all handles together may hold.
            wait_s: How long an opening waits for a busy store to become idle.
        """
        self._budget = budget
        self._wait_s = wait_s
        self._used = 0
        self._members: set[Spender] = set()
        self._changed = threading.Condition()
        self._closings = 0

    @property
    def used(self) -> int:
        """Descriptors held now, openings under way included."""
        return self._used

    def add(self, handles: Spender) -> None:
        """Count a store's handles here from now on."""
        with self._changed:
            self._members.add(handles)

    def remove(self, handles: Spender) -> None:
        """Forget a closed store."""
        with self._changed:
            self._members.discard(handles)

    def reserve(self, cost: int, asking: Spender) -> None:
        """Make room for one more handle, closing idle stores as needed.

        Raises:
            OutOfHandlesError: Every other store stayed busy for `wait_s`.
        """
        until = time.monotonic() + self._wait_s
        while True:
            with self._changed:
                if self._used + cost <= self._budget:
                    self._used += cost
                    return
            if not self.evict_one(asking):
                if time.monotonic() > until:
                    raise OutOfHandlesError
                with self._changed:
                    self._changed.wait(_WAIT_STEP_S)

    def refund(self, cost: int) -> None:
        """Give descriptors back."""
        with self._changed:
            self._used -= cost
            self._changed.notify_all()

    def evict_one(self, asking: Spender | None = None) -> bool:
        """Close the handles of the idle store unused for longest; False when none is idle."""
        with self._changed:
            order = sorted(self._members, key=lambda member: member.last_used)
        for member in order:
            if member is not asking and not member.is_pinned and member.close_idle():
                self._trim()
                return True
        return False

    def sweep(self, idle_s: float) -> None:
        """Close writing handles that nobody wrote with for so long, be their stores read or not."""
        with self._changed:
            members = list(self._members)
        for member in members:
            member.close_idle_writer(idle_s)

    def _trim(self) -> None:
        """Now and then, give the allocator's free pages back to the system."""
        self._closings += 1
        if self._closings % _TRIM_EVERY == 0:
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL(None).malloc_trim(0)
