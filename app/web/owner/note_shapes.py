"""Forms of the calls on notes."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Protocol

from pydantic import Field, model_validator

from app.owner import paths
from app.owner.edits import MAX_EDITS, Edit, InsertLines, ReplaceLines, ReplaceText
from app.owner.folders import EntryRow
from app.owner.paths import PathRef
from app.web.shapes import (
    LIMIT_DEFAULT,
    Body,
    Limit,
    PageQuery,
    Path,
    Query,
    Text,
    Whole,
    refused,
    time_or_none,
)

Version = Annotated[int, Field(ge=1, lt=1 << 62)]
LineNumber = Annotated[int, Field(ge=1, lt=1 << 31)]
_FORMS: Final = ({"old", "new"}, {"insert_at_line", "text"}, {"lines", "text"})
"""The fields of each form that an edit can have."""


class PathQuery(Query):
    """One path."""

    path: Path


class ListQuery(Query):
    """A folder and how deep to look; no path is the caller's own root."""

    path: Path = paths.USER_MEMORY
    depth: Annotated[int, Field(ge=1, le=paths.MAX_DEPTH), Whole] = 1


class DeleteQuery(PathQuery):
    """What to take away, and how thoroughly."""

    purge: bool = False
    recursive: bool = False


class VersionsQuery(PathQuery, PageQuery):
    """A page of a path's history."""


class NoteFacts(Protocol):
    """What every answer says of a note."""

    @property
    def size_bytes(self) -> int:
        """Of UTF-8."""

    @property
    def version(self) -> int:
        """The number its ETag is."""

    @property
    def author(self) -> str:
        """User id, or `user id/agent id`, of the last write."""

    @property
    def created_at(self) -> int:
        """Unix milliseconds."""

    @property
    def updated_at(self) -> int:
        """Unix milliseconds."""


class Note(NoteFacts, Protocol):
    """A note with its text."""

    @property
    def content(self) -> str:
        """The text."""


class VersionFacts(Protocol):
    """What every answer says of a version."""

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def size_bytes(self) -> int:
        """Of UTF-8; 0 for a deletion."""

    @property
    def author(self) -> str:
        """User id, or `user id/agent id`."""

    @property
    def via(self) -> str:
        """How it came to be: put, append, edit, move, restore, delete."""

    @property
    def created_at(self) -> int:
        """Unix milliseconds."""


class DiffQuery(PathQuery):
    """Two versions of one path."""

    old: Annotated[int, Field(ge=1, lt=1 << 62, alias="from"), Whole]
    new: Annotated[int | None, Field(ge=1, lt=1 << 62, alias="to"), Whole] = None


class DiffBody(Body):
    """The same, as JSON."""

    path: Path
    old: Version = Field(alias="from")
    new: Version | None = Field(default=None, alias="to")


class ReadBody(Body):
    """One path."""

    path: Path


class WriteBody(Body):
    """A path and its text."""

    path: Path
    content: Text


class AppendBody(Body):
    """A path and the text to add."""

    path: Path
    content: Text


class EditBody(Body):
    """One edit, in one of three forms: old and new, insert_at_line and text, lines and text."""

    old: Text | None = None
    new: Text | None = None
    insert_at_line: LineNumber | None = None
    lines: Annotated[list[LineNumber], Field(min_length=2, max_length=2)] | None = None
    text: Text | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "EditBody":
        given = self.model_fields_set
        if given not in _FORMS or any(getattr(self, name) is None for name in given):
            kind = "edit_form"
            raise refused(kind)
        return self

    @property
    def added_bytes(self) -> int:
        """How much it may add to the note."""
        return len((self.new or self.text or "").encode())


class EditsBody(Body):
    """Edits of one note; all or none."""

    edits: Annotated[list[EditBody], Field(min_length=1, max_length=MAX_EDITS)]


class EditFileBody(EditsBody):
    """A path and its edits."""

    path: Path


class DeleteBody(Body):
    """What to take away, and how thoroughly."""

    path: Path
    purge: bool = False
    recursive: bool = False


class MoveBody(Body):
    """From where to where."""

    source: Path = Field(alias="from")
    to: Path
    recursive: bool = False


class ListBody(Body):
    """A folder and how deep to look."""

    path: Path = paths.USER_MEMORY
    depth: Annotated[int, Field(ge=1, le=paths.MAX_DEPTH)] = 1


class VersionsBody(Body):
    """A page of a path's history, or one version of it."""

    path: Path
    version: Version | None = None
    cursor: str | None = None
    limit: Limit = LIMIT_DEFAULT


class RestoreBody(Body):
    """Which version of which path."""

    path: Path
    version: Version


def edits_of(bodies: Sequence[EditBody]) -> list[Edit]:
    """The edits as the owner services take them."""
    found: list[Edit] = []
    for body in bodies:
        if body.old is not None:
            found.append(ReplaceText(body.old, body.new or ""))
        elif body.insert_at_line is not None:
            found.append(InsertLines(body.insert_at_line, body.text or ""))
        elif body.lines is not None:
            found.append(ReplaceLines(body.lines[0], body.lines[1], body.text or ""))
    return found


def written_json(path: str, note: NoteFacts) -> dict[str, Any]:
    """A note without its text."""
    return {
        "path": path,
        "version": note.version,
        "size_bytes": note.size_bytes,
        "author": note.author,
        "created_at": time_or_none(note.created_at),
        "updated_at": time_or_none(note.updated_at),
    }


def note_json(path: str, note: Note) -> dict[str, Any]:
    """A note with its text."""
    return {**written_json(path, note), "content": note.content}


def version_json(path: str, row: VersionFacts) -> dict[str, Any]:
    """A version without its text."""
    return {
        "path": path,
        "version": row.version,
        "size_bytes": row.size_bytes,
        "author": row.author,
        "via": row.via,
        "created_at": time_or_none(row.created_at),
    }


def entry(root: str, row: EntryRow) -> dict[str, Any]:
    """One line of a listing."""
    return {
        "path": PathRef(root, row.path).display,
        "name": row.name,
        "is_dir": row.is_dir,
        "lines": row.lines,
        "size_bytes": row.size_bytes,
        "version": row.version,
        "updated_at": time_or_none(row.updated_at),
    }
