"""What a crash leaves is finished or undone; rows are compared with files.

Runs before the service does, and all the time in one of its processes. A store that an
operation still holds is left alone: its exclusive lock tells. What cannot be settled now
delays nothing else, and is tried again.
"""

import contextlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Final

from app import telemetry
from app.bridge import migration
from app.bridge.accounts import erasure, rotation, signup
from app.bridge.content import approvals, disk_sweep, file_folders
from app.bridge.finishing import JANITOR, Desk, Operation, close
from app.bridge.layout import GROUP
from app.bridge.stores import OPEN, Stores
from app.bridge.taking import end_state
from app.clock import Millis
from app.db import files
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.errors.conflicts import RunnerLostError
from app.ids import UserId
from app.runtime import steps
from app.runtime.steps import Outcome, Record, Run
from app.settings import Settings

OPERATIONS: Final[Mapping[str, Operation]] = {
    each.action: each
    for each in (
        signup.OPERATION,
        rotation.OPERATION,
        erasure.OPERATION,
        migration.OPERATION,
        approvals.OPERATION,
    )
}
"""Everything that a crash may leave half-done."""


async def _cannot(_desk: Desk) -> Outcome:
    """Never: a shape of no steps fits no record."""
    raise RunnerLostError


_UNKNOWN: Final = Operation(action="", shape=(), state=None, settle=_cannot)
"""Of another version of the program: it is left to a person."""
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 86_400_000
_STORE_FILE: Final = re.compile(
    r"^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.db"
    r"(\.new|\.v[0-9.]+)?(-wal|-shm|-journal)?$"
)


class Janitor:
    """Repairs, round by round."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self._settings = settings
        self._stores = stores
        self._told: set[str] = set()

    async def round(self) -> None:
        """Finish or undo what is half-done, then compare rows with files."""
        await self.settle()
        await self.compare()

    async def settle(self) -> None:
        """Finish or undo what a crash left half-done; cheap when there is nothing."""
        registry = self._stores.registry
        found = await registry.read(steps.list_open)
        for record in found:
            if not record.diverged:
                await self._try(record.key, partial(self._settle_record, record))
        if found:
            await self._tell_late()
        for account in await registry.read(lambda r: r.all(sql.LIST_MOVING_STORES)):
            await self._try(account.id, partial(self._settle_state, account))
        await self._try("disk", partial(disk_sweep.settle_all, self._settings, self._stores))
        await self._try("removed", partial(disk_sweep.remove_gone, self._settings, self._stores))

    async def compare(self) -> None:
        """Compare rows with files and slots with sessions; empty the log of what went."""
        registry = self._stores.registry
        await self._compare_files()
        lost = await registry.write(
            lambda tx: tx.run(sql.REMOVE_LOST_SLOTS, now=tx.now_ms), JANITOR
        )
        if lost:
            telemetry.janitor_repaired("slot_without_session", len(lost))
        # A reader may have kept a destroyed slot's bytes in the log when they were to go.
        await registry.checkpoint()

    async def _try(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do one repair; what stands in its way is told once, and stops no other."""
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the boundary of a repair
            if key not in self._told:
                telemetry.unexpected("janitor", error)
            self._told.add(key)
        else:
            self._told.discard(key)

    @contextlib.contextmanager
    def _alone(self, lock_number: int) -> Iterator[bool]:
        """Whether nobody has the store; if so, nobody gets it meanwhile."""
        is_alone = self._stores.locks.try_exclusive(lock_number)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._stores.locks.release_exclusive(lock_number)

    async def _tell_late(self) -> None:
        """Tell once of what has been half-done for long."""
        minutes = self._settings.step_alert_minutes

        def mark(tx: RegistryTransactor) -> list[Record]:
            return steps.mark_late(tx, tx.now_ms - minutes * _MINUTE_MS)

        for record in await self._stores.registry.write(mark, JANITOR):
            telemetry.operation_late(record.action, record.key)

    async def _settle_record(self, record: Record) -> None:
        number = await self._lock_number_of(record)
        if number is None:
            # The member is gone, and with the row the last thing there was to do.
            await self._run(record, None)
            return
        with self._alone(number) as is_alone:
            if is_alone:
                await self._run(record, await self._account(record.subject))

    async def _lock_number_of(self, record: Record) -> int | None:
        """The lock that whoever runs it holds: one that it took itself, or the member's."""
        done = await self._stores.registry.read(lambda r: steps.answers(r, record.key))
        if "lock" in done:
            return int(done["lock"]["number"])
        account = await self._account(record.subject)
        return None if account is None else account.lock_number

    async def _run(self, record: Record, account: AccountRow | None) -> None:
        """Take one half-done operation over, and bring it to one of its two ends."""
        subject, operation = UserId(record.subject), OPERATIONS.get(record.action, _UNKNOWN)
        asked = operation.asked(subject, account)

        def take(tx: RegistryTransactor) -> Run | None:
            # Read again under the lock: whoever held it may have ended its work just now.
            return steps.take_over(tx, record.key, operation.shape, asked)

        run = await self._stores.registry.write(take, JANITOR)
        if run is None:
            await self._tell_diverged(record)
            return
        desk = Desk(self._settings, self._stores, run, subject, account)
        if not operation.is_half_done(account):
            await close(desk, "done" if account is None else "undone")
        elif await operation.settle(desk) == "done":
            telemetry.operation_finished(record.action)
        else:
            telemetry.operation_undone(record.action)

    async def _tell_diverged(self, record: Record) -> None:
        present = await self._stores.registry.read(lambda r: steps.find_open(r, record.key))
        if present is not None:
            telemetry.operation_diverged(record.action, record.key)

    async def _settle_state(self, account: AccountRow) -> None:
        """A store out of service that no operation holds and no record explains."""
        with self._alone(account.lock_number) as is_alone:
            if not is_alone:
                return
            present = await self._account(account.id)
            records = await self._stores.registry.read(steps.list_open)
            if present is None or any(record.subject == account.id for record in records):
                return

            def end(tx: RegistryTransactor) -> None:
                end_state(tx, account.id, present.store_state)

            if present.store_state != OPEN:
                await self._stores.registry.write(end, JANITOR)

    async def _compare_files(self) -> None:
        """No row without a file, no file without a row.

        Every file the program makes for nobody yet is on record before it is there; so one
        that no row and no record knows is not its own. It may be all that is left of a
        member whose registry was lost: it is told, and never taken away.
        """
        # Files first: a sign-up ends its record with the row, a rotation with the copy gone.
        found = await self._stores.on_thread(self._list_files)
        records = await self._stores.registry.read(steps.list_open)
        rows = await self._stores.registry.read(lambda r: r.all(sql.LIST_ALL_ACCOUNTS))
        busy = {record.subject for record in records}
        known = {row.id for row in rows}
        left = [path for user_id, path in found if user_id in known - busy and ".new" in path.name]
        if rows:
            # A crash may have come between the first administrator and this.
            left += [path for path in (self._settings.setup_token_file,) if path.exists()]
        await self._stores.on_thread(lambda: _unlink(left))
        if left:
            telemetry.janitor_repaired("left_over_file", len(left))
        await self._remove_snapshots(known)
        await self._compare_folders(busy | known)
        await self._compare_disk()
        self._tell("file_without_member", sum(u not in known | busy for u, _ in found))
        present = {user_id for user_id, path in found if path == self._path(user_id)}
        missing = [row for row in rows if row.id not in present and row.store_state == OPEN]
        # Looked at again, for one that signed up after the files were listed.
        self._tell("member_without_file", sum(not self._path(m.id).exists() for m in missing))

    async def _compare_folders(self, known: AbstractSet[str]) -> None:
        """Files that were never finished go; those of nobody are told, as a store is."""
        now = await self._stores.registry.read(lambda reader: reader.now_ms)
        before_ms = now - self._settings.file_grace_hours * _HOUR_MS
        left = await self._stores.on_thread(
            lambda: file_folders.remove_left_over(self._settings, known | {GROUP}, before_ms)
        )
        if left:
            telemetry.janitor_repaired("unfinished_file", left)
        found = await self._stores.on_thread(lambda: file_folders.owners(self._settings))
        self._tell("files_without_member", len(found - known))

    async def _compare_disk(self) -> None:
        """Shared folders and projects: what crashes left goes, what is nobody's is told."""
        settings, stores = self._settings, self._stores
        await self._try("left", partial(disk_sweep.clear_left_over, settings, stores))
        strays = await stores.registry.read(lambda reader: disk_sweep.strays(settings, reader))
        self._tell("disk_folder_without_row", len(strays))

    async def _remove_snapshots(self, known: set[UserId]) -> None:
        """Take away the copies from before migrations that have been kept long enough."""
        now = await self._stores.registry.read(lambda reader: reader.now_ms)
        made_before = Millis(now - self._settings.snapshot_days * _DAY_MS)
        paths = [self._settings.system_file, *map(self._path, known)]

        def remove() -> None:
            for path in paths:
                files.remove_snapshots(path, made_before)

        await self._stores.on_thread(remove)

    def _tell(self, kind: str, count: int) -> None:
        if count:
            telemetry.janitor_found(kind, count)

    def _list_files(self) -> list[tuple[UserId, Path]]:
        matches = [(_STORE_FILE.match(p.name), p) for p in self._settings.database.iterdir()]
        return [(UserId(match[1]), path) for match, path in matches if match]

    def _path(self, user_id: str) -> Path:
        return self._settings.user_file(UserId(user_id))

    async def _account(self, user_id: str) -> AccountRow | None:
        return await self._stores.registry.read(
            lambda reader: reader.one(sql.FIND_ACCOUNT, user_id=user_id)
        )


def _unlink(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
