"""The instance key: seals secrets in system.db and keys the throttle. No backup contains it."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from app.bridge import secret_files
from app.crypto import kdf
from app.crypto.keys import KEY_BYTES
from app.errors.starting import InstanceKeyError

_THROTTLE: Final = b"strongroom v1 throttle"
_SECRETS: Final = b"strongroom v1 secrets"
_CHECK: Final = b"strongroom v1 instance key check"


class InstanceKey:
    """What is derived from the instance key; the key itself is not kept."""

    def __init__(self, secret: bytes) -> None:
        self.secrets = kdf.hkdf(secret, _SECRETS)
        """Seals the values of the group store's `secrets`."""
        self.throttle = bytes(kdf.hkdf(secret, _THROTTLE).view())
        """Keys the counters of the throttle."""
        self.check = kdf.hkdf(secret, _CHECK).view().hex()
        """Tells another key from this one; yields nothing of it."""


def read(path: Path) -> InstanceKey:
    """Read the key's file.

    Returns:
        What is derived from it.

    Raises:
        InstanceKeyError: It is missing, or not 64 hexadecimal digits.
    """
    try:
        secret = bytes.fromhex(path.read_text("ascii").strip())
    except FileNotFoundError as error:
        reason = f"{path} is missing; without it the group's secrets cannot be read."
        raise InstanceKeyError(reason) from error
    except (OSError, ValueError):
        # Without the cause: what is in the file stays out of every report.
        reason = f"{path} cannot be read, or is not 64 hexadecimal digits."
        raise InstanceKeyError(reason) from None
    if len(secret) != KEY_BYTES:
        reason = f"{path} is not 64 hexadecimal digits."
        raise InstanceKeyError(reason)
    return InstanceKey(secret)


def make(path: Path) -> None:
    """Make the key's file, 0600 and durable; an existing one stays as it is."""
    new = secret_files.write_new(path, secrets.token_hex(KEY_BYTES))
    with contextlib.suppress(FileExistsError):
        # A link refuses to replace, unlike a rename: two starts cannot end with two keys.
        path.hardlink_to(new)
    new.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def forget_unfinished(path: Path) -> None:
    """Take away what a crash between two steps of `make` left: a second copy of the key."""
    path.with_name(path.name + ".new").unlink(missing_ok=True)
