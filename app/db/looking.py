"""Stores looked at: nothing of the file changes, and the log beside it stays where it is.

The last handle to close a file moves its log into it, be it one that only reads.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from app.clock import Clock
from app.crypto.keys import Key
from app.db import migrations
from app.db.files import Connection, Kind, close_unwritten, open_handle, open_maintenance


@contextlib.contextmanager
def opened_to_look(
    path: Path, kind: Kind, clock: Clock, denied_tables: frozenset[str] = frozenset()
) -> Iterator[Connection]:
    """A reader's handle on a plain store, which leaves the log beside it where it is.

    Yields:
        The handle.

    Raises:
        StoreError: See `open_handle`.
    """
    connection = open_handle(path, None, kind, clock, reader=True, denied_tables=denied_tables)
    try:
        yield connection
    finally:
        close_unwritten(connection, path, None, clock)


@contextlib.contextmanager
def opened_to_inspect(
    path: Path, key: Key | None, kind: Kind, clock: Clock
) -> Iterator[Connection]:
    """A handle without authorizer that changes nothing, and leaves the log where it is.

    Yields:
        The handle.

    Raises:
        StoreError: See `open_maintenance`.
    """
    connection = open_maintenance(path, key, kind, clock)
    try:
        yield connection
    finally:
        close_unwritten(connection, path, key, clock)


def integrity(path: Path, key: Key | None, kind: Kind, clock: Clock) -> list[str]:
    """What SQLite's own checks find wrong with a store; empty when it is sound."""
    with opened_to_inspect(path, key, kind, clock) as live:
        found = [str(row[0]) for row in live.all("PRAGMA integrity_check")]
        if found != ["ok"]:
            return found
        drifted = migrations.drifted_indexes(live)
        return [f"The search index {name} differs from the texts." for name in drifted]
