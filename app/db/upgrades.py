"""A store of an earlier version brought to the present one: looked at, copied aside, migrated.

The caller holds the store's exclusive lock, but for looking.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from app.clock import Clock, Millis
from app.crypto.keys import Key
from app.db import files, looking, migrations, triggers
from app.db.files import Admit, Kind
from app.db.migrations import Bucket


def outdated_version(
    path: Path, key: Key | None, kind: Kind, clock: Clock, admit: Admit = files.admit_any
) -> str | None:
    """The version of a store that waits to be brought up to date; None for a present one.

    Not a byte of it is written.

    Args:
        path: The store.
        key: Its key; None for a plain file.
        kind: What it must hold.
        clock: Time for the triggers.
        admit: As `files.open_handle` has it.

    Returns:
        As `8.4`: one number a bucket.

    Raises:
        StoreTooNewError: Written by a newer program.
        StoreError: What else stands in the way of reading it.
    """
    store, recorded = files.open_known(path, key, kind, clock, reader=True, admit=admit)
    files.close_unwritten(store, path, key, clock)
    if migrations.is_current(recorded, kind.buckets):
        return None
    return migrations.version_of(recorded, kind.buckets)


def snapshot_of(path: Path, version: str) -> Path:
    """Where the copy of a store of a version stands, or would."""
    return path.with_name(f"{path.name}.v{version}")


def take_snapshot(path: Path, key: Key | None, kind: Kind, version: str, clock: Clock) -> Path:
    """Copy a store beside itself under the same key, as it is before its migration.

    Args:
        path: The store, whose exclusive lock the caller holds.
        key: Its key; None for a plain file.
        kind: What it holds.
        version: The version it is of.
        clock: The time, from which its age counts.

    Returns:
        The copy, whole, checked and durable: `{path}.v{version}`.

    Raises:
        StoreDamagedError: The store does not pass its checks.
        DiskFullError: There is no room for both.
    """
    files.copy_under_new_key(path, key, key, kind, clock, lambda _copy: None)
    snapshot = snapshot_of(path, version)
    files.remove(snapshot)
    new = path.with_name(path.name + files.NEW_SUFFIX)
    seconds = clock() / 1000
    os.utime(new, (seconds, seconds))
    new.replace(snapshot)
    files.sync_folder(path.parent)
    return snapshot


def migrate(
    path: Path,
    key: Key | None,
    kind: Kind,
    clock: Clock,
    before_commit: Callable[[], None] = lambda: None,
) -> None:
    """Bring a store to the present version, or leave it exactly as it was.

    Args:
        path: The store, whose exclusive lock the caller holds.
        key: Its key; None for a plain file.
        kind: What it is to hold.
        clock: Time for its records.
        before_commit: See `migrations.apply`.

    Raises:
        StoreTooNewError: Written by a newer program.
        StoreDamagedError: It does not pass its checks afterwards.
        DiskFullError: There is no room.
    """
    store, _ = files.open_known(path, key, kind, clock)
    with contextlib.closing(store):
        migrations.apply(store, kind.buckets, clock(), before_commit)
        store.checkpoint()


def drift(path: Path, key: Key | None, kind: Kind, clock: Clock) -> list[str]:
    """Names of the objects in which a store differs from what the migrations make."""
    with looking.opened_to_inspect(path, key, kind, clock) as live:
        return drift_of(migrations.outline(live), kind)


def drift_of(outline: Mapping[str, str], kind: Kind) -> list[str]:
    """The same, of a store whose `migrations.outline` is at hand."""
    return migrations.drift(outline, _present_outline(kind))


def drift_of_older(path: Path, kind: Kind, clock: Clock) -> list[str]:
    """The same, of a plain store that waits for its migration: against those it has had.

    Returns:
        The names; nothing is told of triggers that are made anew with each declaration.
    """
    with looking.opened_to_inspect(path, None, kind, clock) as live:
        had, outline = migrations.applied(live), migrations.outline(live)
    buckets = tuple(
        Bucket(
            bucket.name,
            tuple(each for each in bucket.migrations if (bucket.name, each.number) in had),
        )
        for bucket in kind.buckets
    )
    if not all(bucket.migrations for bucket in buckets):
        return ["table sys_migrations"]
    with contextlib.closing(files.made_in_memory(kind, buckets, clock)) as made:
        wanted = migrations.outline(made)
    return [
        name
        for name in migrations.drift(outline, wanted)
        if name != f"view {triggers.VIEW}" and not name.startswith(f"trigger {triggers.PREFIX}")
    ]


@cache
def _present_outline(kind: Kind) -> Mapping[str, str]:
    """What a present store's `migrations.outline` is."""
    with contextlib.closing(files.made_in_memory(kind, kind.buckets, lambda: Millis(0))) as made:
        return migrations.outline(made)
