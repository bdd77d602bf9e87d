"""Changes of files in clear: each decided first, then done, and done twice it is done once.

A text is never changed in place. It is staged under a name of the program's own at the top of
its folder, durable, and takes its place by a rename. What takes place is a `Step`: it can be
done again, by another process, after a crash at any point, with the same outcome. Folders are
opened as `app.db.disk_tree` opens them, so no step leads out of its root.
"""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from app.db import disk_tree
from app.db.disk_tree import (
    NOTHING,
    OWN,
    above,
    descend,
    open_database,
    status_of,
    translated,
)

GONE: Final = f"{OWN}gone-"
"""How the names of what is removed begin until it is gone."""
_NAME_BYTES: Final = 16
_MS_NS: Final = 1_000_000
_STRUCTURE: Final = NOTHING | {
    errno.EACCES,
    errno.EEXIST,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ENOTEMPTY,
    errno.EPERM,
}
"""What a step meets when somebody else has changed the folder; tried again, it would hold up all
that is written there."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to take place in a folder; done twice it is done once."""

    do: Literal["place", "move", "remove"]
    source: str
    """For `place` the staged name; else the key of what goes."""
    target: str
    """For `remove` the name it has until it is gone; else the key of what comes."""
    mark: str
    """Of the source, by `mark_of`: whatever else stands there by then is left alone."""

    def as_json(self) -> dict[str, str]:
        """To be kept until it is done."""
        return asdict(self)


def stage(root: int, content: bytes, key: str) -> Step:
    """Write a text under a name of the program's own, durably.

    Args:
        root: The folder's descriptor.
        content: All of it.
        key: Where it is to stand.

    Returns:
        The step that puts it there.

    Raises:
        StoreError: There is no room, or no right.
    """
    name = f"{OWN}{secrets.token_hex(_NAME_BYTES)}"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with translated():
        descriptor = os.open(name, flags, 0o600, dir_fd=root)
        try:
            mark = _write(descriptor, content)
        except BaseException:
            os.unlink(name, dir_fd=root)
            raise
        finally:
            os.close(descriptor)
        os.fsync(root)
    return Step("place", name, key, mark)


def _write(descriptor: int, content: bytes) -> str:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    # The numbers of files that went are given out again at once: below the millisecond the
    # time is chance, and with it the mark.
    at = os.fstat(descriptor).st_mtime_ns // _MS_NS * _MS_NS + secrets.randbelow(_MS_NS)
    os.utime(descriptor, ns=(at, at))
    os.fsync(descriptor)
    return disk_tree.mark_of(os.fstat(descriptor))


def gone_name() -> str:
    """A name that what is removed has until it is gone."""
    return f"{GONE}{secrets.token_hex(_NAME_BYTES)}"


def do(root: int, step: Step) -> bool:
    """Have a step take place, durably.

    Args:
        root: The folder's descriptor.
        step: What; it may have been done before.

    Returns:
        False when the folder was changed meanwhile so that it cannot be.

    Raises:
        StoreError: It cannot be just now; to be tried again.
    """
    with translated():
        try:
            if step.do == "remove":
                _remove(root, step)
                return True
            return _rename(root, step)
        except OSError as error:
            if error.errno not in _STRUCTURE:
                raise
            return False


def _remove(root: int, step: Step) -> None:
    if mark_of(root, step.source) == step.mark:
        with contextlib.ExitStack() as stack:
            folder, name = above(stack, root, step.source)
            os.rename(name, step.target, src_dir_fd=folder, dst_dir_fd=root)
            os.fsync(folder)
            os.fsync(root)
    _remove_empty_above(root, step.source)


def _rename(root: int, step: Step) -> bool:
    if mark_of(root, step.source) != step.mark:
        # Done before, if it stands where it was to come.
        return mark_of(root, step.target) == step.mark
    if step.do == "move" and status_of(root, step.target) is not None:
        return False
    with contextlib.ExitStack() as stack:
        was, name = above(stack, root, step.source)
        *names, new_name = step.target.split("/")
        folder = descend(stack, root, names, make=True)
        os.rename(name, new_name, src_dir_fd=was, dst_dir_fd=folder)
        os.fsync(folder)
        os.fsync(was)
    if step.do == "move":
        _remove_empty_above(root, step.source)
    return True


def mark_of(root: int, key: str) -> str | None:
    """What tells the file or folder at a key from any other; None when nothing stands there."""
    status = status_of(root, key)
    return None if status is None else disk_tree.mark_of(status)


def _unlink_tree(folder: int, name: str) -> None:
    """Take a file, or a folder with all that is in it, away; no link in it is followed."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        shutil.rmtree(name, dir_fd=folder)
    os.fsync(folder)


def _remove_empty_above(root: int, key: str) -> None:
    """Folders are implied by what is in them: one that holds nothing any more goes."""
    names = key.split("/")[:-1]
    while names:
        try:
            with contextlib.ExitStack() as stack:
                folder = descend(stack, root, names[:-1])
                os.rmdir(names[-1], dir_fd=folder)
        except OSError:
            return
        names.pop()


def clear_gone(root: int) -> int:
    """Take away what was removed and still stands under a name of the program's own.

    Returns:
        How many there were.
    """
    return _clear(root, [name for name in os.listdir(root) if name.startswith(GONE)])


def own_names(root: int) -> list[str]:
    """What stands under the program's own names: being written, being removed, or left over."""
    return [name for name in os.listdir(root) if name.startswith(OWN)]


def clear_own(root: int, needed: Collection[str]) -> int:
    """Take all of that away that no step needs, while nobody stages anything.

    Args:
        root: The folder's descriptor.
        needed: Names that a step still to be done speaks of.

    Returns:
        How many there were.
    """
    return _clear(root, [name for name in own_names(root) if name not in needed])


def _clear(root: int, names: Collection[str]) -> int:
    with translated():
        for name in names:
            _unlink_tree(root, name)
    return len(names)


def remove_root(path: Path) -> None:
    """Take one folder away with all that is in it; twice is once."""
    with translated(), contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
        database = open_database(stack, path)
        _unlink_tree(descend(stack, database, [path.parent.name]), path.name)
