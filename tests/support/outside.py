"""What anybody with a shell sees of a root: its files, its registry, whom a password lets in.

Looks from a process of its own, beside the server or in its absence.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from app.bridge import layout
from app.bridge.accounts.passwords import binding_of
from app.bridge.content.file_folders import owners
from app.bridge.maintenance import inspection
from app.bridge.reading import reading
from app.clock import system_clock
from app.crypto import envelope, kdf
from app.crypto.envelope import UnwrapError
from app.crypto.kdf import KdfParams
from app.crypto.keys import Key
from app.db import files
from app.db.files import SIDECARS
from app.db.owner.store import OwnerReader
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.errors.stores import StoreError
from app.ids import DekId
from app.owner import identity
from app.runtime import steps
from app.settings import Settings

T = TypeVar("T")
_PATIENCE_S: Final = 20.0
_GLANCE_S: Final = 0.02
_ALWAYS: Final = frozenset({"system.db", ".lock", ".workers.lock", ".stores.lock"})
_SERVING: Final = "control.sock"
_FILES: Final = "files"


def eventually(look: Callable[[], T], wanted: Callable[[T], bool] = bool) -> T:
    """What a look sees as soon as it is what is wanted, for what other processes do in time."""
    until = time.monotonic() + _PATIENCE_S
    while not wanted(seen := look()):
        assert time.monotonic() < until, seen
        time.sleep(_GLANCE_S)
    return seen


def members(settings: Settings) -> dict[str, AccountRow]:
    """Every member's row by username."""
    with reading(settings) as reader:
        return {row.username: row for row in reader.all(sql.LIST_ALL_ACCOUNTS)}


def half_done(settings: Settings) -> list[str]:
    """What is under way, or was left by a crash: actions on record, stores out of service."""
    with reading(settings) as reader:
        moving = reader.all(sql.LIST_MOVING_STORES)
        pending = [row for row in reader.all(sql.LIST_ALL_ACCOUNTS) if row.pending_dek_id]
        return [
            *(record.action for record in steps.list_open(reader)),
            *(row.store_state for row in moving),
            *("pending key" for _ in pending),
        ]


def faults(settings: Settings, *, serving: bool) -> list[str]:
    """Everything that is not as it must be once nothing is under way; empty when all is well.

    Args:
        settings: Of the root.
        serving: Whether a server runs, so that SQLite's files may lie beside the stores'.
    """
    rows = members(settings).values()
    stores = {"system.db"} | {f"{row.id}.db" for row in rows}
    beside = {store + suffix for store in stores for suffix in SIDECARS}
    wanted = stores | _ALWAYS | (set() if rows else {settings.setup_token_file.name})
    allowed = wanted | {_FILES, "shared", "projects"} | (beside | {_SERVING} if serving else set())
    snapshots = {each.name for name in stores for each in files.snapshots(settings.database / name)}
    found = {path.name for path in settings.database.iterdir()} - snapshots
    in_root = {path.name for path in settings.root.iterdir()}
    return [
        *(f"half-done: {action}" for action in half_done(settings)),
        *(f"missing: {name}" for name in wanted - found),
        *(f"left over: {name}" for name in found - allowed),
        *(f"left over: {name}" for name in in_root - {"database", "instance.key"}),
        *(f"files of nobody: {owner}" for owner in owners(settings) - {row.id for row in rows}),
        *(f"{each.file}: {each.detail}" for each in inspection.inspect(settings).findings),
    ]


def key_of(row: AccountRow, password: str) -> Key | None:
    """The data key that a password opens, by what the registry holds; None for a wrong one."""
    params = KdfParams.from_json(row.kdf_params or "")
    with kdf.derive(password, row.kdf_salt or b"", params) as kek:
        try:
            return envelope.unwrap(kek, row.database_password or b"", binding_of(row.id))
        except UnwrapError:
            return None


def opens(settings: Settings, row: AccountRow, password: str) -> bool:
    """Whether a password opens the member's file, by what the registry holds and nothing else."""
    if not row.encrypted:
        return kdf.verify(password, row.password_hash or b"")
    key = key_of(row, password)
    if key is None:
        return False
    with key:
        try:
            connection = files.open_maintenance(
                settings.user_file(row.id), key, layout.MEMBER_KIND, system_clock, reader=True
            )
        except StoreError:
            return False
        with contextlib.closing(connection):
            dek_ids = frozenset({row.dek_id or DekId("")})
            identity.require_identity(OwnerReader(connection), row.id, dek_ids)
    return True


def regular_files(*folders: Path) -> Iterator[Path]:
    """Every regular file under these folders."""
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())
