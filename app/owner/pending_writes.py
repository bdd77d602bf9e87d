"""What agents want to write where others read: kept in their member's own store until decided.

Kept is what was asked, and what stood there then. Done it is by the same functions as any
write, in one transaction with the look at what stands now.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.db.owner import statements as sql
from app.db.owner.rows import PendingFactsRow, PendingWriteRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.errors.callers import NotFoundError, TooManyApprovalsError
from app.errors.conflicts import VersionConflictError
from app.errors.inputs import PayloadTooLargeError
from app.owner import notes, paths, tree
from app.owner.edits import Edit, InsertLines, ReplaceLines, ReplaceText, apply_edits
from app.owner.folders import list_below, require_free
from app.owner.notes import Condition
from app.owner.paths import PathRef
from app.owner.text import measure
from app.owner.versions import get_version

Tool = Literal["write_file", "append_file", "edit_file", "move_file", "delete_file", "restore_file"]
PendingWrite = PendingWriteRow
PendingFacts = PendingFactsRow
_NO_CONDITION: Final = Condition()
FOLDER: Final = "folder:"
"""How the word of a folder begins, in `base_version`."""


@dataclass(frozen=True, slots=True, repr=False)
class Wanted:
    """One write, as somebody asks for it."""

    tool: Tool
    ref: PathRef
    content: str | None = None
    """The text to write or to add."""
    edits: Sequence[Edit] = ()
    to: PathRef | None = None
    """Where it is moved."""
    version: int | None = None
    """Which is restored."""
    recursive: bool = False
    purge: bool = False

    @property
    def size_bytes(self) -> int:
        """Of the text and of the edits' texts."""
        texts = [self.content or "", *(text for edit in self.edits for text in _texts(edit))]
        return sum(measure(text) for text in texts)

    @property
    def adds_bytes(self) -> int | None:
        """How much it adds at least; None when it only takes away."""
        return None if self.tool == "delete_file" else self.size_bytes


def _texts(edit: Edit) -> tuple[str, ...]:
    return (edit.old, edit.new) if isinstance(edit, ReplaceText) else (edit.text,)


def keep(  # noqa: PLR0913, PLR0917 - one write's facts
    tx: OwnerTransactor,
    wanted: Wanted,
    base: str | None,
    agent_id: str | None,
    expires_at: int,
    most: int,
) -> PendingFacts:
    """Keep a write until its member decides.

    Args:
        tx: The member's own store.
        wanted: What was asked.
        base: As `base_of` told when it was asked.
        agent_id: Who asked; None for an agent without a name.
        expires_at: Unix milliseconds; after it nobody can decide any more.
        most: How many may wait in a store.

    Returns:
        What others may know of it.

    Raises:
        TooManyApprovalsError: So many wait already.
    """
    require_fewer(tx, most)
    facts = PendingFacts(
        id=tx.new_id(),
        tool=wanted.tool,
        root=wanted.ref.root.partition("/")[0],
        agent_id=agent_id,
        size_bytes=wanted.size_bytes,
        created_at=tx.now_ms,
        expires_at=expires_at,
    )
    tx.run(
        sql.ADD_PENDING_WRITE,
        id=facts.id,
        tool=wanted.tool,
        path=wanted.ref.display,
        content=wanted.content,
        arguments=json.dumps(arguments_of(wanted), ensure_ascii=False),
        base_version=base,
        agent_id=agent_id,
        size_bytes=facts.size_bytes,
        now=facts.created_at,
        expires_at=expires_at,
    )
    return facts


def require_fewer(reader: OwnerReader, most: int) -> None:
    """Refuse to go on where as much as may waits already.

    Args:
        reader: The member's own store.
        most: How many may wait in it.

    Raises:
        TooManyApprovalsError: So many do.
    """
    count = reader.one(sql.COUNT_PENDING_WRITES)
    if count is not None and count.value >= most:
        raise TooManyApprovalsError


def find(reader: OwnerReader, approval_id: str) -> PendingWrite | None:
    """One that waits, with its text; None when it does not, or not any more."""
    return reader.one(sql.FIND_PENDING_WRITE, id=approval_id)


def list_facts(reader: OwnerReader) -> list[PendingFacts]:
    """All that wait, without path and text."""
    return reader.all(sql.LIST_PENDING_WRITES)


def remove(tx: OwnerTransactor, approval_ids: Sequence[str]) -> int:
    """Have what was asked gone; whoever calls empties the store's log after it."""
    return len(tx.run(sql.REMOVE_PENDING_WRITES, ids=json.dumps(list(approval_ids))))


def base_of(reader: OwnerReader, key: str) -> str | None:
    """What stands at a key, as one word that changes with it.

    Args:
        reader: The store that is to be written.
        key: A note or a folder.

    Returns:
        A note's version; of a folder a digest of every note in it; None where nothing stands.
    """
    note = reader.one(sql.FIND_NOTE_META, path=key)
    if note is not None:
        return str(note.version)
    below = list_below(reader, key) if key else []
    if not below:
        return None
    told = "\n".join(f"{each.path}\t{each.version}" for each in below)
    return FOLDER + hashlib.sha256(told.encode()).hexdigest()


def require_base(reader: OwnerReader, key: str, base: str | None) -> None:
    """Refuse to go on where something else stands than was seen.

    Raises:
        VersionConflictError: It does.
    """
    if base_of(reader, key) != base:
        raise VersionConflictError


def paths_of(reader: OwnerReader, wanted: Wanted) -> list[str]:
    """Every path that a write changes, with its root: of a folder, each note's in it.

    Args:
        reader: The store that is to be written.
        wanted: The write.

    Returns:
        Canonical paths; of a move those where it ends, too.
    """
    refs = [wanted.ref] if wanted.to is None else [wanted.ref, wanted.to]
    found = [ref.display for ref in refs]
    if wanted.recursive and wanted.ref.key:
        for note in list_below(reader, wanted.ref.key):
            rest = note.path[len(wanted.ref.key) :]
            found += [f"{ref.display}{rest}" for ref in refs]
    return found


def perform(tx: OwnerTransactor, wanted: Wanted, author: str, size_max: int) -> None:
    """Do what was asked, as whoever asked would have.

    Args:
        tx: The store that is written.
        wanted: The write.
        author: User id, or `user id/agent id`.
        size_max: Most bytes of UTF-8 that a note may have afterwards.

    Raises:
        StrongroomError: What the same write raises when it is done at once.
    """
    key, content = wanted.ref.key, wanted.content or ""
    if wanted.tool == "write_file":
        notes.put_note(tx, key, content, author, _NO_CONDITION)
    elif wanted.tool == "append_file":
        notes.append_note(tx, key, content, author, _NO_CONDITION, size_max)
    elif wanted.tool == "edit_file":
        notes.edit_note(tx, key, wanted.edits, author, _NO_CONDITION, size_max)
    elif wanted.tool == "restore_file":
        notes.restore_note(tx, key, wanted.version or 0, author, _NO_CONDITION)
    elif wanted.tool == "move_file" and wanted.to is not None:
        tree.move_note(tx, key, wanted.to.key, recursive=wanted.recursive, author=author)
    else:
        tree.delete_note(
            tx,
            key,
            condition=_NO_CONDITION,
            purge=wanted.purge,
            recursive=wanted.recursive,
            author=author,
        )


def judge(reader: OwnerReader, wanted: Wanted, condition: Condition, size_max: int) -> None:
    """Refuse what could not be written now, and write nothing to find out.

    Not even in a transaction that is undone: it would carry a text into another store, whose
    log keeps for a while what a large one has spilled, and while it moves a large folder nobody
    else writes there. What reading does not tell is told by the write itself, once approved.

    Args:
        reader: The store that is to be written.
        wanted: The write.
        condition: What must stand.
        size_max: Most bytes of UTF-8 that a note may have.

    Raises:
        StrongroomError: What the write itself would raise.
    """
    key, recursive = wanted.ref.key, wanted.recursive
    if wanted.tool == "move_file" and wanted.to is not None:
        tree.find_movable(reader, key, wanted.to.key, recursive=recursive, condition=condition)
    elif wanted.tool == "delete_file":
        tree.find_removable(
            reader, key, condition=condition, purge=wanted.purge, recursive=recursive
        )
    elif wanted.tool == "restore_file":
        present = notes.find_judged(reader, key, condition)
        if get_version(reader, key, wanted.version or 0).content is None:
            raise NotFoundError
        if present is None:
            require_free(reader, key)
    else:
        _judge_text(reader, wanted, condition, size_max)


def _judge_text(reader: OwnerReader, wanted: Wanted, condition: Condition, size_max: int) -> None:
    key = wanted.ref.key
    present = notes.find_judged(reader, key, condition)
    if wanted.tool == "edit_file":
        content = apply_edits(notes.get_note(reader, key).content, wanted.edits)
        _require_size(measure(content), size_max)
        return
    size_bytes = measure(wanted.content or "")
    if present is not None and wanted.tool == "append_file":
        size_bytes += present.size_bytes
    _require_size(size_bytes, size_max)
    if present is None:
        require_free(reader, key)


def _require_size(size_bytes: int, size_max: int) -> None:
    if size_bytes > size_max:
        raise PayloadTooLargeError


def arguments_of(wanted: Wanted) -> dict[str, Any]:
    """What a write was asked beside path and text, as JSON takes it; what is not said is left out.

    Returns:
        `edits`, `to`, `version`, `recursive`, `purge`, named as the calls name them.
    """
    said: dict[str, Any] = {
        "edits": [_edit_json(edit) for edit in wanted.edits],
        "to": None if wanted.to is None else wanted.to.display,
        "version": wanted.version,
        "recursive": wanted.recursive,
        "purge": wanted.purge,
    }
    return {name: value for name, value in said.items() if value}


def wanted_of(row: PendingWrite) -> Wanted:
    """What was asked, from what was kept of it."""
    said: dict[str, Any] = json.loads(row.arguments)
    tool: Any = row.tool
    return Wanted(
        tool=tool,
        ref=paths.clean(row.path),
        content=row.content,
        edits=tuple(_edit_of(each) for each in said.get("edits", ())),
        to=paths.clean(said["to"]) if "to" in said else None,
        version=said.get("version"),
        recursive=said.get("recursive", False),
        purge=said.get("purge", False),
    )


def _edit_json(edit: Edit) -> dict[str, Any]:
    if isinstance(edit, ReplaceText):
        return {"old": edit.old, "new": edit.new}
    if isinstance(edit, InsertLines):
        return {"insert_at_line": edit.before_line, "text": edit.text}
    return {"lines": [edit.first, edit.last], "text": edit.text}


def _edit_of(said: dict[str, Any]) -> Edit:
    if "old" in said:
        return ReplaceText(said["old"], said["new"])
    if "insert_at_line" in said:
        return InsertLines(said["insert_at_line"], said["text"])
    first, last = said["lines"]
    return ReplaceLines(first, last, said["text"])
