"""Several agents at one store at once, in two processes: what they do, and what must come of it.

Nobody knows beforehand in which order things are done. But each write names the version that it
made, so the history tells, and is held against the answers: each write did what was asked to
just what stood before it, and nothing that was acknowledged is missing.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from app.bridge.callers import Caller
from app.bridge.content import files, notes
from app.bridge.content.asking import Waiting
from app.bridge.strongroom import Strongroom
from app.bridge.tools.table import TOOLS
from app.bridge.tools.toolbox import Asking
from app.db.owner.rows import VersionTextRow
from app.db.owner.store import OwnerReader
from app.errors.root import StrongroomError
from app.errors.stores import StoreError
from app.owner import versions
from app.owner.edits import Edit, InsertLines, ReplaceText
from app.owner.notes import Condition, Written, find_note
from app.owner.paths import USER_MEMORY, PathRef
from tests.support.rooms import CALL

Kind = Literal["put", "create", "append", "insert", "replace", "delete", "move", "restore"]
KINDS: Final[tuple[Kind, ...]] = (
    *("put", "append", "append", "insert", "replace"),
    *("create", "delete", "move", "restore"),
)
Demand = Literal["none", "present", "stale", "absent"]
DEMANDS: Final[tuple[Demand, ...]] = ("none", "none", "present", "stale", "absent")
AGENTS: Final = 3
_ANY: Final = Condition()
_ALL: Final = 10_000
_NUMBERS: Final = itertools.count(1)


@dataclass(frozen=True)
class Deed:
    """What one agent is to do."""

    kind: Kind
    key: str
    to: str
    """Where a move goes."""
    demand: Demand
    """What it requires of the version that stands."""
    agent: int
    process: int
    by_tool: bool
    back: int
    """Which of the versions known is brought back, or edited, or is the stale one."""


class Ack(NamedTuple):
    """What a write was answered."""

    version: int
    replaced: int | None
    is_same: bool = False
    """Whether it changed nothing."""


@dataclass(frozen=True)
class Done:
    """What was acknowledged."""

    deed: Deed
    ack: Ack
    condition: Condition
    author: str
    restores: int
    """The version that a restore brings back."""
    apply: Callable[[str], str]
    """What else it makes of the text that stands, which is empty where there is none."""


@dataclass
class Path:
    """What is known of one path."""

    text: str | None = None
    version: int | None = None
    """Of the text; None when there is none."""
    highest: int = 0
    """Of whatever ever stood there."""
    kept: dict[int, str] = field(default_factory=dict)
    """Every text that its history must still have."""
    docs: dict[int, str] = field(default_factory=dict)
    """Of each of these, the id of the note that stood there."""


@dataclass
class _Batch:
    """What was acknowledged of things done at the same time."""

    done: dict[tuple[str, int], Done] = field(default_factory=dict)
    gone: Counter[str] = field(default_factory=Counter)
    """How many went from each path."""
    came: dict[tuple[str, int], str] = field(default_factory=dict)
    """What was moved there, by path and version: from where."""
    same: list[Done] = field(default_factory=list)
    """What changed nothing."""


class Crowd:
    """Agents of one home, who share a folder of it that nobody else has."""

    def __init__(
        self, root: str, folder: str, rooms: Sequence[Strongroom], callers: Sequence[Caller]
    ) -> None:
        """Begin with nothing.

        Args:
            root: The home.
            folder: Of no other crowd.
            rooms: The processes.
            callers: The same member, in each of them.
        """
        self.root = root
        self.folder = folder
        self._rooms = rooms
        self._callers = callers
        self.paths: dict[str, Path] = {}

    def ref(self, key: str) -> PathRef:
        """The path of a key."""
        return PathRef(self.root, f"{self.folder}/{key}")

    def known(self, key: str) -> Path:
        """What is known of a key."""
        return self.paths.setdefault(key, Path())

    # -- doing ---------------------------------------------------------------------------------

    async def do(self, deeds: Sequence[Deed]) -> None:
        """Have all of this done at once, and hold what came of it against the answers."""
        batch = _Batch()
        await asyncio.gather(*(self._try(deed, batch) for deed in deeds))
        keys = {deed.key for deed in deeds} | {deed.to for deed in deeds if deed.kind == "move"}
        await self._judge(keys, batch)

    async def purge(self, key: str, process: int) -> None:
        """Have a path forgotten, with every text that stood there.

        Of a note that stood there and lives nowhere, what it left at other paths goes as well.
        """
        known = self.known(key)
        stood = {row.doc_id for row in (await self._read(key))[0]}
        room, caller = self._rooms[process], self._callers[process]
        try:
            await files.delete(room, caller, CALL, self.ref(key), _ANY, purge=True)
        except StrongroomError:
            assert known.text is None
            assert not known.kept
        rows, note = await self._read(key)
        assert not rows
        assert note is None
        self.paths[key] = Path(highest=known.highest)
        gone = stood - {path.docs[path.version] for path in self.paths.values() if path.version}
        for path in self.paths.values():
            for version in [at for at, doc_id in path.docs.items() if doc_id in gone]:
                del path.kept[version], path.docs[version]

    async def _try(self, deed: Deed, batch: _Batch) -> None:
        caller = replace(self._callers[deed.process], agent_id=f"agent-{deed.agent}")
        condition, text = self._condition(deed), f"<{next(_NUMBERS)}>\n"
        apply, restores = self._apply(deed, text), self._old_version(deed)
        try:
            acks = await self._act(deed, caller, condition, text)
        except StoreError:
            raise  # that would be a fault of ours
        except StrongroomError:
            return
        if deed.kind in {"delete", "move"}:
            batch.gone[deed.key] += 1
            batch.came |= {(deed.to, ack.version): deed.key for ack in acks}
            return
        [ack] = acks
        done = Done(deed, ack, condition, caller.author, restores, apply)
        if ack.is_same:
            batch.same.append(done)
            return
        assert (deed.key, ack.version) not in batch.done, "Two writes made one version."
        batch.done[deed.key, ack.version] = done

    def _condition(self, deed: Deed) -> Condition:
        known = self.known(deed.key)
        match deed.demand:
            case "present" if known.version is not None:
                return Condition(match=frozenset({known.version}))
            case "stale" if known.kept:
                return Condition(match=frozenset({self._old_version(deed)}))
            case "absent" if deed.kind in {"put", "append"}:
                return Condition(must_not_exist=True)
        return _ANY

    def _old_version(self, deed: Deed) -> int:
        kept = sorted(self.known(deed.key).kept) or [1]
        return kept[-1 - deed.back % len(kept)]

    def _old_text(self, deed: Deed) -> str:
        lines = (self.known(deed.key).text or "<0>\n").splitlines()
        return lines[deed.back % len(lines)]

    def _apply(self, deed: Deed, text: str) -> Callable[[str], str]:
        """What a deed makes of a text."""
        old = self._old_text(deed)
        match deed.kind:
            case "append":
                return lambda before: before + text
            case "insert":
                return lambda before: text + before
            case "replace":
                return lambda before: before.replace(old, text.strip(), 1)
            case _:
                return lambda _before: text

    async def _act(
        self, deed: Deed, caller: Caller, condition: Condition, text: str
    ) -> Sequence[Ack]:
        """Do it.

        Returns:
            What was answered; of a move, for what stands at the new place.
        """
        room = self._rooms[deed.process]
        if deed.by_tool and deed.kind not in {"restore", "delete", "move"}:
            return [await self._use(deed, Asking(room, caller, CALL, condition), text)]
        if deed.kind == "delete":
            await files.delete(room, caller, CALL, self.ref(deed.key), condition)
            return []
        if deed.kind == "move":
            source, target = self.ref(deed.key), self.ref(deed.to)
            moved = await files.move(room, caller, CALL, source, target, condition)
            assert not isinstance(moved, Waiting)
            return [Ack(note.version, None) for note in moved]
        return [await self._call(deed, room, caller, condition, text)]

    async def _use(self, deed: Deed, asking: Asking, text: str) -> Ack:
        path = self.ref(deed.key).display
        memory = path.replace(USER_MEMORY, "/memories", 1)
        has_commands = self.root == USER_MEMORY
        old, new = self._old_text(deed), text.strip()
        name, given = {
            "put": ("write_file", {"path": path, "content": text}),
            "append": ("append_file", {"path": path, "content": text}),
            "insert": ("insert_at_line", {"path": path, "line": 1, "text": text}),
            "replace": ("edit_file", {"path": path, "old_text": old, "new_text": new}),
            "create": ("write_file", {"path": path, "content": text}),
        }[deed.kind]
        if has_commands and deed.kind != "append":
            name, given = {
                "put": (name, given),
                "insert": ("insert", {"path": memory, "insert_line": 0, "insert_text": text}),
                "replace": ("str_replace", {"path": memory, "old_str": old, "new_str": new}),
                "create": ("create", {"path": memory, "file_text": text}),
            }[deed.kind]
        elif deed.kind == "create":
            asking = replace(asking, condition=replace(asking.condition, must_not_exist=True))
        tool = TOOLS[name]
        made = await tool.deed(asking, tool.arguments.model_validate(given))
        answer = made.answer(await made.act(CALL))
        assert answer.version is not None
        return Ack(answer.version, answer.replaced_version)

    async def _call(
        self, deed: Deed, room: Strongroom, caller: Caller, condition: Condition, text: str
    ) -> Ack:
        ref = self.ref(deed.key)
        edit: Edit = InsertLines(1, text)
        match deed.kind:
            case "put":
                found = await files.put(room, caller, CALL, ref, text, condition)
            case "create":
                new = replace(condition, must_not_exist=True)
                found = await files.put(room, caller, CALL, ref, text, new)
            case "append":
                found = await files.append(room, caller, CALL, ref, text, condition)
            case "restore":
                version = self._old_version(deed)
                found = await files.restore(room, caller, CALL, ref, version, condition)
            case _:
                if deed.kind == "replace":
                    edit = ReplaceText(self._old_text(deed), text.strip())
                found = await files.edit(room, caller, CALL, ref, [edit], condition, adds_bytes=9)
        assert isinstance(found, Written)
        is_same = not found.created and found.replaced_version is None and deed.kind == "restore"
        return Ack(found.note.version, found.replaced_version, is_same)

    # -- judging -------------------------------------------------------------------------------

    async def _read(self, key: str) -> tuple[list[VersionTextRow], str | None]:
        """A path's history, oldest first, and the text that stands."""
        full = self.ref(key).key

        def read(reader: OwnerReader) -> tuple[list[VersionTextRow], str | None]:
            rows = versions.list_versions(reader, full, None, _ALL)
            texts = [versions.get_version(reader, full, row.version) for row in reversed(rows)]
            note = find_note(reader, full)
            return texts, None if note is None else note.content

        return await notes.read(self._rooms[0], self._callers[0], CALL, self.ref(key), read)

    async def _judge(self, keys: Iterable[str], batch: _Batch) -> None:
        left: dict[tuple[str, str], list[str]] = {}
        arrived: list[tuple[str, str, str]] = []
        for key in sorted(keys):
            rows, text = await self._read(key)
            known = self.known(key)
            kept = {row.version: row for row in rows}
            self._replay(key, known, kept, batch, left, arrived)
            assert known.text == text, key
            for one in batch.same:
                if one.deed.key == key and one.ack.version in kept:
                    assert kept[one.ack.version].content == kept[one.restores].content
        for key, doc_id, text in arrived:
            assert text in left.get((key, doc_id), []), (key, doc_id)

    def _replay(  # noqa: PLR0913, PLR0917 - what one path has to do with the others
        self,
        key: str,
        known: Path,
        rows: Mapping[int, VersionTextRow],
        batch: _Batch,
        left: dict[tuple[str, str], list[str]],
        arrived: list[tuple[str, str, str]],
    ) -> None:
        """Go through what is new at a path, in the order of its versions."""
        for version, old in known.kept.items():
            assert version in rows or self._is_extended(rows, known, version), (key, version)
            assert version not in rows or rows[version].content == old
        since = known.highest
        told = {version: one for (at, version), one in batch.done.items() if at == key}
        gone = 0
        for version in sorted({*told, *rows}):
            one, row = told.get(version), rows.get(version)
            if version <= since:
                assert one is None, "A new write made an old version."
                continue
            if one is not None:
                self._write(known, one, version, row, rows)
            elif row is not None and row.content is None:
                gone += 1
                left.setdefault((key, row.doc_id), []).append(known.text or "")
                known.text = known.version = None
            else:
                assert row is not None
                assert row.content is not None
                assert known.text is None
                arrived.append((batch.came[key, version], row.doc_id, row.content))
                known.text, known.version = row.content, version
                known.kept[version], known.docs[version] = row.content, row.doc_id
            known.highest = version
        assert gone == batch.gone[key], key

    def _write(
        self,
        known: Path,
        one: Done,
        version: int,
        row: VersionTextRow | None,
        rows: Mapping[int, VersionTextRow],
    ) -> None:
        """One acknowledged write, after all that came before it."""
        one.condition.require(known.version)
        assert one.deed.kind != "create" or known.text is None
        is_restored = one.deed.kind == "restore"
        text = rows[one.restores].content if is_restored else one.apply(known.text or "")
        assert text is not None
        if row is None:
            # Appends of one author are one version, which the last of them has.
            assert one.deed.kind == "append"
            later = min(at for at in rows if at > version)
            assert (rows[later].via, rows[later].author) == ("append", one.author)
        else:
            assert row.content == text
            assert row.author == one.author
            known.kept[version], known.docs[version] = text, row.doc_id
        if one.ack.replaced is not None:
            assert one.ack.replaced == known.version
            assert one.ack.replaced in rows, "What was replaced cannot be brought back."
        else:
            assert known.text is None or one.deed.kind == "append"
        known.text, known.version = text, version

    def _is_extended(self, rows: Mapping[int, VersionTextRow], known: Path, version: int) -> bool:
        """Whether a version's text lives on in the one that an append made of it."""
        later = min((at for at in rows if at > version), default=0)
        if not later or rows[later].via != "append":
            return False
        return (rows[later].content or "").startswith(known.kept[version])
