"""Whether this process can serve: the registry read, the disk written."""

import os
import secrets
from pathlib import Path

from app.bridge.strongroom import Strongroom
from app.errors.root import StrongroomError
from app.registry import roles


async def find_unmet(room: Strongroom) -> list[str]:
    """Names of what stands in the way; empty when it can."""
    unmet = []
    try:
        await room.stores.registry.read(roles.list_all)
    except StrongroomError:
        unmet.append("registry")
    try:
        await room.stores.on_thread(lambda: _write_probe(room.settings.database))
    except OSError:
        unmet.append("disk")
    return unmet


def _write_probe(folder: Path) -> None:
    probe = folder / f".probe-{secrets.token_hex(4)}"
    descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        # Without a name from here on: a process killed at this point leaves no file.
        probe.unlink()
        os.write(descriptor, b"ready\n")
    finally:
        os.close(descriptor)
