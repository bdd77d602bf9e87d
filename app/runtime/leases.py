"""Times that a clock has left in the future: what they hold back would wait for it to come."""

from typing import Final

from app.clock import Millis
from app.db.runtime import statements as sql
from app.db.runtime.store import RuntimeTransactor

TRY_MS: Final = 2 * 24 * 60 * 60 * 1000
"""Longer than the longest wait between two tries of a delivery, or two probes."""


def right(tx: RuntimeTransactor, lease_ms: int, limit: int) -> int:
    """End leases that are longer than any is, and have over-late tries made now.

    Args:
        tx: In the store.
        lease_ms: The longest lease of a job.
        limit: How many of each at most.

    Returns:
        How many there were.
    """
    beyond = Millis(tx.now_ms + 2 * lease_ms)
    count = len(tx.run(sql.RIGHT_JOB_LEASES, beyond=beyond, limit=limit, now=tx.now_ms))
    beyond = Millis(tx.now_ms + TRY_MS)
    count += len(tx.run(sql.RIGHT_DELIVERIES, beyond=beyond, limit=limit, now=tx.now_ms))
    return count + len(tx.run(sql.RIGHT_PROBES, beyond=beyond, now=tx.now_ms))
