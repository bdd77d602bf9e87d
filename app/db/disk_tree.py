"""Files in clear below one folder: opened component by component, never through a link.

Whoever may write in the folder beside the program may exchange anything in it at any moment.
So a component is opened in the one before it and without following links, and a file is held
by its inode (`O_PATH`, open(2)) and judged before a byte of it is read: a regular file that
has this name alone. A second name could be that of a store's file, and to close any
descriptor of one drops SQLite's locks; an `O_PATH` descriptor has no part in them.
"""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from app.db.driver_errors import translated_os_error
from app.errors.callers import NotANoteError, NotFoundError
from app.errors.conflicts import NotTextError, PathConflictError
from app.errors.inputs import InvalidPathError

OWN: Final = ".strongroom-"
"""How the program's own names begin, at the top of a folder."""
ENTRIES_MAX: Final = 10_000
"""Entries of one listing."""
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIGEST_BITS: Final = 53
_MS_NS: Final = 1_000_000
_TRIES: Final = 16
"""To hold a file that is replaced all the while."""
NOTHING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What opening meets where nothing stands, or no folder where one was to be."""


class Text(NamedTuple):
    """One text as it stands."""

    content: str
    size_bytes: int
    digest: int
    """Of its bytes, by `short_digest`."""
    mark: str
    """Of its file, by `mark_of`."""
    changed_at: int
    """Unix milliseconds, by the disk."""


class Entry(NamedTuple):
    """A file or a folder, as a listing shows it."""

    key: str
    is_dir: bool
    size_bytes: int
    changed_at: int
    """Unix milliseconds, by the disk."""
    mark: str
    """What tells it from any other."""


def mark_of(status: os.stat_result) -> str:
    """What tells a file or folder from any other that stands at its place, before or after."""
    return f"{status.st_ino}.{status.st_mtime_ns}"


def text_of(content: str, mark: str, changed_at: int) -> Text:
    """A text as it stands in the file of a mark, changed at a time in Unix milliseconds."""
    raw = content.encode()
    return Text(content, len(raw), short_digest(raw), mark, changed_at)


def short_digest(raw: bytes) -> int:
    """53 bits of the SHA-256, at least 1: as many as any JSON reader keeps."""
    digest = hashlib.sha256(raw).digest()
    return int.from_bytes(digest[:8]) >> (64 - _DIGEST_BITS) or 1


@contextlib.contextmanager
def opened(path: Path, *, make: bool = False) -> Iterator[int]:
    """Open one folder, `{database}/{kind}/{id}`, itself no link and in none.

    Args:
        path: Where.
        make: Whether to make it where it is missing.

    Yields:
        Its descriptor.

    Raises:
        NotFoundError: There is none.
        StoreError: It cannot be opened just now.
    """
    with contextlib.ExitStack() as stack:
        with translated():
            try:
                database = open_database(stack, path)
                root = descend(stack, database, [path.parent.name, path.name], make=make)
            except OSError as error:
                if error.errno in NOTHING:
                    raise NotFoundError from None
                raise
        yield root


def open_database(stack: contextlib.ExitStack, path: Path) -> int:
    """The folder of all run-time data, opened; that one may be a link, for it is the operator's."""
    database = os.open(path.parent.parent, FOLDER & ~os.O_NOFOLLOW)
    stack.callback(os.close, database)
    return database


def read(root: int, key: str, size_max: int) -> Text:
    """Read a text that must be there.

    Args:
        root: The folder's descriptor.
        key: Where in it.
        size_max: Most bytes that a text may have.

    Returns:
        It.

    Raises:
        NotANoteError: A folder stands there.
        NotFoundError: Nothing stands there, or what is no file.
        NotTextError: What stands there is no text of its own.
    """
    text = find(root, key, size_max)
    if text is None:
        raise NotFoundError
    return text


def find(root: int, key: str, size_max: int) -> Text | None:
    """The same; None when nothing stands there."""
    with translated(), contextlib.ExitStack() as stack:
        try:
            folder, name = above(stack, root, key)
            held, status = _hold(stack, folder, name, size_max)
        except OSError as error:
            if error.errno in NOTHING:
                return None
            raise
        return _text(_read_held(held, size_max), status)


def _hold(
    stack: contextlib.ExitStack, folder: int, name: str, size_max: int
) -> tuple[int, os.stat_result]:
    """Hold a file that has this name alone.

    A name can be taken off right after the file was held, which leaves one elsewhere as its only
    one. So it is looked at after the names were counted: the very entry that was opened, once
    gone, never comes back, and if it stands now it stood then.

    Returns:
        Its descriptor, and what the disk says of it.
    """
    for _ in range(_TRIES):
        held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        stack.callback(os.close, held)
        status = os.fstat(held)
        if stat.S_ISDIR(status.st_mode):
            raise NotANoteError
        is_fit = stat.S_ISREG(status.st_mode) and status.st_size <= size_max
        if not is_fit or status.st_nlink > 1:
            raise NotTextError
        # Of an entry that is gone, proc(5) says so behind the name.
        entry = Path(f"/proc/self/fd/{held}").readlink().name
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if entry == name and (now.st_ino, now.st_nlink) == (status.st_ino, 1):
            return held, status
        # Replaced just then, as a write does.
    raise NotTextError


def _read_held(held: int, size_max: int) -> bytes:
    """All of a regular file that is held by its inode."""
    descriptor = os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_CLOEXEC)
    parts, left = [], size_max + 1
    try:
        while left and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    if not left:
        raise NotTextError
    return b"".join(parts)


def _text(raw: bytes, status: os.stat_result) -> Text:
    try:
        content = raw.decode()
    except UnicodeDecodeError:
        raise NotTextError from None
    if "\0" in content:
        raise NotTextError
    return text_of(content, mark_of(status), status.st_mtime_ns // _MS_NS)


def kind_of(root: int, key: str) -> Literal["file", "folder", "other"] | None:
    """What stands at a key; `other` for a link, a device and the like, None for nothing."""
    status = status_of(root, key)
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(status.st_mode) else "other"


def status_of(root: int, key: str) -> os.stat_result | None:
    """What the disk says of a key, following no link; None when nothing stands there."""
    with translated(), contextlib.ExitStack() as stack:
        try:
            folder, name = above(stack, root, key)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno in NOTHING:
                return None
            raise


def require_folders_above(root: int, key: str) -> None:
    """Require that a text may have this key as far as its folders go.

    Raises:
        PathConflictError: Something that is no folder stands where one of them would be.
    """
    names = key.split("/")[:-1]
    for count in range(1, len(names) + 1):
        if kind_of(root, "/".join(names[:count])) not in {None, "folder"}:
            raise PathConflictError


def listing(root: int, key: str, depth: int, limit: int | None = ENTRIES_MAX) -> list[Entry]:
    """What lies in a folder, down to a depth; links and what else is no file are left out.

    Args:
        root: The folder's descriptor.
        key: The folder in it; "" for itself.
        depth: How many levels, at least 1.
        limit: Most entries; None for all.

    Returns:
        The entries, each folder right before what is in it.

    Raises:
        NotFoundError: There is no such folder.
    """
    found: list[Entry] = []
    with translated(), contextlib.ExitStack() as stack:
        try:
            folder = descend(stack, root, key.split("/") if key else [])
        except OSError as error:
            if error.errno in NOTHING:
                raise NotFoundError from None
            raise
        _list_into(found, folder, key, depth, limit)
    return found


def _list_into(found: list[Entry], folder: int, key: str, depth: int, limit: int | None) -> None:
    for name, status in sorted(_entries(folder)):
        if limit is not None and len(found) >= limit:
            return
        is_dir = stat.S_ISDIR(status.st_mode)
        path = f"{key}/{name}" if key else name
        changed_at = status.st_mtime_ns // _MS_NS
        found.append(Entry(path, is_dir, status.st_size, changed_at, mark_of(status)))
        if is_dir and depth > 1:
            # What is exchanged or gone by now is shown as empty.
            with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
                _list_into(found, descend(stack, folder, [name]), path, depth - 1, limit)


def _entries(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    """Folders, and files that have one name; each with its status.

    Yields:
        The name, as UTF-8 has it.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
                is_own = entry.name.startswith(OWN)
                if not is_own and (is_file or stat.S_ISDIR(status.st_mode)):
                    yield entry.name, status


def names_in(path: Path) -> list[str]:
    """The names of a folder of folders; none where there is no such folder."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return sorted(each.name for each in path.iterdir())
    return []


def above(stack: contextlib.ExitStack, root: int, key: str) -> tuple[int, str]:
    """The folder that a key lies in, opened, and the name in it."""
    *names, name = key.split("/")
    return descend(stack, root, names), name


def descend(
    stack: contextlib.ExitStack, folder: int, names: Sequence[str], *, make: bool = False
) -> int:
    """Open folder in folder, following no link; each made first where that is asked."""
    for name in names:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
                os.fsync(folder)
        folder = os.open(name, FOLDER, dir_fd=folder)
        stack.callback(os.close, folder)
    return folder


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise the store's errors in the place of the system's.

    Yields:
        Nothing.

    Raises:
        InvalidPathError: A name is longer than this disk has them.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            # A file system with shorter names than most.
            raise InvalidPathError from error
        raise translated_os_error(error) from error
