"""The six commands of the public memory tool (`memory_20250818`), under `/memories`.

`/memories` is the caller's own notes, `user-memory`. The answers are in the words that the
tool's contract gives, which its models know.
"""

from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from app.bridge.arguments import Arguments
from app.bridge.callers import Call
from app.bridge.content import files
from app.bridge.tools import texts
from app.bridge.tools.advice import (
    Place,
    advised,
    lines_advised,
    memory_of,
    require_below,
)
from app.bridge.tools.file_tools import editing
from app.bridge.tools.outcomes import telling
from app.bridge.tools.toolbox import Answer, Asking, Deed, PathText, Tool, reading
from app.db.owner.rows import NoteRow
from app.errors.callers import NotANoteError
from app.errors.inputs import InvalidInputError
from app.errors.root import StrongroomError
from app.owner.edits import InsertLines, ReplaceText, count_lines
from app.owner.notes import Written
from app.owner.paths import MAX_DEPTH

_TO_END: Final = -1
Path = Annotated[PathText, Field(description="Begins with /memories.")]
RangeEnd = Annotated[int, Field(ge=-1, lt=1 << 31)]


class View(Arguments):
    """A directory, or a file and perhaps some of its lines."""

    path: Path
    view_range: Annotated[
        list[RangeEnd] | None,
        Field(min_length=2, max_length=2, description="First and last line; -1 is the end."),
    ] = None


class Create(Arguments):
    """A new file and its text."""

    path: Path
    file_text: str


class StrReplace(Arguments):
    """A text that stands in a file exactly once, and what is to stand there."""

    path: Path
    old_str: str
    new_str: str = ""


class Insert(Arguments):
    """Where text is to be put in."""

    path: Path
    insert_line: Annotated[
        int, Field(ge=0, lt=1 << 31, description="The text goes after this line; 0: the start.")
    ]
    insert_text: str


class Delete(Arguments):
    """A file or directory that is to go."""

    path: Path


class Rename(Arguments):
    """From where to where."""

    old_path: Path
    new_path: Path


async def _view(asking: Asking, given: View) -> Deed[Answer]:
    place = memory_of(given.path)

    async def read(call: Call) -> Answer:
        try:
            note = await files.get(asking.room, asking.caller, call, place.ref)
        except NotANoteError:
            asking.condition.require(None)
            return await _directory(asking, place, call)
        asking.condition.require(note.version)
        shown = await asking.room.stores.on_thread(lambda: _numbered(place, note, given))
        return Answer(
            f"Here's the content of {place.shown} with line numbers:\n{shown}", note.version
        )

    return reading(lambda call: advised(asking, place, lambda: read(call)))


async def _directory(asking: Asking, place: Place, call: Call) -> Answer:
    # To the ground, for a folder's size is that of all below.
    found = await files.list_folder(asking.room, asking.caller, call, place.ref, MAX_DEPTH)
    return Answer(
        f"Here're the files and directories up to 2 levels deep in {place.shown}, "
        "excluding hidden items and node_modules:\n" + texts.tree(place.shown, place.ref.key, found)
    )


def _numbered(place: Place, note: NoteRow, given: View) -> str:
    lines = count_lines(note.content)
    if lines > texts.LINES_MAX:
        too_many = f"File {place.shown} exceeds maximum line limit of {texts.LINES_MAX:,} lines."
        raise InvalidInputError().advised(too_many)
    first, last = given.view_range or (1, _TO_END)
    most = max(lines, 1)
    if not 1 <= first <= most or (last != _TO_END and last < first):
        within = f"the first line is within [1, {most}], the last one not before it, or -1"
        outside = f"Invalid `view_range` parameter: {within}."
        raise InvalidInputError().advised(outside)
    return texts.numbered(note.content, first, None if last == _TO_END else last)


async def _create(asking: Asking, given: Create) -> Deed[Written]:
    place = memory_of(given.path)
    room, caller, text = asking.room, asking.caller, given.file_text
    condition = replace(asking.condition, must_not_exist=True)
    return Deed(
        lambda call: advised(
            asking, place, lambda: files.put(room, caller, call, place.ref, text, condition)
        ),
        telling(f"File created successfully at: {place.shown}"),
    )


async def _str_replace(asking: Asking, given: StrReplace) -> Deed[Written]:
    place = memory_of(given.path)
    act = editing(asking, place, ReplaceText(given.old_str, given.new_str))
    before = await _before(asking, place)

    def tell(outcome: Written) -> Answer:
        words = "The memory file has been edited."
        if before is not None and outcome.replaced_version == before.version:
            start = before.content.index(given.old_str)
            text = before.content.replace(given.old_str, given.new_str, 1)
            words += " Here is the snippet showing the change (with line numbers):\n"
            words += texts.around(text, start, len(given.new_str))
        return Answer(words, outcome.note.version, outcome.replaced_version)

    return Deed(act, tell)


async def _before(asking: Asking, place: Place) -> NoteRow | None:
    """The file as it stands, for what is shown of the change; None when it cannot be had."""
    try:
        return await files.get(asking.room, asking.caller, asking.call, place.ref)
    except StrongroomError:
        return None


async def _insert(asking: Asking, given: Insert) -> Deed[Written]:
    place = memory_of(given.path)
    act = editing(asking, place, InsertLines(given.insert_line + 1, given.insert_text))

    def tell(lines: int) -> str:
        return (
            f"Invalid `insert_line` parameter: {given.insert_line}. It should be within the range "
            f"of lines of the file: [0, {lines}]"
        )

    return Deed(
        lambda call: lines_advised(asking, place, lambda: act(call), tell),
        telling(f"The file {place.shown} has been edited."),
    )


async def _delete(asking: Asking, given: Delete) -> Deed[int]:
    place = memory_of(given.path)
    require_below(place, f"Cannot delete the {place.shown} directory itself")
    room, caller, condition = asking.room, asking.caller, asking.condition
    return Deed(
        lambda call: advised(
            asking,
            place,
            lambda: files.delete(room, caller, call, place.ref, condition, recursive=True),
        ),
        lambda _count: Answer(f"Successfully deleted {place.shown}"),
    )


async def _rename(asking: Asking, given: Rename) -> Deed[object]:
    place, to = memory_of(given.old_path), memory_of(given.new_path)
    require_below(place, f"Cannot rename the {place.shown} directory itself")
    require_below(to, f"The destination {to.shown} already exists")
    room, caller, condition = asking.room, asking.caller, asking.condition
    return Deed(
        lambda call: advised(
            asking,
            place,
            lambda: files.move(room, caller, call, place.ref, to.ref, condition, recursive=True),
            to,
        ),
        lambda _moved: Answer(f"Successfully renamed {place.shown} to {to.shown}"),
    )


MEMORY_COMMANDS: Final = (
    Tool(
        "view",
        "View memory",
        "Show a directory under /memories two levels deep, or a file with line numbers.",
        View,
        _view,
        reads_only=True,
    ),
    Tool(
        "create",
        "Create a memory file",
        "Make a new file under /memories; one that exists is not overwritten.",
        Create,
        _create,
    ),
    Tool(
        "str_replace",
        "Replace text in a memory file",
        "Put a text in the place of another, which must stand in the file exactly once.",
        StrReplace,
        _str_replace,
        looks=True,
        destroys=True,
    ),
    Tool(
        "insert",
        "Insert into a memory file",
        "Put text after a line of a file under /memories; after line 0 is the start.",
        Insert,
        _insert,
        looks=True,
    ),
    Tool(
        "delete",
        "Delete from memory",
        "Remove a file, or a directory with all that is in it, under /memories; versions are kept.",
        Delete,
        _delete,
        destroys=True,
    ),
    Tool(
        "rename",
        "Rename in memory",
        "Rename or move a file or directory under /memories to where nothing is.",
        Rename,
        _rename,
        destroys=True,
    ),
)
"""The commands, each a tool by its own name."""
