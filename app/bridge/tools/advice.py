"""Refusals that say what would be valid instead: which paths there are, which lines.

Each sentence names paths and numbers, never a text: neither what stands nor what was sent.
Of what stands it tells only who may read.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from app.bridge.callers import Call
from app.bridge.content import files
from app.bridge.tools.toolbox import Asking
from app.errors.callers import NotANoteError, NotFoundError
from app.errors.conflicts import (
    AlreadyExistsError,
    ConflictError,
    ManyMatchesError,
    NoMatchError,
    VersionConflictError,
)
from app.errors.inputs import InvalidInputError, InvalidPathError, PayloadTooLargeError
from app.errors.root import StrongroomError
from app.owner import paths
from app.owner.edits import count_lines
from app.owner.paths import USER_MEMORY, PathRef

T = TypeVar("T")
MEMORIES: Final = "memories"
"""What the memory commands call the caller's own notes."""
_NAMES_MAX: Final = 20
_NO_ROOT: Final = (
    "There is no such place. A path begins with user-memory/, shared-memory/, shared/{folder}/ "
    "or projects/{owner}/{slug}/."
)
_NO_MEMORY: Final = f"There is no such place. A path begins with /{MEMORIES}."


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tool acts, and what the agent calls it."""

    ref: PathRef
    in_memories: bool = False

    @property
    def shown(self) -> str:
        """The path as the agent knows it, in its one form."""
        if not self.in_memories:
            return self.ref.display
        return f"/{MEMORIES}/{self.ref.key}" if self.ref.key else f"/{MEMORIES}"

    def at(self, key: str) -> "Place":
        """Another place in the same root."""
        return replace(self, ref=replace(self.ref, key=key))


def place_of(path: str) -> Place:
    """The place that a path names.

    Returns:
        It.

    Raises:
        NotFoundError: No root has this name.
        InvalidPathError: It can name nothing.
    """
    try:
        return Place(paths.clean(path))
    except NotFoundError as error:
        raise error.advised(_NO_ROOT) from None


def memory_of(path: str) -> Place:
    """The place in the caller's own notes that a path under `/memories` names.

    Returns:
        It.

    Raises:
        NotFoundError: It is not under `/memories`.
        InvalidPathError: It can name nothing.
    """
    names = [name for name in path.replace("\\", "/").split("/") if name not in {"", "."}]
    if names[:1] != [MEMORIES]:
        raise NotFoundError().advised(_NO_MEMORY)
    return Place(paths.clean("/".join([USER_MEMORY, *names[1:]])), in_memories=True)


async def advised(
    asking: Asking, place: Place, act: Callable[[], Awaitable[T]], to: Place | None = None
) -> T:
    """Do something, and say in its refusal what would be valid.

    Args:
        asking: Who asks.
        place: Where it is done, or begins.
        act: Does it.
        to: Where it ends, for a move.

    Returns:
        What it returned.

    Raises:
        StrongroomError: The same that it raised.
    """
    try:
        return await act()
    except StrongroomError as error:
        error.advised(await _sentence(asking, place, to or place, error))
        raise


async def _sentence(asking: Asking, place: Place, to: Place, error: StrongroomError) -> str:
    """What to say of a refusal; empty when its own sentence says all."""
    match error:
        case NotANoteError():
            return f"The path {place.shown} is not a file.{await _near(asking, place)}"
        case NotFoundError():
            near = await _near(asking, place)
            return f"The path {place.shown} does not exist. Please provide a valid path.{near}"
        case ConflictError():
            return _of_conflict(place, to, error)
        case PayloadTooLargeError():
            most = asking.room.settings.note_bytes_max
            return f"{place.shown} would be larger than {most:,} bytes, the most a file may have."
        case _:
            return error.advice


def _of_conflict(place: Place, to: Place, error: ConflictError) -> str:
    match error:
        case AlreadyExistsError():
            return f"{'File' if to is place else 'The destination'} {to.shown} already exists"
        case VersionConflictError(current_version=None):
            return f"{place.shown} is not there any more."
        case VersionConflictError(current_version=version):
            return f"{place.shown} was changed meanwhile and has version {version}: read it again."
        case NoMatchError():
            nothing = "No replacement was performed, the old text did not appear verbatim in"
            return f"{nothing} {place.shown}."
        case ManyMatchesError(lines=lines):
            nothing = "No replacement was performed. Multiple occurrences of the old text in lines:"
            return f"{nothing} {', '.join(map(str, lines))}. Please ensure it is unique"
        case _:
            return error.advice


async def _near(asking: Asking, place: Place) -> str:
    """What there is instead, in the nearest folder above that exists."""
    if not asking.may_read:
        return ""
    key = place.ref.key
    for folder in [key, *reversed(paths.parents(key)), ""]:
        names = await _names(asking, place.at(folder))
        if names:
            return f" There is: {', '.join(names)}."
    return ""


async def _names(asking: Asking, folder: Place) -> list[str]:
    call = _reading(asking)
    try:
        found = await files.list_folder(asking.room, asking.caller, call, folder.ref, 1)
    except StrongroomError:
        return []
    shown = [folder.at(row.path).shown + "/" * row.is_dir for row in found[:_NAMES_MAX]]
    return [*shown, f"and {len(found) - _NAMES_MAX:,} more"] if len(found) > _NAMES_MAX else shown


async def lines_advised(
    asking: Asking, place: Place, act: Callable[[], Awaitable[T]], tell: Callable[[int], str]
) -> T:
    """Edit a file by line, and say in its refusal which lines there are.

    Args:
        asking: Who asks.
        place: The file.
        act: Edits it.
        tell: What to say, told how many lines the file has.

    Returns:
        What it returned.

    Raises:
        StrongroomError: The same that it raised.
    """
    try:
        return await act()
    except InvalidInputError as error:
        lines = await _line_count(asking, place) if type(error) is InvalidInputError else None
        if lines is not None:
            error.advised(tell(lines))
        raise


async def _line_count(asking: Asking, place: Place) -> int | None:
    """How many lines a file has; None when there is none."""
    try:
        note = await files.get(asking.room, asking.caller, _reading(asking), place.ref)
    except StrongroomError:
        return None
    return count_lines(note.content)


def require_below(place: Place, refusal: str) -> None:
    """Refuse the root itself.

    Raises:
        InvalidPathError: It is that.
    """
    if not place.ref.key:
        raise InvalidPathError().advised(refusal)


def _reading(asking: Asking) -> Call:
    return replace(asking.call, once=None)
