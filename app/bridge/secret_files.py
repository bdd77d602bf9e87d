"""Files that hold a secret: whole or not there, for the service's own user alone."""

import os
from pathlib import Path


def write_new(path: Path, text: str) -> Path:
    """Write a text beside its place, durable and 0600; the caller puts it there.

    What a crash left of an earlier one is replaced: whoever writes has the root to itself.

    Returns:
        Where it lies until then.

    Raises:
        OSError: There is no room, or no right; nothing is left.
    """
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        # Buffered writing goes on after a short write, and raises when it cannot.
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        new.unlink()
        raise
    return new
