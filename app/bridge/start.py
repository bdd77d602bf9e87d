"""Everything that happens before the first request: made, checked, brought to order.

Runs in the parent, alone on its root, and holds nothing open when it returns.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from app import metrics, telemetry
from app.bridge import instance_key, layout
from app.bridge.accounts import setup
from app.bridge.accounts.acts import Acts
from app.bridge.content.waiting import Approvals
from app.bridge.gate import DerivationGate
from app.bridge.instance_key import InstanceKey
from app.bridge.maintenance.janitor import Janitor
from app.bridge.operations import Operations
from app.bridge.seen import SeenNotes
from app.bridge.stores import Stores
from app.bridge.strongroom import Reach, Strongroom, reach_nothing
from app.clock import Clock, system_clock
from app.crypto import kdf
from app.crypto.kdf import KdfParams
from app.db import files, upgrades
from app.db.context import system_actor
from app.db.files import Connection, require_fit_driver
from app.db.locks import LockFile
from app.db.owner.store import OwnerTransactor
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.root import StrongroomError
from app.errors.starting import InstanceKeyError, StartError
from app.owner import identity, scaffold
from app.settings import Settings

_ACTOR: Final = system_actor("start")
_KDF: Final = "kdf_default"
_KEY_CHECK: Final = "instance_key_check"
_CALIBRATION_SALT: Final = bytes(kdf.SALT_BYTES)
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def prepare(
    settings: Settings,
    clock: Clock = system_clock,
    kdf_params: KdfParams | None = None,
    reach: Reach = reach_nothing,
) -> None:
    """Initialise a fresh root, or bring an old one to order; safe to do again.

    Args:
        settings: Where, and how.
        clock: The time.
        kdf_params: The cost of new passwords; None measures it on a fresh root.
        reach: Told each named point.

    Raises:
        StartError: What stands in the way, in words.
    """
    try:
        asyncio.run(_prepare(settings, clock, kdf_params, reach))
    except StartError:
        raise
    except StrongroomError as error:
        reason = f"{settings.system_file}: {error}"
        raise StartError(reason) from error
    except OSError as error:
        reason = f"{error.filename or settings.database}: {error.strerror}"
        raise StartError(reason) from error


async def _prepare(
    settings: Settings, clock: Clock, kdf_params: KdfParams | None, reach: Reach
) -> None:
    require_fit_driver()
    settings.database.mkdir(mode=0o700, exist_ok=True)
    metrics.clear(settings.metrics_folder)
    is_fresh = not settings.system_file.exists()
    if is_fresh:
        _make_root(settings, clock)
    else:
        _bring_up(settings, clock, reach)
    instance_key.forget_unfinished(settings.instance_key)
    async with running(settings, clock, kdf_params=kdf_params) as room:
        await Janitor(settings, room.stores).round()
        await _offer_setup(room)


def _make_root(settings: Settings, clock: Clock) -> None:
    """The instance key, then system.db under another name until it is whole."""
    _require_no_members(settings)
    if not settings.instance_key.exists():
        instance_key.make(settings.instance_key)
    key = instance_key.read(settings.instance_key)
    new = settings.system_file.with_name("system.db.new")
    files.remove(new)

    def fill(connection: Connection) -> None:
        tx = OwnerTransactor(connection)
        identity.set_identity(tx, layout.GROUP, None)
        connection.actor = _ACTOR
        scaffold.lay_out(tx, layout.GROUP, scaffold.GROUP_INDEX)
        registry = RegistryTransactor(connection)
        registry.run(sql.SET_CONFIG, key=_KEY_CHECK, value=f'"{key.check}"', now=clock())
        connection.actor = None

    files.create(new, None, layout.SYSTEM_KIND, clock, fill)
    files.replace_with_new(settings.system_file)


def _bring_up(settings: Settings, clock: Clock, reach: Reach) -> None:
    """Bring system.db to the present version, with a copy of what it was beside it.

    Members' own stores wait for their first opening.

    Raises:
        StoreTooNewError: Written by a newer program; not a byte of it is changed.
        StoreBusyError: A process beside the server reads it for too long.
    """
    path, kind = settings.system_file, layout.SYSTEM_KIND
    with contextlib.closing(LockFile(settings.stores_lock_file)) as locks:
        # What a start that was cut left of a copy; nobody else makes one.
        files.remove_new(path)
        version = upgrades.outdated_version(path, None, kind, clock)
        if version is None:
            return
        locks.acquire_exclusive(layout.SYSTEM_LOCK, settings.exclusive_wait_s)
        try:
            upgrades.take_snapshot(path, None, kind, version, clock)
            reach("start.copied")
            upgrades.migrate(path, None, kind, clock, lambda: reach("start.applying"))
            reach("start.applied")
        except StrongroomError:
            raise
        except Exception as error:
            telemetry.unexpected("migration", error)
            reason = f"{path}: its migration failed, and left it as it was at version {version}."
            raise StartError(reason) from error
        finally:
            locks.release_exclusive(layout.SYSTEM_LOCK)
    telemetry.store_migrated(layout.GROUP, kind.version)


def _require_no_members(settings: Settings) -> None:
    """Refuse to begin anew where members' stores are: without their registry none opens.

    Raises:
        StartError: There are some.
    """
    if layout.has_members(settings.database):
        raise StartError(layout.LOST_REGISTRY.format(settings.system_file))


async def _offer_setup(room: Strongroom) -> None:
    """While there is nobody, a new setup token; else none."""
    path = room.settings.setup_token_file
    count = await room.stores.registry.read(lambda reader: reader.one(sql.COUNT_ACCOUNTS))
    if count is not None and count.value:
        path.unlink(missing_ok=True)
        return
    setup.write_token(path, room.clock())
    await room.stores.registry.write(setup.reset_tries, _ACTOR)
    telemetry.setup_token_ready(path)


@contextlib.asynccontextmanager
async def running(
    settings: Settings,
    clock: Clock = system_clock,
    *,
    kdf_params: KdfParams | None = None,
    reach: Reach = reach_nothing,
) -> AsyncIterator[Strongroom]:
    """One process's whole service, open; closed in order on the way out.

    Args:
        settings: Of the whole server.
        clock: The time.
        kdf_params: The cost of new passwords; None takes the root's own.
        reach: Told each named point of an operation.

    Yields:
        The service.

    Raises:
        InstanceKeyError: Another key than the one this root was made with.
        StartError: What else stands in the way.
    """
    key = instance_key.read(settings.instance_key)
    with contextlib.closing(LockFile(settings.stores_lock_file)) as locks:
        stores = Stores(settings, clock, locks)
        stores.company += [Acts(stores.registry), Approvals(stores.registry)]
        gate = DerivationGate(locks)
        seen = SeenNotes(stores)
        operations = Operations()
        try:
            await stores.warm()
            await _require_key(stores, key)
            params = kdf_params or await _default_cost(stores)
            yield Strongroom(settings, clock, stores, gate, key, params, seen, operations, reach)
        finally:
            # What waits for a derivation is refused; what is past it runs to its end.
            gate.close()
            await operations.settle()
            await seen.settle()
            await stores.close()


async def _require_key(stores: Stores, key: InstanceKey) -> None:
    row = await stores.registry.one(sql.FIND_CONFIG, key=_KEY_CHECK)
    if row is None or row.value != f'"{key.check}"':
        reason = "It is not the key this root was made with."
        raise InstanceKeyError(reason)


async def _default_cost(stores: Stores) -> KdfParams:
    """The cost of new passwords; measured once, at the first start, and kept."""
    row = await stores.registry.one(sql.FIND_CONFIG, key=_KDF)
    if row is not None:
        return _read_cost(row.value)
    measured = await stores.on_thread(_calibrate)
    text = measured.to_json()
    await stores.registry.write(
        lambda tx: tx.run(sql.SET_CONFIG, key=_KDF, value=text, now=tx.now_ms), _ACTOR
    )
    return measured


def _read_cost(text: str) -> KdfParams:
    try:
        params = KdfParams.from_json(text)
        kdf.require_floor(params)
    except ValueError as error:
        reason = f"The setting {_KDF} of this root is not a cost that passwords may have."
        raise StartError(reason) from error
    return params


def _calibrate() -> KdfParams:
    def measure(params: KdfParams) -> float:
        started = time.perf_counter()
        kdf.derive("calibration", _CALIBRATION_SALT, params).zero()
        return time.perf_counter() - started

    return kdf.calibrate(measure, memory_bytes(_CGROUP_LIMIT))


def memory_bytes(limit_file: Path) -> int:
    """Memory of the machine, or of the container when that has less.

    Args:
        limit_file: Of the container's control group (cgroup v2, `memory.max`): a number of
            bytes, or `max`; it need not be there.

    Returns:
        Bytes.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        return min(machine, int(limit_file.read_text("ascii")))
    return machine
