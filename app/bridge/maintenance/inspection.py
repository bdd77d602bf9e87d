"""What can be told of a root from outside: by whoever may read its files, without any key.

Reads alone, and needs neither the server's lock nor its leave. A store is looked at under
its shared lock, as by any process that has it open: none is exchanged or erased meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app import telemetry
from app.bridge import layout
from app.bridge.content import disk_sweep, file_folders
from app.bridge.reading import opened_locks, opened_registry
from app.bridge.stores import OPEN
from app.clock import Clock, system_clock
from app.db import blobs as disk
from app.db import files, looking, upgrades
from app.db.files import Kind
from app.db.locks import LockFile
from app.db.owner.store import OwnerReader
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow, FleetRow
from app.db.registry.store import RegistryReader
from app.errors.stores import StoreBusyError, StoreError, StoreMigratingError
from app.ids import UserId, is_uuid
from app.owner import identity
from app.runtime import files as file_rows
from app.runtime import steps
from app.settings import Settings

Progress = Callable[[int, int], None]
"""Told how many files are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    file: str
    """Name of the file in `database/`."""
    detail: str
    """What is wrong with it, in words; names of tables and indexes, never content."""


@dataclass(slots=True)
class Inspection:
    """What an inspection saw."""

    members: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    """How many plain members' stores are at each version, as `8.4`: one number a bucket."""
    sealed: dict[str, int] = field(default_factory=dict)
    """The same of encrypted ones, which nobody here can open, as of their last unlock."""
    unknown: int = 0
    """Encrypted stores that nobody has unlocked yet."""
    waiting: int = 0
    """Stores older than the program: their next opening, or unlock, brings them up to date."""
    drifted: int = 0
    """Stores whose schema is not what the migrations make; system.db counts as one."""
    busy: int = 0
    """Stores that an operation of their own has just now: not looked at."""
    findings: list[Finding] = field(default_factory=list)


def inspect(
    settings: Settings, progress: Progress = lambda _done, _all: None, clock: Clock = system_clock
) -> Inspection:
    """Compare system.db and every plain store with what they should be, and rows with files.

    Args:
        settings: Where.
        progress: Told after each file.
        clock: The time.

    Returns:
        What was seen; without findings, all that can be told is well.

    Raises:
        UnreadableRootError: Nobody made this root yet, or it is not this user's to read.
        StoreBusyError: An operation of its own has system.db.
    """
    seen = Inspection()
    with opened_locks(settings) as locks:
        inspector = _Inspector(settings, locks, clock, seen)
        inspector.look_at_system(progress)
    return seen


@dataclass(frozen=True, slots=True)
class _Inspector:
    settings: Settings
    locks: LockFile
    clock: Clock
    seen: Inspection

    def look_at_system(self, progress: Progress) -> None:
        path = self.settings.system_file
        try:
            with opened_registry(self.settings, self.locks, self.clock) as reader:
                self._look_into(path, layout.SYSTEM_KIND, layout.GROUP)
                self._look_at_operations(reader)
                self._look_at_disk(reader)
                progress(1, 1)
                self._look_at_members(reader, progress)
        except StoreMigratingError:
            self._find(path, "It is older than the program: the next start brings it up to date.")
        except StoreBusyError:
            raise
        except StoreError as error:
            self._find(path, str(error))

    def _look_at_members(self, reader: RegistryReader, progress: Progress) -> None:
        rows = reader.all(sql.LIST_ALL_ACCOUNTS)
        self.seen.members = len(rows)
        for place, row in enumerate(rows, start=2):
            self._look_at_member(reader, row)
            progress(place, len(rows) + 1)
        for mirror in reader.all(sql.LIST_FLEET, after="", limit=-1):
            self._count_mirror(mirror)
        known = {row.id for row in rows}
        for user_id in (self._ids_of_files() | file_folders.owners(self.settings)) - known:
            self._look_at_stray(reader, user_id)

    def _look_at_member(self, reader: RegistryReader, row: AccountRow) -> None:
        try:
            self.locks.acquire_shared(row.lock_number)
        except StoreBusyError:
            self.seen.busy += 1
            return
        try:
            # Read again under the lock: the member may have gone, or changed, meanwhile.
            present = reader.one(sql.FIND_ACCOUNT, user_id=row.id)
            if present is None or present.store_state != OPEN:
                self.seen.busy += present is not None
                return
            self._look_at_store(present)
        finally:
            self.locks.release_shared(row.lock_number)

    def _look_at_store(self, row: AccountRow) -> None:
        path = self.settings.user_file(row.id)
        if not path.exists():
            self._find(path, "The member's file is missing.")
        elif not files.size(path):
            self._find(path, "The member's file is empty.")
        elif not row.encrypted:
            self._look_at_plain(path, row)

    def _count_mirror(self, row: FleetRow) -> None:
        """What the server noted of an encrypted store at its last unlock."""
        path, present = self.settings.user_file(row.id), layout.MEMBER_KIND.version
        if row.migration_failed is not None:
            self._find(path, "Its migration failed, and left it as it was.")
        if not row.encrypted:
            return
        if row.schema_version is None:
            self.seen.unknown += 1
            return
        _add(self.seen.sealed, row.schema_version)
        self.seen.waiting += row.schema_version != present
        if row.schema_check == "drift":
            self.seen.drifted += 1
            self._find(path, "The schema differed at its last unlock.")

    def _look_at_plain(self, path: Path, row: AccountRow) -> None:
        kind = layout.MEMBER_KIND
        try:
            version = upgrades.outdated_version(path, None, kind, self.clock)
            if version is None:
                self._require_own(path, row)
                self._look_into(path, kind, row.id)
            else:
                self._find_drift(path, upgrades.drift_of_older(path, kind, self.clock))
            _add(self.seen.versions, version or kind.version)
            self.seen.waiting += version is not None
        except StoreBusyError:
            self.seen.busy += 1
        except StoreError as error:
            self._find(path, str(error))

    def _require_own(self, path: Path, row: AccountRow) -> None:
        """Refuse a plain store that is not the member's own.

        Raises:
            StoreSwappedError: It is another's.
        """
        with looking.opened_to_look(path, layout.MEMBER_KIND, self.clock) as connection:
            identity.require_identity(OwnerReader(connection), row.id, frozenset())

    def _look_at_operations(self, reader: RegistryReader) -> None:
        for record in steps.list_open(reader):
            if record.diverged:
                text = f"The operation {record.action} {record.key} waits for a person."
                self._find(self.settings.system_file, text)
            elif record.alerted_at is not None:
                text = f"The operation {record.action} {record.key} has been half-done for long."
                self._find(self.settings.system_file, text)

    def _look_at_disk(self, reader: RegistryReader) -> None:
        for name in disk_sweep.strays(self.settings, reader):
            path = self.settings.database / name
            self._find(path, "The folder belongs to no shared folder and no project.")
        for name in disk_sweep.missing(self.settings, reader):
            self._find(self.settings.database / name, "The folder is missing, or a link.")

    def _look_at_files(self, path: Path, kind: Kind, owner_id: UserId) -> None:
        with looking.opened_to_look(path, kind, self.clock) as connection:
            rows = file_rows.list_all(OwnerReader(connection))
        unlike = file_folders.unlike_rows(self.settings.files_folder(owner_id), rows)
        if unlike:
            self._find(path, f"Of the files beside it {unlike} are missing or damaged.")

    def _look_into(self, path: Path, kind: Kind, owner_id: UserId) -> None:
        # First, for what differs may be what keeps the rest from being looked at.
        self._find_drift(path, upgrades.drift(path, None, kind, self.clock))
        self._look_at_files(path, kind, owner_id)
        try:
            lines = looking.integrity(path, None, kind, self.clock)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a hand has done to the file
            telemetry.unexpected("check", error)
            lines = ["It cannot be checked to its end."]
        for line in lines:
            self._find(path, line)

    def _find_drift(self, path: Path, names: list[str]) -> None:
        self.seen.drifted += bool(names)
        for name in names:
            self._find(path, f"The schema differs: {name}.")

    def _look_at_stray(self, reader: RegistryReader, user_id: UserId) -> None:
        """A file without a row, unless a sign-up or an erasure is under way."""
        # In this order: the step that ends a sign-up makes the row and ends the record.
        if any(record.subject == user_id for record in steps.list_open(reader)):
            return
        if reader.one(sql.FIND_ACCOUNT, user_id=user_id) is not None:
            return
        path = self.settings.user_file(user_id)
        if path.exists():
            self._find(path, "The file belongs to no member.")
        elif disk.list_folder(self.settings.files_folder(user_id)):
            self._find(self.settings.files_folder(user_id), "The files belong to no member.")

    def _ids_of_files(self) -> set[UserId]:
        names = {path.name.partition(".")[0] for path in self.settings.database.glob("*.db")}
        return {UserId(name) for name in names if is_uuid(name)}

    def _find(self, path: Path, detail: str) -> None:
        self.seen.findings.append(Finding(path.name, detail))


def _add(counts: dict[str, int], version: str) -> None:
    counts[version] = counts.get(version, 0) + 1
