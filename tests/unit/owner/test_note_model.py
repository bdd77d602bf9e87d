"""Notes against a model: a dictionary of texts, and for each path the largest version ever."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from typing_extensions import override

from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError
from app.errors.inputs import InvalidInputError
from app.owner.folders import is_folder, list_files
from app.owner.notes import Condition, append_note, find_note, get_note, put_note, restore_note
from app.owner.paths import is_under, parents
from app.owner.search import search
from app.owner.tree import delete_note, move_note
from app.owner.versions import list_versions
from tests.support.stores import ANA, BEN, owner_file

_ANY = Condition()
_KEYS = st.sampled_from(["a", "a/b", "a/b/c", "a0", "b", "b/a", "b/a/d"])
_TEXTS = st.sampled_from(["", "red", "red green\n", "blue"])
_AUTHORS = st.sampled_from([ANA, BEN])


class NotesMachine(RuleBasedStateMachine):
    """Random writes, each done or refused by store and model alike."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = contextlib.ExitStack()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self.store = self._stack.enter_context(owner_file(Path(folder)))
        self.texts: dict[str, str] = {}
        self.highest: dict[str, int] = {}

    @override
    def teardown(self) -> None:
        """Delete the store."""
        self._stack.close()

    def _is_free(self, key: str) -> bool:
        is_blocked = any(is_under(other, key) for other in self.texts)
        return not is_blocked and not any(parent in self.texts for parent in parents(key))

    def _below(self, key: str) -> list[str]:
        return [other for other in self.texts if other == key or is_under(other, key)]

    def _wrote(self, key: str, text: str, version: int) -> None:
        if self.texts.get(key) != text:
            assert version > self.highest.get(key, 0)
            self.highest[key] = version
        self.texts[key] = text

    @rule(key=_KEYS, text=_TEXTS, author=_AUTHORS)
    def put(self, key: str, text: str, author: str) -> None:
        """A note is put wherever the tree has room for it."""
        try:
            with self.store.write() as tx:
                note = put_note(tx, key, text, author, _ANY).note
        except ConflictError:
            assert key not in self.texts
            assert not self._is_free(key)
        else:
            self._wrote(key, text, note.version)

    @rule(key=_KEYS, text=_TEXTS, author=_AUTHORS)
    def append(self, key: str, text: str, author: str) -> None:
        """Text is appended on a line of its own, or makes the note."""
        old = self.texts.get(key, "")
        between = "\n" if old and text and not old.endswith("\n") else ""
        try:
            with self.store.write() as tx:
                note = append_note(tx, key, text, author, _ANY, 10**6).note
        except ConflictError:
            assert key not in self.texts
            assert not self._is_free(key)
        else:
            self._wrote(key, old + between + text, note.version)

    @rule(key=_KEYS, purge=st.booleans())
    def delete(self, key: str, *, purge: bool) -> None:
        """All that stands at or below a path goes."""
        gone = self._below(key)
        try:
            with self.store.write() as tx:
                count = delete_note(
                    tx, key, condition=_ANY, purge=purge, recursive=True, author=ANA
                )
        except NotFoundError:
            assert not gone
        else:
            assert count == len(gone)
        for path in gone:
            del self.texts[path]
            self.highest[path] += 1
        if purge:
            assert list_versions(self.store.reader, key, None, 9) == []

    @rule(from_key=_KEYS, to_key=_KEYS)
    def move(self, from_key: str, to_key: str) -> None:
        """All that stands at or below a path moves to where nothing stands, or stays."""
        moving = self._below(from_key)
        try:
            with self.store.write() as tx:
                moved = move_note(tx, from_key, to_key, recursive=True, author=ANA)
        except (ConflictError, InvalidInputError, NotFoundError):
            is_free = to_key not in self.texts and self._is_free(to_key)
            assert not moving or not is_free or is_under(to_key, from_key)
        else:
            assert len(moved) == len(moving)
            versions = {note.path: note.version for note in moved}
            for path in moving:
                target = to_key + path.removeprefix(from_key)
                self._wrote(target, self.texts.pop(path), versions[target])
                self.highest[path] += 1

    @rule(key=_KEYS, back=st.integers(0, 3))
    def restore(self, key: str, back: int) -> None:
        """A version that is kept comes back where the tree has room."""
        for row in list_versions(self.store.reader, key, None, 9)[back : back + 1]:
            with contextlib.suppress(ConflictError, NotFoundError), self.store.write() as tx:
                note = restore_note(tx, key, row.version, BEN, _ANY).note
                text = get_note(tx, key).content
                assert not row.is_deletion
                self._wrote(key, text, note.version)

    @invariant()
    def texts_agree(self) -> None:
        """Every note reads, lists and is found as the model has it, at its newest version."""
        reader = self.store.reader
        notes = {entry.path: entry for entry in list_files(reader, "", 9) if not entry.is_dir}
        assert notes.keys() == self.texts.keys()
        for key, text in self.texts.items():
            note = get_note(reader, key)
            assert note.content == text
            assert note.version == self.highest[key]
            assert (note.size_bytes, note.lines) == (len(text), len(text.splitlines()))
            assert list_versions(reader, key, None, 1)[0].version == note.version
        for word in ("red", "blue"):
            found = {hit.path for hit in search(reader, word, 99)}
            assert found == {key for key, text in self.texts.items() if word in text}

    @invariant()
    def the_tree_holds(self) -> None:
        """No path is a note and a folder."""
        for key in self.texts:
            assert not is_folder(self.store.reader, key)
            for folder in parents(key):
                assert find_note(self.store.reader, folder) is None


TestNotes: Any = NotesMachine.TestCase
TestNotes.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
