"""Old versions of notes go: some hours later the first of each hour is enough.

What is never taken: the newest of a path; a deletion; the last text before a deletion or
another author's overwrite. So nobody can wash away what somebody else wrote.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from app.clock import Millis
from app.db.owner import statements as sql
from app.db.owner.rows import VersionRow
from app.db.owner.store import OwnerTransactor
from app.owner.versions import VERSIONS_MAX, list_versions

_HOUR_MS: Final = 3_600_000
_ROWS_A_UNIT: Final = 20
"""Versions looked at that cost as much as one removed."""


class Thinned(NamedTuple):
    """What one batch did."""

    removed: int
    cost: int
    """In rows removed, with what it took to look."""
    after: str | None
    """The path after which to go on; None at the end."""


def superfluous(newest_first: Sequence[VersionRow], before: int) -> list[int]:
    """Which of one path's versions may go.

    Args:
        newest_first: All of them.
        before: Unix milliseconds; what was made since stays.

    Returns:
        Their numbers, oldest first.
    """
    spared = {newest_first[0].version} if newest_first else set[int]()
    for newer, older in pairwise(newest_first):
        if newer.is_deletion or newer.author != older.author:
            spared.add(older.version)
    hours: set[int] = set()
    found: list[int] = []
    for row in reversed(newest_first):
        hour = row.created_at // _HOUR_MS
        is_first = hour not in hours
        hours.add(hour)
        is_spared = is_first or row.is_deletion or row.version in spared
        if row.created_at < before and not is_spared:
            found.append(row.version)
    return found


def thin(tx: OwnerTransactor, before: Millis, after: str, limit: int) -> Thinned:
    """Take away what is superfluous, path by path.

    Args:
        tx: A store.
        before: What was made since stays.
        after: The path after which to begin; empty for the first.
        limit: About how much it may cost.

    Returns:
        What it did, and where to go on.
    """
    removed = cost = 0
    for path in tx.all(sql.LIST_VERSIONED_PATHS, after=after, limit=limit):
        rows = list_versions(tx, path.value, None, 2 * VERSIONS_MAX)
        for version in superfluous(rows, before):
            tx.run(sql.REMOVE_VERSION, path=path.value, version=version)
            removed += 1
            cost += 1
        cost += 1 + len(rows) // _ROWS_A_UNIT
        after = path.value
        if cost >= limit:
            return Thinned(removed, cost, after)
    return Thinned(removed, cost, None)


def shrink(tx: OwnerTransactor, bytes_max: int, limit: int) -> int:
    """Take away the oldest versions of a store, while all of them have too many bytes.

    Returns:
        How many went; as many as the limit when more may have to.
    """
    [total] = tx.all(sql.SUM_VERSIONS)
    excess = total.value - bytes_max
    removed = 0
    if excess > 0:
        for row in tx.all(sql.LIST_EXPENDABLE_VERSIONS, limit=limit):
            if excess <= 0:
                break
            tx.run(sql.REMOVE_VERSION, path=row.path, version=row.version)
            excess -= row.size_bytes
            removed += 1
    return removed
