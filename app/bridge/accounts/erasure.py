"""Erasure: the registry's state first, then the store, the files beside it, then the row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.bridge import access
from app.bridge.accounts import passwords
from app.bridge.callers import Call
from app.bridge.content import disk_sweep
from app.bridge.finishing import JANITOR, Desk, Operation
from app.bridge.strongroom import Strongroom, uncut
from app.bridge.taking import taken
from app.clock import Millis
from app.db import blobs, files
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.db.runtime import statements as runtime_sql
from app.ids import UserId, new_uuid7
from app.registry import accounts, throttle
from app.runtime import idempotency, steps
from app.runtime.steps import Outcome, Run

ACTION: Final = "erase"
SHAPE: Final = ("file", "blobs", "row")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erasure took away."""

    id: str
    user_id: UserId
    erased_at: Millis
    file_bytes: int


def admit_all(_account: AccountRow) -> None:
    """What the operator, and who has been judged already, may erase: anybody."""


@uncut
async def erase(
    room: Strongroom,
    user_id: str,
    call: Call,
    actor: Actor,
    admit: Callable[[AccountRow], None] = admit_all,
) -> Receipt:
    """Erase a member: their file, what the registry knows of them, every way in.

    Args:
        room: The service.
        user_id: Whom.
        call: The request.
        actor: Who does it.
        admit: Judges, in the transaction that begins it, whether they may.

    Returns:
        What was taken away.

    Raises:
        NotFoundError: Nobody has this id.
        LastAdministratorError: Nobody would be left to administer.
        StoreBusyError: The store was not let go in time; nothing was changed.
    """
    registry, once = room.stores.registry, call.once
    if once is not None:
        # Done, there is nobody left to be found.
        await registry.read(once.require_new)
    account = await registry.read(lambda reader: accounts.get(reader, user_id))

    def judge(tx: RegistryTransactor) -> None:
        # From this transaction on nobody counts the member among the administrators.
        present = accounts.get(tx, account.id)
        admit(present)
        accounts.require_other_administrator(tx, present)

    path = room.settings.user_file(account.id)
    folder = room.settings.files_folder(account.id)
    run = Run(new_uuid7(room.clock()))
    lock_number = account.lock_number
    async with taken(room, account.id, lock_number, "erasing", actor, judge, once=once) as hold:
        room.reach("erase.taken")
        size = await access.used_bytes(room, account.id)

        def begin(tx: RegistryTransactor) -> Receipt:
            steps.begin(tx, run, ACTION, account.id, SHAPE)
            steps.sent(tx, run, "file", account.id)
            receipt = Receipt(run.key, account.id, tx.now_ms, size)
            if hold.once is not None:
                # From here on it will be done, by this run or after a crash.
                hold.once.begin(tx, receipt, is_again=True)
            return receipt

        receipt = await registry.write(begin, actor)
        hold.must_finish = True
        room.reach("erase.begun")
        await room.stores.on_thread(lambda: files.remove_all(path))
        room.reach("erase.file_removed")

        def go_on(tx: RegistryTransactor) -> None:
            steps.answered(tx, run, "file", {"bytes": size})
            steps.sent(tx, run, "blobs", account.id)

        await registry.write(go_on, actor)
        await room.stores.on_thread(lambda: blobs.remove_folder(folder))
        room.reach("erase.blobs_removed")
        attempt = passwords.attempt_of(room, account.username, call.network)

        def end(tx: RegistryTransactor) -> Receipt:
            remove_row(tx, account.id, run)
            throttle.forget(tx, attempt)
            return receipt

        await registry.write(end, actor, once=hold.once)
        room.reach("erase.row_removed")
        # The row's cascade left word of the member's projects.
        await disk_sweep.remove_gone(room.settings, room.stores)
    await registry.checkpoint()
    room.reach("erase.done")
    return receipt


def remove_row(tx: RegistryTransactor, user_id: UserId, run: Run) -> None:
    """The last step: the row goes, with slots, sessions and edges, and what the record says of it.

    Events and audit keep that something was done, when and by whom; no name or value.
    """
    tx.run(sql.REMOVE_ACCOUNT, user_id=user_id)
    tx.run(runtime_sql.FORGET_AUDIT_OF_USER, user_id=user_id)
    tx.run(runtime_sql.FORGET_EVENTS_OF_USER, user_id=user_id)
    tx.run(runtime_sql.FORGET_OUTBOX_OF_USER, user_id=user_id)
    idempotency.forget_user(tx, user_id)
    idempotency.settle(tx, user_id, "done")
    steps.finish(tx, run, "done")


async def _settle(desk: Desk) -> Outcome:
    """Begun, it is finished: nothing of it needs a secret."""
    await desk.stores.on_thread(lambda: files.remove_all(desk.path))
    await desk.stores.on_thread(lambda: blobs.remove_folder(desk.folder))
    await desk.stores.registry.write(lambda tx: remove_row(tx, desk.subject, desk.run), JANITOR)
    await disk_sweep.remove_gone(desk.settings, desk.stores)
    await desk.stores.registry.checkpoint()
    return "done"


OPERATION: Final = Operation(
    action=ACTION,
    shape=SHAPE,
    state="erasing",
    settle=_settle,
    asked=lambda subject, _account: {"file": subject, "blobs": subject},
)
