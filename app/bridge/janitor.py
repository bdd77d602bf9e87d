"""What a crash leaves is finished or undone; rows are compared with files.

Runs before the service does, and all the time in one of its processes. A store that an
operation still holds is left alone: its exclusive lock tells. What cannot be settled now
delays nothing else, and is tried again.
"""

import contextlib
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from app import telemetry
from app.bridge import erasure, migration, rotation, signup
from app.bridge.stores import OPEN, Stores
from app.bridge.taking import end_state
from app.clock import Millis
from app.db import files
from app.db.context import system_actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.db.runtime.rows import RecordRow
from app.ids import UserId
from app.runtime import steps
from app.settings import Settings

_ACTOR: Final = system_actor("janitor")
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
        for record in await registry.read(steps.list_open):
            await self._try(record.key, partial(self._settle_record, record))
        for account in await registry.read(lambda r: r.all(sql.LIST_MOVING_STORES)):
            await self._try(account.id, partial(self._settle_state, account))

    async def compare(self) -> None:
        """Compare rows with files and slots with sessions; empty the log of what went."""
        registry = self._stores.registry
        await self._compare_files()
        lost = await registry.write(lambda tx: tx.run(sql.REMOVE_LOST_SLOTS, now=tx.now_ms), _ACTOR)
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

    async def _settle_record(self, record: RecordRow) -> None:
        number = await self._lock_number_of(record)
        if number is None:
            # The member is gone, and with the row the last thing there was to do.
            await self._finish(record, "done")
            return
        with self._alone(number) as is_alone:
            # Read again under the lock: whoever held it may have ended its work just now.
            if is_alone and await self._is_open(record):
                await self._finish_or_undo(record)

    async def _lock_number_of(self, record: RecordRow) -> int | None:
        if record.action == signup.ACTION:
            done = await self._stores.registry.read(lambda r: steps.answers(r, record.key))
            return int(done["lock"]["number"])
        account = await self._account(record.subject)
        return None if account is None else account.lock_number

    async def _is_open(self, record: RecordRow) -> bool:
        still_open = await self._stores.registry.read(steps.list_open)
        return any(each.key == record.key for each in still_open)

    async def _finish_or_undo(self, record: RecordRow) -> None:
        """Bring one half-done operation to one of its two ends."""
        account = await self._account(record.subject)
        match record.action, account:
            case signup.ACTION, None:
                await self._undo_sign_up(record)
            case erasure.ACTION, AccountRow(store_state="erasing"):
                await self._finish_erasure(record)
            case rotation.ACTION, AccountRow(store_state="rotating"):
                await self._settle_rotation(record, account)
            case migration.ACTION, AccountRow(store_state="migrating"):
                await self._settle_migration(record, account)
            case _:
                await self._finish(record, "undone")

    async def _finish(self, record: RecordRow, outcome: steps.Outcome) -> None:
        await self._stores.registry.write(lambda tx: steps.finish(tx, record.key, outcome), _ACTOR)

    async def _undo_sign_up(self, record: RecordRow) -> None:
        """A sign-up that has no row gets no file: the name is free."""
        path = self._path(record.subject)
        await self._stores.on_thread(lambda: files.remove_all(path))
        await self._finish(record, "undone")
        telemetry.operation_undone(record.action)

    async def _finish_erasure(self, record: RecordRow) -> None:
        user_id = UserId(record.subject)
        path = self._path(user_id)
        await self._stores.on_thread(lambda: files.remove_all(path))
        await self._stores.registry.write(
            lambda tx: erasure.remove_row(tx, user_id, record.key), _ACTOR
        )
        await self._stores.registry.checkpoint()
        telemetry.operation_finished(record.action)

    async def _settle_rotation(self, record: RecordRow, account: AccountRow) -> None:
        """The salt of the file in place tells which key is the member's."""
        path = self._path(account.id)
        salt = await self._stores.on_thread(lambda: files.read_salt(path))
        is_exchanged = account.pending_file_salt is not None and salt == account.pending_file_salt
        await self._stores.on_thread(lambda: files.remove_new(path))
        if is_exchanged:
            await self._stores.on_thread(lambda: files.remove_snapshots(path))

        def write(tx: RegistryTransactor) -> None:
            if is_exchanged:
                rotation.adopt(tx, account.id, record.key)
            else:
                rotation.undo(tx, account.id, record.key)

        await self._stores.registry.write(write, _ACTOR)
        await self._stores.registry.checkpoint()
        if is_exchanged:
            telemetry.operation_finished(record.action)
        else:
            telemetry.operation_undone(record.action)

    async def _settle_migration(self, record: RecordRow, account: AccountRow) -> None:
        """The file is whole and of one of the two versions; the next unlock sees which."""
        path = self._path(account.id)
        await self._stores.on_thread(lambda: files.remove_new(path))

        def write(tx: RegistryTransactor) -> None:
            steps.finish(tx, record.key, "undone")
            tx.run(sql.END_STORE_STATE, user_id=account.id, store_state=account.store_state)

        await self._stores.registry.write(write, _ACTOR)
        telemetry.operation_undone(record.action)

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
                await self._stores.registry.write(end, _ACTOR)

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
        self._tell("file_without_member", sum(u not in known | busy for u, _ in found))
        present = {user_id for user_id, path in found if path == self._path(user_id)}
        missing = [row for row in rows if row.id not in present and row.store_state == OPEN]
        # Looked at again, for one that signed up after the files were listed.
        self._tell("member_without_file", sum(not self._path(m.id).exists() for m in missing))

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
