"""Everything that happens before the first request: made, checked, brought to order.

Runs in the parent, alone on its root, and holds nothing open when it returns.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import Final

from app import telemetry
from app.bridge import instance_key, layout, setup
from app.bridge.gate import DerivationGate
from app.bridge.instance_key import InstanceKey
from app.bridge.janitor import Janitor
from app.bridge.seen import SeenNotes
from app.bridge.strongroom import Reach, Strongroom, reach_nothing
from app.bridge.stores import Stores
from app.clock import Clock, system_clock
from app.crypto import kdf
from app.crypto.kdf import KdfParams
from app.db import files
from app.db.context import system_actor
from app.db.files import Connection, require_fit_driver
from app.db.locks import LockFile
from app.db.owner.store import OwnerTransactor
from app.db.registry import statements as sql
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors import InstanceKeyError, StartError, StrongroomError
from app.owner import identity
from app.settings import Settings

_ACTOR: Final = system_actor("start")
_KDF: Final = "kdf_default"
_KEY_CHECK: Final = "instance_key_check"
_CALIBRATION_SALT: Final = bytes(kdf.SALT_BYTES)


def prepare(
    settings: Settings, clock: Clock = system_clock, kdf_params: KdfParams | None = None
) -> None:
    """Initialise a fresh root, or bring an old one to order; safe to do again.

    Args:
        settings: Where, and how.
        clock: The time.
        kdf_params: The cost of new passwords; None measures it on a fresh root.

    Raises:
        StartError: What stands in the way, in words.
    """
    try:
        asyncio.run(_prepare(settings, clock, kdf_params))
    except StartError:
        raise
    except StrongroomError as error:
        raise StartError(f"{settings.system_file}: {error}") from error
    except OSError as error:
        raise StartError(f"{error.filename}: {error.strerror}") from error


async def _prepare(settings: Settings, clock: Clock, kdf_params: KdfParams | None) -> None:
    require_fit_driver()
    settings.database.mkdir(mode=0o700, exist_ok=True)
    is_fresh = not settings.system_file.exists()
    if is_fresh:
        _make_root(settings, clock)
    async with running(settings, clock, kdf_params=kdf_params) as room:
        await Janitor(settings, room.stores).round()
        await _offer_setup(room)


def _make_root(settings: Settings, clock: Clock) -> None:
    """The instance key, then system.db under another name until it is whole."""
    if not settings.instance_key.exists():
        instance_key.make(settings.instance_key)
    key = instance_key.read(settings.instance_key)
    new = settings.system_file.with_name("system.db.new")
    files.remove(new)

    def fill(connection: Connection) -> None:
        identity.set_identity(OwnerTransactor(connection), layout.GROUP, None)
        connection.actor = _ACTOR
        registry = RegistryTransactor(connection)
        registry.run(sql.SET_CONFIG, key=_KEY_CHECK, value=f'"{key.check}"', now=clock())
        connection.actor = None

    files.create(new, None, layout.SYSTEM_KIND, clock, fill)
    files.replace_with_new(settings.system_file)


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

    Raises:
        InstanceKeyError: Another key than the one this root was made with.
    """
    key = instance_key.read(settings.instance_key)
    locks = LockFile(settings.stores_lock_file)
    stores = Stores(settings, clock, locks)
    gate = DerivationGate(locks)
    seen = SeenNotes(stores)
    try:
        await stores.warm()
        await _require_key(stores, key)
        params = kdf_params or await _default_cost(stores)
        yield Strongroom(settings, clock, stores, gate, key, params, seen, reach)
    finally:
        gate.close()
        await seen.settle()
        await stores.close()
        locks.close()


async def _require_key(stores: Stores, key: InstanceKey) -> None:
    row = await stores.registry.one(sql.FIND_CONFIG, key=_KEY_CHECK)
    if row is None or row.value != f'"{key.check}"':
        raise InstanceKeyError("It is not the key this root was made with.")


async def _default_cost(stores: Stores) -> KdfParams:
    """The cost of new passwords; measured once, at the first start, and kept."""

    def find(reader: RegistryReader) -> KdfParams | None:
        row = reader.one(sql.FIND_CONFIG, key=_KDF)
        return KdfParams.from_json(row.value) if row else None

    found = await stores.registry.read(find)
    if found is not None:
        kdf.require_floor(found)
        return found
    measured = await stores.on_thread(_calibrate)
    text = measured.to_json()
    await stores.registry.write(
        lambda tx: tx.run(sql.SET_CONFIG, key=_KDF, value=text, now=tx.now_ms), _ACTOR
    )
    return measured


def _calibrate() -> KdfParams:
    def measure(params: KdfParams) -> float:
        started = time.perf_counter()
        kdf.derive("calibration", _CALIBRATION_SALT, params).zero()
        return time.perf_counter() - started

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return kdf.calibrate(measure, memory)
