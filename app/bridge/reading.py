"""A root read from outside: by whoever may read its files, without any key, served or not.

Takes neither the server's lock nor its leave, and prepares nothing. A store is opened under
its shared lock, as by any process that has it open: none is exchanged or erased meanwhile.
"""

import contextlib
from collections.abc import Callable, Iterator

from app.bridge import layout
from app.bridge.stores import require_in_service
from app.clock import Clock, system_clock
from app.db import looking
from app.db.files import Connection, StoreOutdatedError
from app.db.locks import LockFile
from app.db.owner.store import OwnerReader
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader
from app.errors.callers import NotFoundError
from app.errors.starting import StartError
from app.errors.stores import StoreLockedError
from app.owner import identity
from app.settings import Settings


class UnreadableRootError(StartError):
    """The root cannot be read."""


@contextlib.contextmanager
def reading(settings: Settings, clock: Clock = system_clock) -> Iterator[RegistryReader]:
    """Read the registry of a root, whether or not it is served; each statement sees the present.

    Yields:
        The reader.

    Raises:
        UnreadableRootError: Nobody made this root yet, it is not this user's to read, or it is
            older than the program.
        StoreError: system.db is in trouble; which, says its type.
    """
    with (
        opened_locks(settings) as locks,
        _telling_age(settings),
        opened_registry(settings, locks, clock) as reader,
    ):
        yield reader


@contextlib.contextmanager
def reading_group(settings: Settings, clock: Clock = system_clock) -> Iterator[OwnerReader]:
    """Read the group's own store of a root, in one snapshot.

    Yields:
        The reader.

    Raises:
        UnreadableRootError: As for `reading`.
        StoreError: system.db is in trouble; which, says its type.
    """
    with (
        opened_locks(settings) as locks,
        _telling_age(settings),
        _opened_system(settings, locks, clock, layout.registry_tables()) as connection,
    ):
        connection.all("BEGIN")
        yield OwnerReader(connection)


@contextlib.contextmanager
def reading_member(
    settings: Settings, find: Callable[[RegistryReader], AccountRow], clock: Clock = system_clock
) -> Iterator[OwnerReader]:
    """Read a member's store that is under no key, in one snapshot.

    Args:
        settings: Of the root.
        find: Finds the member.
        clock: The time.

    Yields:
        The reader.

    Raises:
        UnreadableRootError: As for `reading`.
        StoreLockedError: It is under a key.
        StoreOutdatedError: It waits to be brought up to date.
        StoreError: What else is the matter with it; which, says its type.
    """
    with reading(settings, clock) as registry:
        row = find(registry)
    if row.encrypted:
        raise StoreLockedError
    with opened_locks(settings) as locks, _shared(locks, row.lock_number):
        # Read again under the lock: the member may have gone, or changed, meanwhile.
        with reading(settings, clock) as registry:
            present = registry.one(sql.FIND_ACCOUNT, user_id=row.id)
        if present is None:
            raise NotFoundError
        require_in_service(present.store_state)
        path = settings.user_file(row.id)
        with looking.opened_to_look(path, layout.MEMBER_KIND, clock) as connection:
            connection.all("BEGIN")
            reader = OwnerReader(connection)
            identity.require_identity(reader, row.id, frozenset())
            yield reader


@contextlib.contextmanager
def opened_locks(settings: Settings) -> Iterator[LockFile]:
    """The locks of a root that is there.

    Yields:
        They.

    Raises:
        UnreadableRootError: Nobody made this root yet, or it is not this user's to read.
    """
    try:
        if not settings.system_file.exists():
            reason = f"{settings.root} holds no database/system.db: `strongroom init` makes it."
            if layout.has_members(settings.database):
                reason = layout.LOST_REGISTRY.format(settings.system_file)
            raise UnreadableRootError(reason)
        locks = LockFile(settings.stores_lock_file)
    except OSError as error:
        reason = f"{settings.stores_lock_file}: {error.strerror}."
        raise UnreadableRootError(reason) from error
    try:
        yield locks
    finally:
        locks.close()


@contextlib.contextmanager
def opened_registry(settings: Settings, locks: LockFile, clock: Clock) -> Iterator[RegistryReader]:
    """The registry under its shared lock.

    Yields:
        Its reader.

    Raises:
        StoreOutdatedError: It is older than the program.
        StoreError: What else is the matter with system.db; which, says its type.
    """
    with _opened_system(settings, locks, clock, layout.owner_tables()) as connection:
        yield RegistryReader(connection)


@contextlib.contextmanager
def _opened_system(
    settings: Settings, locks: LockFile, clock: Clock, denied_tables: frozenset[str]
) -> Iterator[Connection]:
    path, kind = settings.system_file, layout.SYSTEM_KIND
    with (
        _shared(locks, layout.SYSTEM_LOCK),
        looking.opened_to_look(path, kind, clock, denied_tables) as connection,
    ):
        yield connection


@contextlib.contextmanager
def _shared(locks: LockFile, lock_number: int) -> Iterator[None]:
    locks.acquire_shared(lock_number)
    try:
        yield
    finally:
        locks.release_shared(lock_number)


@contextlib.contextmanager
def _telling_age(settings: Settings) -> Iterator[None]:
    """What is to be done with a system.db that is older than the program."""
    try:
        yield
    except StoreOutdatedError as error:
        reason = (
            f"{settings.system_file} is older than the program: "
            "the next start, or `strongroom migrate`, brings it up to date."
        )
        raise UnreadableRootError(reason) from error
