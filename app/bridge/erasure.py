"""Erasure: the registry's state first, then the file, then the row."""

from dataclasses import dataclass
from typing import Final

from app.bridge import passwords
from app.bridge.callers import Call
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db import files
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.ids import UserId, new_uuid7
from app.registry import accounts, throttle
from app.runtime import steps

ACTION: Final = "erase"
SHAPE: Final = ("file", "row")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erasure took away."""

    id: str
    user_id: UserId
    erased_at: Millis
    file_bytes: int


async def erase(room: Strongroom, user_id: str, call: Call, actor: Actor) -> Receipt:
    """Erase a member: their file, what the registry knows of them, every way in.

    Raises:
        NotFoundError: Nobody has this id.
        LastAdministratorError: Nobody would be left to administer.
        StoreBusyError: The store was not let go in time; nothing was changed.
    """
    registry = room.stores.registry

    def find(reader: RegistryReader) -> AccountRow:
        account = accounts.get(reader, user_id)
        accounts.require_other_administrator(reader, account)
        return account

    account = await registry.read(find)
    path = room.settings.user_file(account.id)
    record = new_uuid7(room.clock())
    async with room.stores.taken(account.id, account.lock_number, "erasing", actor) as hold:
        room.reach("erase.taken")

        def begin(tx: RegistryTransactor) -> None:
            accounts.require_other_administrator(tx, accounts.get(tx, account.id))
            steps.begin(tx, record, ACTION, account.id, SHAPE)
            steps.sent(tx, record, "file", account.id)

        await registry.write(begin, actor)
        hold.must_finish = True
        room.reach("erase.begun")
        size = await room.stores.on_thread(lambda: files.size(path))
        await room.stores.on_thread(lambda: files.remove_all(path))
        room.reach("erase.file_removed")
        attempt = passwords.attempt_of(room, account.username, call.network)

        def end(tx: RegistryTransactor) -> Millis:
            remove_row(tx, account.id, record)
            throttle.forget(tx, attempt)
            return tx.now_ms

        erased_at = await registry.write(end, actor)
        room.reach("erase.row_removed")
    await registry.checkpoint()
    return Receipt(record, account.id, erased_at, size)


def remove_row(tx: RegistryTransactor, user_id: UserId, record: str) -> None:
    """The last step: the row goes, and with it slots, sessions and edges."""
    tx.run(sql.REMOVE_ACCOUNT, user_id=user_id)
    steps.finish(tx, record, "done")
