"""The kernel's byte-range locks, and the lock on a whole file.

All are open-file-description locks (fcntl(2), `F_OFD_SETLK`): they belong to the open file
and not to the process, so closing some other descriptor of the same file never drops them,
and the kernel frees them with the process, however it ends. A forked child would share
them: processes that use them are spawned.
"""

import fcntl
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from app.errors.starting import AlreadyServingError

WHOLE_FILE = 0  # as a length: to the end, however far that is
_FLOCK = struct.Struct("hhqqi0q")  # l_type, l_whence, l_start, l_len, l_pid, padding

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.020


def open_lock_file(path: Path) -> int:
    """Open a lock file, made with mode 0600 when absent."""
    # Never unlinked: that gives two exclusive holders, one of the old file, one of the new.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def lock_range(fd: int, kind: int, start: int, length: int = 1, *, wait: bool = False) -> bool:
    """Set, change or (`F_UNLCK`) drop the lock on a range of bytes.

    Returns:
        False when another open file's lock stands against it; never so with `wait`.
    """
    # l_pid must be 0, else the kernel answers EINVAL.
    request = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, request)
    except BlockingIOError:
        return False
    return True


def is_locked(fd: int, byte: int) -> bool:
    """Whether another open file has a lock on a byte, of whichever kind."""
    request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, request)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def poll(attempt: Callable[[], bool], deadline: float) -> bool:
    """Attempt until it succeeds or `deadline` (monotonic seconds) has passed; at least once."""
    pause = _FIRST_PAUSE_S
    while not attempt():
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        time.sleep(min(pause, remaining))
        pause = min(2 * pause, _LONGEST_PAUSE_S)
    return True


class FileLock:
    """A lock on a whole file of its own, made when absent; its text may say who holds it."""

    def __init__(self, path: Path) -> None:
        self._fd = open_lock_file(path)

    def fileno(self) -> int:
        """The descriptor; a child it is passed on to shares the lock. -1 once closed."""
        return self._fd

    def try_exclusive(self) -> bool:
        """Take the lock for this open file alone, or answer False at once."""
        return lock_range(self._fd, fcntl.F_WRLCK, 0, WHOLE_FILE)

    def acquire_exclusive(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds for try_exclusive; False when it stayed taken."""
        return poll(self.try_exclusive, time.monotonic() + timeout_s)

    def acquire_shared(self) -> None:
        """Take the lock beside other sharers; what was exclusive here becomes shared.

        Raises:
            AlreadyServingError: Another holds it exclusively.
        """
        if not lock_range(self._fd, fcntl.F_RDLCK, 0, WHOLE_FILE):
            raise AlreadyServingError

    def write_holder(self, pid: int) -> None:
        """Say in the file who holds the lock; for its exclusive holder."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % pid, 0)

    def holder(self) -> int | None:
        """The process last written, None when none was; it says nothing of a free lock."""
        text = os.pread(self._fd, 20, 0).strip()
        return int(text) if text.isdigit() else None

    def release(self) -> None:
        """Free the lock, in inherited copies too."""
        if self._fd >= 0:
            lock_range(self._fd, fcntl.F_UNLCK, 0, WHOLE_FILE)

    def close(self) -> None:
        """Let go of this copy of the open file; the lock is free with the last one."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
