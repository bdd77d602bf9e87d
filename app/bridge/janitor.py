"""What a crash leaves is finished or undone; rows are compared with files.

Runs before the service does, and each minute in one of its processes. A store that an
operation still holds is left alone: its exclusive lock tells.
"""

import re
from pathlib import Path
from typing import Final

from app import telemetry
from app.bridge import erasure, rotation, signup
from app.bridge.stores import OPEN, Stores
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
_STORE_FILE: Final = re.compile(
    r"^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.db(\.new)?(-wal|-shm|-journal)?$"
)


class Janitor:
    """Repairs, round by round."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self._settings = settings
        self._stores = stores

    async def round(self) -> None:
        """Finish or undo what is half-done, then compare rows with files."""
        await self._settle_records()
        await self._settle_states()
        await self._compare_files()

    async def _settle_records(self) -> None:
        for record in await self._stores.registry.read(steps.list_open):
            if record.action == signup.ACTION:
                await self._settle_sign_up(record)
            else:
                await self._settle_moving(record)

    async def _settle_sign_up(self, record: RecordRow) -> None:
        """A sign-up that has no row has no file: it is undone, and the name is free."""
        done = await self._stores.registry.read(lambda r: steps.answers(r, record.key))
        lock_number = int(done["lock"]["number"])
        if not self._stores.locks.try_exclusive(lock_number):
            return
        try:
            path = self._path(record.subject)
            await self._stores.on_thread(lambda: files.remove_all(path))
            await self._stores.registry.write(
                lambda tx: steps.finish(tx, record.key, "undone"), _ACTOR
            )
            telemetry.operation_undone(record.action)
        finally:
            self._stores.locks.release_exclusive(lock_number)

    async def _settle_moving(self, record: RecordRow) -> None:
        account = await self._account(record.subject)
        if account is None:
            await self._stores.registry.write(
                lambda tx: steps.finish(tx, record.key, "done"), _ACTOR
            )
            return
        if not self._stores.locks.try_exclusive(account.lock_number):
            return
        try:
            # Read again: whoever held the lock may have ended its work just now.
            present = await self._account(record.subject)
            if present is not None:
                await self._finish_or_undo(present, record.key)
        finally:
            self._stores.locks.release_exclusive(account.lock_number)

    async def _settle_states(self) -> None:
        """Stores out of service that no operation holds and no record explains."""
        moving = await self._stores.registry.read(lambda r: r.all(sql.LIST_MOVING_STORES))
        for account in moving:
            if not self._stores.locks.try_exclusive(account.lock_number):
                continue
            try:
                present = await self._account(account.id)
                if present is not None and present.store_state != OPEN:
                    await self._finish_or_undo(present, None)
            finally:
                self._stores.locks.release_exclusive(account.lock_number)

    async def _finish_or_undo(self, account: AccountRow, record: str | None) -> None:
        """Bring one member's half-done operation to one of its two ends."""
        key = record or account.id
        if account.store_state == "erasing" and record is not None:
            await self._finish_erasure(account, key)
        elif account.store_state == "rotating":
            await self._settle_rotation(account, key)
        else:
            await self._stores.registry.write(lambda tx: _end(tx, account, key), _ACTOR)

    async def _finish_erasure(self, account: AccountRow, record: str) -> None:
        path = self._path(account.id)
        await self._stores.on_thread(lambda: files.remove_all(path))
        await self._stores.registry.write(
            lambda tx: erasure.remove_row(tx, account.id, record), _ACTOR
        )
        telemetry.operation_finished(erasure.ACTION)

    async def _settle_rotation(self, account: AccountRow, record: str) -> None:
        """The salt of the file in place tells which key is the member's."""
        path = self._path(account.id)
        salt = await self._stores.on_thread(lambda: files.read_salt(path))
        if account.pending_file_salt is not None and salt == account.pending_file_salt:
            await self._stores.registry.write(
                lambda tx: rotation.adopt(tx, account.id, record), _ACTOR
            )
            telemetry.operation_finished(rotation.ACTION)
        else:
            await self._stores.on_thread(lambda: files.remove_new(path))
            await self._stores.registry.write(
                lambda tx: rotation.undo(tx, account.id, record), _ACTOR
            )
            telemetry.operation_undone(rotation.ACTION)

    async def _compare_files(self) -> None:
        """No row without a file, no file without a row."""
        # Files first: a sign-up makes its file before its row, so a file listed now whose
        # row is missing afterwards, with no open record, belongs to nobody.
        found = await self._stores.on_thread(self._list_files)
        records = await self._stores.registry.read(steps.list_open)
        rows = await self._stores.registry.read(lambda r: r.all(sql.LIST_ALL_ACCOUNTS))
        known = {row.id for row in rows} | {UserId(record.subject) for record in records}
        strays = [path for user_id, path in found if user_id not in known]
        await self._stores.on_thread(lambda: _unlink(strays))
        if strays:
            telemetry.janitor_repaired("file_without_member", len(strays))
        present = {user_id for user_id, _ in found}
        missing = sum(row.id not in present and row.store_state == OPEN for row in rows)
        if missing:
            telemetry.janitor_found("member_without_file", missing)

    def _list_files(self) -> list[tuple[UserId, Path]]:
        matches = [(_STORE_FILE.match(p.name), p) for p in self._settings.database.iterdir()]
        return [(UserId(match[1]), path) for match, path in matches if match]

    def _path(self, user_id: str) -> Path:
        return self._settings.user_file(UserId(user_id))

    async def _account(self, user_id: str) -> AccountRow | None:
        return await self._stores.registry.read(
            lambda reader: reader.one(sql.FIND_ACCOUNT, user_id=user_id)
        )



def _end(tx: RegistryTransactor, account: AccountRow, record: str) -> None:
    """Back in service, nothing done."""
    tx.run(sql.END_STORE_STATE, user_id=account.id, store_state=account.store_state)
    steps.finish(tx, record, "undone")


def _unlink(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
