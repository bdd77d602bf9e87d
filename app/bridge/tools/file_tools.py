"""Tools over every path: read, written, added to, edited, listed, searched."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Literal

from pydantic import Field

from app.bridge.arguments import Arguments
from app.bridge.callers import Call
from app.bridge.content import files, notes
from app.bridge.content.asking import Waiting
from app.bridge.tools import texts
from app.bridge.tools.advice import Place, advised, lines_advised, place_of
from app.bridge.tools.outcomes import telling
from app.bridge.tools.toolbox import (
    Answer,
    Asking,
    Deed,
    LineNumber,
    PathText,
    Tool,
    Version,
    reading,
)
from app.db.owner.rows import NoteRow
from app.owner import paths
from app.owner.edits import Edit, InsertLines, ReplaceLines, ReplaceText
from app.owner.notes import Written

_HITS: Final = 20
_PATHS: Final = (
    "Paths begin with user-memory/ (your member's own), shared-memory/ (the group's), "
    "shared/{folder}/ or projects/{owner}/{slug}/."
)
IfVersion = Annotated[
    Version | None,
    Field(description="The version you read last: if another stands by now, nothing is written."),
]


class ReadFile(Arguments):
    """A file, or some of its lines."""

    path: PathText
    first_line: Annotated[LineNumber, Field(description="From 1.")] = 1
    last_line: Annotated[LineNumber | None, Field(description="Included; null: to the end.")] = None
    numbered: Annotated[bool, Field(description="Put its number before each line.")] = False


class WriteFile(Arguments):
    """A file and all of its text."""

    path: PathText
    content: str
    if_version: IfVersion = None


class AppendFile(Arguments):
    """A file and what is to stand at its end."""

    path: PathText
    content: str
    if_version: IfVersion = None


class EditFile(Arguments):
    """A text that stands in a file exactly once, and what is to stand there."""

    path: PathText
    old_text: Annotated[str, Field(description="Must stand in the file exactly once.")]
    new_text: str
    if_version: IfVersion = None


class InsertAtLine(Arguments):
    """Where lines are to be put in."""

    path: PathText
    line: Annotated[
        LineNumber, Field(description="The text goes before this line; lines + 1 is the end.")
    ]
    text: str
    if_version: IfVersion = None


class ReplaceLinesOf(Arguments):
    """Which lines give way to what."""

    path: PathText
    first_line: Annotated[LineNumber, Field(description="From 1.")]
    last_line: Annotated[LineNumber, Field(description="Included.")]
    text: Annotated[str, Field(description="Empty removes the lines.")]
    if_version: IfVersion = None


class ListFiles(Arguments):
    """A folder and how deep to look."""

    path: PathText = paths.USER_MEMORY
    depth: Annotated[int, Field(ge=1, le=paths.MAX_DEPTH)] = 1


class SearchFile(Arguments):
    """A file and words to look for in it."""

    path: PathText
    query: Annotated[str, Field(min_length=1, max_length=1_000)]


class MemorySearch(Arguments):
    """Words to look for in all notes."""

    query: Annotated[str, Field(description='All words must be there; "..." is a phrase.')]
    scope: Literal["own", "shared", "all"] = "all"
    limit: Annotated[int, Field(ge=1, le=200)] = _HITS


async def _found(asking: Asking, place: Place, call: Call) -> NoteRow:
    """A file that is there, of the version asked for."""

    async def get() -> NoteRow:
        note = await files.get(asking.room, asking.caller, call, place.ref)
        asking.condition.require(note.version)
        return note

    return await advised(asking, place, get)


async def _read_file(asking: Asking, given: ReadFile) -> Deed[Answer]:
    place = place_of(given.path)

    async def read(call: Call) -> Answer:
        note = await _found(asking, place, call)
        cut = texts.numbered if given.numbered else texts.part
        shown = await asking.room.stores.on_thread(
            lambda: cut(note.content, given.first_line, given.last_line)
        )
        return Answer(shown, note.version)

    return reading(read)


async def _write_file(asking: Asking, given: WriteFile) -> Deed[Written]:
    place, condition = place_of(given.path), asking.condition_with(given.if_version)
    room, caller, text = asking.room, asking.caller, given.content
    return Deed(
        lambda call: advised(
            asking, place, lambda: files.put(room, caller, call, place.ref, text, condition)
        ),
        telling(f"{place.shown} is written.", of_versions=True),
    )


async def _append_file(asking: Asking, given: AppendFile) -> Deed[Written]:
    place, condition = place_of(given.path), asking.condition_with(given.if_version)
    room, caller, text = asking.room, asking.caller, given.content
    return Deed(
        lambda call: advised(
            asking, place, lambda: files.append(room, caller, call, place.ref, text, condition)
        ),
        telling(f"The text stands at the end of {place.shown}.", of_versions=True),
    )


def editing(
    asking: Asking, place: Place, edit: Edit, if_version: int | None = None
) -> Callable[[Call], Awaitable[Written | Waiting]]:
    """What edits a file at one place, and says in its refusal what would be valid.

    Args:
        asking: Who asks.
        place: The file.
        edit: What is to be done.
        if_version: The version that must stand; None for any.

    Returns:
        It.

    Raises:
        InvalidInputError: The condition is there twice.
    """
    condition = asking.condition_with(if_version)
    text = edit.new if isinstance(edit, ReplaceText) else edit.text
    adds_bytes = len(text.encode())

    def act(call: Call) -> Awaitable[Written | Waiting]:
        return advised(
            asking,
            place,
            lambda: files.edit(
                asking.room,
                asking.caller,
                call,
                place.ref,
                [edit],
                condition,
                adds_bytes=adds_bytes,
            ),
        )

    return act


def _by_line(
    asking: Asking, place: Place, edit: InsertLines | ReplaceLines, if_version: int | None
) -> Deed[Written]:
    act = editing(asking, place, edit, if_version)

    def tell(lines: int) -> str:
        most = lines + 1 if isinstance(edit, InsertLines) else lines
        return (
            f"There is no such line: {place.shown} has {lines} lines, so a line is within "
            f"[1, {most}], and the last one is not before the first."
        )

    return Deed(
        lambda call: lines_advised(asking, place, lambda: act(call), tell),
        telling(f"{place.shown} is edited.", of_versions=True),
    )


async def _edit_file(asking: Asking, given: EditFile) -> Deed[Written]:
    place = place_of(given.path)
    edit = ReplaceText(given.old_text, given.new_text)
    act = editing(asking, place, edit, given.if_version)
    return Deed(act, telling(f"{place.shown} is edited.", of_versions=True))


async def _insert_at_line(asking: Asking, given: InsertAtLine) -> Deed[Written]:
    edit = InsertLines(given.line, given.text)
    return _by_line(asking, place_of(given.path), edit, given.if_version)


async def _replace_lines(asking: Asking, given: ReplaceLinesOf) -> Deed[Written]:
    edit = ReplaceLines(given.first_line, given.last_line, given.text)
    return _by_line(asking, place_of(given.path), edit, given.if_version)


async def _list_files(asking: Asking, given: ListFiles) -> Deed[Answer]:
    place = place_of(given.path)

    async def read(call: Call) -> Answer:
        found = await advised(
            asking,
            place,
            lambda: files.list_folder(asking.room, asking.caller, call, place.ref, given.depth),
        )
        rows = texts.listing(found, [place.at(row.path).shown for row in found])
        return Answer(rows or f"There is nothing in {place.shown} yet.")

    return reading(read)


async def _search_file(asking: Asking, given: SearchFile) -> Deed[Answer]:
    place = place_of(given.path)

    async def read(call: Call) -> Answer:
        note = await _found(asking, place, call)
        found = await asking.room.stores.on_thread(lambda: texts.matches(note.content, given.query))
        return Answer(found or f"No line of {place.shown} holds this.", note.version)

    return reading(read)


async def _memory_search(asking: Asking, given: MemorySearch) -> Deed[Answer]:
    async def read(call: Call) -> Answer:
        hits = await notes.search(
            asking.room, asking.caller, call, given.query, given.scope, given.limit
        )
        rows = (f"{hit.path}:{hit.line}: {hit.snippet}" for hit in hits)
        return Answer("\n".join(rows) or "No note holds all of these words: try fewer.")

    return reading(read)


FILE_TOOLS: Final = (
    Tool(
        "read_file",
        "Read a file",
        f"Read a file, or some of its lines. {_PATHS}",
        ReadFile,
        _read_file,
        reads_only=True,
    ),
    Tool(
        "write_file",
        "Write a file",
        "Make a file, or replace all of its text; the text that it replaces is kept as a "
        f"version. To change a part, edit instead. {_PATHS}",
        WriteFile,
        _write_file,
        destroys=True,
        repeatable=True,
    ),
    Tool(
        "append_file",
        "Add to a file",
        f"Add text at the end of a file, on a line of its own; makes a missing file. {_PATHS}",
        AppendFile,
        _append_file,
    ),
    Tool(
        "edit_file",
        "Edit a file",
        f"Put a text in the place of another, which must stand there exactly once. {_PATHS}",
        EditFile,
        _edit_file,
        looks=True,
        destroys=True,
    ),
    Tool(
        "insert_at_line",
        "Insert lines",
        f"Put text before a line of a file. {_PATHS}",
        InsertAtLine,
        _insert_at_line,
        looks=True,
    ),
    Tool(
        "replace_lines",
        "Replace lines",
        f"Put text in the place of some lines of a file, or remove them. {_PATHS}",
        ReplaceLinesOf,
        _replace_lines,
        looks=True,
        destroys=True,
    ),
    Tool(
        "list_files",
        "List files",
        f"What lies in a folder. {_PATHS}",
        ListFiles,
        _list_files,
        reads_only=True,
    ),
    Tool(
        "search_file",
        "Search a file",
        f"The lines of one file that hold some words, in whatever case. {_PATHS}",
        SearchFile,
        _search_file,
        reads_only=True,
    ),
    Tool(
        "memory_search",
        "Search memory",
        "Search your member's own notes, the group's, or both, best first; folders on the disk "
        "are not searched.",
        MemorySearch,
        _memory_search,
        reads_only=True,
    ),
)
"""The tools over every path."""
