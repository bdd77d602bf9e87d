"""A member's data key changed: a new file under a new key, every other way in ended.

The new wraps, the new key's name and the salt the new file begins with are recorded
before the file is exchanged. After a crash the salt of the file in place tells which
key opens it, and the pending wraps are adopted or dropped; no secret is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.bridge import layout, migration
from app.bridge.accounts import passwords
from app.bridge.accounts.codes import recovery_slot
from app.bridge.accounts.passwords import Checked, PasswordWrap
from app.bridge.accounts.signin import slot_under
from app.bridge.callers import Call, Caller
from app.bridge.finishing import JANITOR, Desk, Operation
from app.bridge.stores import ROTATING
from app.bridge.strongroom import Strongroom, account_of
from app.bridge.taking import taken
from app.crypto.keys import Key
from app.db import files
from app.db.context import Actor
from app.db.files import Connection
from app.db.owner.store import OwnerTransactor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryTransactor
from app.errors.conflicts import StoreNotEncryptedError
from app.errors.stores import StoreBusyError, StoreDamagedError
from app.ids import DekId, SlotId, UserId, new_uuid7
from app.owner import access, identity
from app.registry import accounts, sessions
from app.registry.sessions import Kind, NewSlot
from app.runtime import steps
from app.runtime.steps import Outcome, Run
from app.runtime.versions import Match, require_version

ACTION: Final = "rotate"
SHAPE: Final = ("copy", "exchange", "switch")
_KINDS: Final[Mapping[Kind, str]] = {"browser": "session", "token": "token"}


@dataclass(frozen=True, slots=True, repr=False)
class Rotation:
    """A change of key that is asked for."""

    checked: Checked
    """The member, and the key that opens the store now; the caller's to zero."""
    password: str
    """The one that opens it from then on."""
    keep: Caller | None
    """The session that stays; None ends all, for whoever comes back with a code."""
    is_temporary: bool = False
    """Whether somebody else still knows the password."""
    match: Match = None
    """Versions of the member of which one must stand; None for any."""


class WayIn(NamedTuple):
    """A way to a member's store that ended."""

    kind: str
    """`session`, `token` or `recovery`."""
    id: str
    """Of the session or token; of a recovery code its slot's."""
    label: str


@dataclass(frozen=True, slots=True, repr=False)
class Rotated:
    """What a change of key leaves: the new code, shown once, and what ended."""

    recovery_code: str
    ended: tuple[WayIn, ...]
    """Every other way in there was."""


@dataclass(frozen=True, slots=True, repr=False)
class _Plan:
    """The new key under every secret that opens it."""

    run: Run
    dek: Key
    dek_id: DekId
    wrapped: PasswordWrap
    slots: tuple[NewSlot, ...]
    recovery_code: str


async def rotate(room: Strongroom, wanted: Rotation, call: Call, actor: Actor) -> Rotated:
    """Give a member's store a new data key under a password.

    The caller is not to be cut: `uncut` is around every operation that comes here.

    Returns:
        The new recovery code, and what ended.

    Raises:
        StoreNotEncryptedError: A plain file has no key.
        StoreBusyError: The store was not let go in time, or its key was changed meanwhile;
            nothing was changed.
        VersionConflictError: Another version of the member stands.
    """
    account = wanted.checked.account
    if wanted.checked.dek is not None:
        # The copy is written to by this build, which knows the present schema alone.
        own = Key(bytes(wanted.checked.dek.view()))
        await migration.bring_up(room, account_of(account), own)
    with Key.generate() as new_dek:
        plan = await _plan(room, wanted, new_dek, call)
        room.reach("rotate.planned")
        async with taken(room, account.id, account.lock_number, ROTATING, actor) as hold:
            room.reach("rotate.taken")
            await _begin(room, wanted, plan, actor)
            # From here on both ends, done and undone, put the store back in service; when
            # one of them fails, the janitor comes to one of them.
            hold.must_finish = True
            room.reach("rotate.begun")
            await _prepare(room, wanted, plan, call, actor)
            ended = await _exchange(room, account.id, plan, actor)
    await room.stores.registry.checkpoint()
    room.reach("rotate.done")
    return Rotated(plan.recovery_code, ended)


async def _plan(room: Strongroom, wanted: Rotation, new_dek: Key, call: Call) -> _Plan:
    """Everything that needs time or a secret, before anybody is kept waiting."""
    user_id, keep = wanted.checked.account.id, wanted.keep
    now = room.clock()
    dek_id = DekId(new_uuid7(now))
    wrapped = await passwords.wrap(room, user_id, wanted.password, new_dek, call.network)
    code, slot = recovery_slot(user_id, new_dek, dek_id, SlotId(new_uuid7(now)), is_pending=True)
    slots = [slot]
    if keep is not None:
        slot_id = SlotId(new_uuid7(now))
        # Until it is adopted the label says which session it is for.
        label = keep.session_id
        slots.append(
            slot_under(keep.token, new_dek, user_id, dek_id, slot_id, label=label, is_pending=True)
        )
    return _Plan(Run(new_uuid7(now)), new_dek, dek_id, wrapped, tuple(slots), code)


async def _begin(room: Strongroom, wanted: Rotation, plan: _Plan, actor: Actor) -> None:
    """Put the operation on record, if what was checked still holds."""
    checked = wanted.checked
    user_id = checked.account.id

    def write(tx: RegistryTransactor) -> None:
        if not passwords.holds(tx, checked):
            raise StoreBusyError
        require_version(accounts.get(tx, user_id).version, wanted.match)
        steps.begin(tx, plan.run, ACTION, user_id, SHAPE)
        steps.sent(tx, plan.run, "copy", plan.dek_id)

    if checked.account.dek_id is None:
        raise StoreNotEncryptedError
    await room.stores.registry.write(write, actor)


async def _prepare(
    room: Strongroom, wanted: Rotation, plan: _Plan, call: Call, actor: Actor
) -> None:
    """The copy beside the store, and what opens it in the registry; or neither."""
    user_id, dek = wanted.checked.account.id, wanted.checked.dek
    path = room.settings.user_file(user_id)

    def amend(connection: Connection) -> None:
        tx = OwnerTransactor(connection)
        identity.set_identity(tx, user_id, plan.dek_id)
        if wanted.keep is None:
            # Whoever came with the code opened the store, and the member is to see it.
            access.record_access(tx, "recovery", None, None, call.network)
        room.reach("rotate.amending")

    def copy() -> bytes:
        if dek is None:
            raise StoreNotEncryptedError
        return files.copy_under_new_key(path, dek, plan.dek, layout.MEMBER_KIND, room.clock, amend)

    try:
        try:
            salt = await room.stores.on_thread(copy)
        except StoreDamagedError as error:
            raise await room.stores.told_apart(error, wanted.checked.account.file_salt) from error
        room.reach("rotate.copied")
        await room.stores.registry.write(lambda tx: _record_pending(tx, wanted, plan, salt), actor)
    except BaseException:
        await room.stores.on_thread(lambda: files.remove_new(path))
        await room.stores.registry.write(lambda tx: undo(tx, user_id, plan.run), actor)
        raise
    room.reach("rotate.recorded")


def _record_pending(tx: RegistryTransactor, wanted: Rotation, plan: _Plan, salt: bytes) -> None:
    recorded = tx.run(
        sql.SET_PENDING_KEY,
        user_id=wanted.checked.account.id,
        database_password=plan.wrapped.database_password,
        kdf_params=plan.wrapped.kdf_params,
        kdf_salt=plan.wrapped.kdf_salt,
        dek_id=plan.dek_id,
        file_salt=salt,
    )
    if not recorded:
        raise StoreBusyError
    for slot in plan.slots:
        sessions.add_slot(tx, slot)
    answer = {"is_temporary": int(wanted.is_temporary)}
    steps.answered(tx, plan.run, "copy", answer)
    steps.sent(tx, plan.run, "exchange", plan.dek_id)


async def _exchange(
    room: Strongroom, user_id: UserId, plan: _Plan, actor: Actor
) -> tuple[WayIn, ...]:
    """The point of no return, and what follows from it."""
    path = room.settings.user_file(user_id)
    await room.stores.on_thread(lambda: files.replace_with_new(path))
    room.reach("rotate.exchanged")
    # Before the record ends, so that no copy under the old key outlives the change.
    await room.stores.on_thread(lambda: files.remove_snapshots(path))
    ended = await room.stores.registry.write(lambda tx: adopt(tx, user_id, plan.run), actor)
    room.reach("rotate.switched")
    return ended


def adopt(tx: RegistryTransactor, user_id: UserId, run: Run) -> tuple[WayIn, ...]:
    """The new file stands: its key is the member's, and every other way in ends.

    Returns:
        The ways in that ended.

    Raises:
        StoreBusyError: There is no change of key to adopt; nothing was changed.
    """
    is_temporary = steps.answers(tx, run.key).get("copy", {}).get("is_temporary", 0)
    adopted = tx.run(
        sql.ADOPT_PENDING_KEY, user_id=user_id, is_temporary=is_temporary, now=tx.now_ms
    )
    if not adopted:
        raise StoreBusyError
    kept = _adopt_slots(tx, user_id)
    ended: list[WayIn] = []
    for kind in _KINDS:
        live = sessions.list_of_kind(tx, user_id, kind)
        ended += [WayIn(_KINDS[kind], row.id, row.label) for row in live if row.id != kept]
        sessions.revoke_others(tx, user_id, kind, kept)
    dek_id = accounts.get(tx, user_id).dek_id
    slots = tx.run(sql.REMOVE_SLOTS_OF_OLD_KEY, user_id=user_id, dek_id=dek_id)
    ended += [WayIn(slot.kind, slot.value, slot.label) for slot in slots if slot.kind == "recovery"]
    steps.finish(tx, run, "done")
    return tuple(ended)


def _adopt_slots(tx: RegistryTransactor, user_id: UserId) -> str:
    """Put the prepared slots in use; the id of the session that stays."""
    kept = sessions.NOBODY
    for slot in tx.run(sql.ADOPT_PENDING_SLOTS, user_id=user_id):
        if slot.kind != "session":
            continue
        old = tx.one(sql.FIND_SESSION, user_id=user_id, session_id=slot.label)
        if old is None:
            # Ended while the file was copied; its slot must not outlive it.
            tx.run(sql.REMOVE_SLOT, user_id=user_id, slot_id=slot.value)
            continue
        kept = old.id
        tx.run(sql.SET_SESSION_SLOT, session_id=old.id, slot_id=slot.value)
        tx.run(sql.SET_SLOT_LABEL, user_id=user_id, slot_id=slot.value, label=old.label)
    return kept


def undo(tx: RegistryTransactor, user_id: UserId, run: Run) -> None:
    """The old file stands: what was prepared goes."""
    tx.run(sql.REMOVE_PENDING_SLOTS, user_id=user_id)
    tx.run(sql.DROP_PENDING_KEY, user_id=user_id)
    steps.finish(tx, run, "undone")


async def _settle(desk: Desk) -> Outcome:
    """The salt of the file in place tells which key is the member's."""
    account, on_thread = desk.account, desk.stores.on_thread
    salt = await on_thread(lambda: files.read_salt(desk.path))
    pending = None if account is None else account.pending_file_salt
    is_exchanged = pending is not None and salt == pending
    await on_thread(lambda: files.remove_new(desk.path))
    if is_exchanged:
        await on_thread(lambda: files.remove_snapshots(desk.path))

    def write(tx: RegistryTransactor) -> None:
        if is_exchanged:
            adopt(tx, desk.subject, desk.run)
        else:
            undo(tx, desk.subject, desk.run)

    await desk.stores.registry.write(write, JANITOR)
    await desk.stores.registry.checkpoint()
    return "done" if is_exchanged else "undone"


def _asked(_subject: UserId, account: AccountRow | None) -> dict[str, str]:
    """What is pending must be what the steps were to make; nothing is before the copy is there."""
    if account is None or account.pending_dek_id is None:
        return {}
    return dict.fromkeys(("copy", "exchange"), account.pending_dek_id)


OPERATION: Final = Operation(
    action=ACTION, shape=SHAPE, state=ROTATING, settle=_settle, asked=_asked
)
