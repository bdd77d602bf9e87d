"""One write in a folder on the disk, decided inside the registry's transaction.

That transaction is the turn of whoever writes: one process at a time has it, so what is read
here still stands when it commits. Nothing takes place before: a text is staged, and the step
that puts it there is kept with the record of the write. Whoever has the turn next, or the
janitor, has it take place if a crash came between.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app import telemetry
from app.bridge.content.disk_texts import note_of, version_at, version_of
from app.db import blobs as disk_blobs
from app.db import disk_steps, disk_tree, files
from app.db.disk_steps import Step
from app.db.disk_tree import Text
from app.db.owner.rows import NoteMetaRow
from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotANoteError, NotFoundError
from app.errors.conflicts import AlreadyExistsError, NotTextError, PathConflictError
from app.errors.inputs import InvalidPathError, PayloadTooLargeError, RecursiveRequiredError
from app.errors.stores import QuotaExceededError
from app.ids import UserId
from app.owner import edits, text
from app.owner.edits import Edit
from app.owner.notes import Condition, Written
from app.owner.paths import MAX_DEPTH, MAX_PATH_BYTES, PathRef, is_under
from app.registry import disk_roots
from app.registry.disk_roots import Action, Root
from app.settings import Settings

_NO_CONDITION: Final = Condition()


def settle(tx: RegistryTransactor, path: Path, root_id: str) -> bool:
    """Have all take place that is decided of a folder's writes.

    Args:
        tx: The registry; whoever has it has the turn, and what it reads is committed.
        path: Where the folder is.
        root_id: Which.

    Returns:
        False when something of it could not be, for the folder was changed by somebody else.

    Raises:
        StoreError: It cannot be just now; to be tried again.
    """
    pending = disk_roots.list_pending(tx, root_id)
    if not pending:
        return True
    outcomes = []
    try:
        with disk_tree.opened(path) as root:
            for each in pending:
                is_done = disk_steps.do(root, Step(**json.loads(each.pending)))
                disk_roots.settle(tx, each, is_done=is_done)
                outcomes.append(is_done)
    except NotFoundError:
        for each in pending[len(outcomes) :]:
            disk_roots.settle(tx, each, is_done=False)
            outcomes.append(False)
    if not all(outcomes):
        telemetry.janitor_found("disk_write_lost", outcomes.count(False))
    return all(outcomes)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where one write is decided."""

    tx: RegistryTransactor
    settings: Settings
    root: Root
    descriptor: int
    """Of the folder."""
    author: str

    def put(self, key: str, content: str, condition: Condition) -> Written:
        """Make a text or replace it; the same again changes nothing.

        Returns:
            What stands now.

        Raises:
            InvalidInputError: It cannot be stored.
            PayloadTooLargeError: It is larger than a note may be.
            QuotaExceededError: There is no room for it.
            ConflictError: The condition does not hold, or the place is taken.
        """
        present = self._judged(key, condition)
        return self._write(key, present, content, "put")

    def append(self, key: str, added: str, condition: Condition) -> Written:
        """Add a text on a line of its own; see `put`.

        Returns:
            What stands now.
        """
        present = self._judged(key, condition)
        was = "" if present is None else present.content
        between = "\n" if added and was and not was.endswith("\n") else ""
        return self._write(key, present, was + between + added, "append")

    def edit(self, key: str, changes: Sequence[Edit], condition: Condition) -> Written:
        """Apply edits, all or none; see `put`.

        Returns:
            What stands now.

        Raises:
            NotFoundError: Nothing stands there.
        """
        # A condition first: what must stand and does not is a conflict, as in a store.
        present = self._judged(key, condition)
        if present is None:
            raise NotFoundError
        return self._write(key, present, edits.apply_edits(present.content, changes), "edit")

    def require_there(self, key: str) -> None:
        """Refuse where no text stands.

        Raises:
            NotFoundError: None does.
        """
        disk_tree.read(self.descriptor, key, self.settings.note_bytes_max)

    def delete(self, key: str, condition: Condition, *, recursive: bool) -> int:
        """Take a text away, or a folder with all that is in it.

        Returns:
            How many texts.

        Raises:
            NotFoundError: Nothing stands there.
            RecursiveRequiredError: It is a folder.
            ConflictError: The condition does not hold.
        """
        kind = self._kind(key, condition, recursive=recursive)
        keys = [key] if kind == "file" else self._keys_below(key)
        step = self._step("remove", key, disk_steps.gone_name())
        for each in keys:
            if each != key:
                self._record(each, "delete")
        self._record(key, "delete", step=step)
        return len(keys)

    def move(
        self, key: str, to: str, condition: Condition, *, recursive: bool
    ) -> Sequence[NoteMetaRow]:
        """Move a text, or a folder with all that is in it, to where nothing stands.

        Returns:
            Each text that moved and that a path can name, as it stands now.

        Raises:
            InvalidPathError: The new key lies inside the folder, or too deep, or is too long.
            NotFoundError: There is nothing to move.
            RecursiveRequiredError: It is a folder.
            ConflictError: The condition does not hold, or something stands where it is to go.
        """
        kind = self._kind(key, condition, recursive=recursive)
        if not to or (kind == "folder" and is_under(to, key)):
            raise InvalidPathError
        if disk_tree.kind_of(self.descriptor, to) is not None:
            raise AlreadyExistsError(self._version_at(to))
        disk_tree.require_folders_above(self.descriptor, to)
        moved = []
        for each in [key] if kind == "file" else self._keys_below(key):
            new = to + each[len(key) :]
            self._require_fit(new)
            if each != key:
                self._record(each, "move")
            moved.append(self._move_record(each, new))
        self._record(key, "move", step=self._step("move", key, to))
        return [row for row in moved if row is not None]

    def _move_record(self, key: str, to: str) -> NoteMetaRow | None:
        """What a text is once it has moved; None for what is no text, or what no path names."""
        try:
            found = disk_tree.find(self.descriptor, key, self.settings.note_bytes_max)
        except NotTextError:
            return None
        if found is None:
            return None
        self._record(to, "move", found)
        if not PathRef(self.root.place, to).is_canonical:
            return None
        return note_of(self.tx, self.root.id, to, found)

    def _require_fit(self, key: str) -> None:
        path = f"{self.root.place}/{key}".encode("utf-8", "surrogateescape")
        if key.count("/") >= MAX_DEPTH or len(path) > MAX_PATH_BYTES:
            raise InvalidPathError

    def _judged(self, key: str, condition: Condition) -> Text | None:
        """What stands there and is about to change; None when nothing does."""
        try:
            present = disk_tree.find(self.descriptor, key, self.settings.note_bytes_max)
        except NotANoteError:
            # A folder counts as no text.
            condition.require(None)
            raise PathConflictError from None
        last = disk_roots.find_last_write(self.tx, self.root.id, key)
        condition.require(None if present is None else version_of(last, present))
        if present is None:
            disk_tree.require_folders_above(self.descriptor, key)
        return present

    def _kind(self, key: str, condition: Condition, *, recursive: bool) -> str:
        kind = disk_tree.kind_of(self.descriptor, key)
        if kind == "other":
            raise NotTextError
        is_judged = condition != _NO_CONDITION
        condition.require(self._version_at(key) if kind == "file" and is_judged else None)
        if kind is None:
            raise NotFoundError
        if kind == "folder" and not recursive:
            raise RecursiveRequiredError
        return kind

    def _version_at(self, key: str) -> int | None:
        last = disk_roots.find_last_write(self.tx, self.root.id, key)
        return version_at(last, self.descriptor, key, self.settings.note_bytes_max)

    def _keys_below(self, key: str) -> list[str]:
        found = disk_tree.listing(self.descriptor, key, MAX_DEPTH, limit=None)
        return [entry.key for entry in found if not entry.is_dir]

    def _write(self, key: str, present: Text | None, content: str, action: Action) -> Written:
        size_bytes = text.measure(content)
        if size_bytes > self.settings.note_bytes_max:
            raise PayloadTooLargeError
        if present is not None and present.content == content:
            return Written(note_of(self.tx, self.root.id, key, present), created=False)
        self._require_room(size_bytes - (present.size_bytes if present is not None else 0))
        raw = content.encode()
        step = disk_steps.stage(self.descriptor, raw, key)
        new = disk_tree.text_of(content, step.mark, self.tx.now_ms)
        self._record(key, action, new, step)
        return Written(note_of(self.tx, self.root.id, key, new), created=present is None)

    def _require_room(self, adds_bytes: int) -> None:
        if adds_bytes <= 0:
            return
        bytes_max, used = self._quota()
        if used + adds_bytes > bytes_max:
            raise QuotaExceededError(limit_max=bytes_max, left=bytes_max - used)

    def _quota(self) -> tuple[int, int]:
        """Bytes that all may have together which count with this folder, and have."""
        owner = self.root.owner_user_id
        if owner is None:
            return self.settings.group_bytes_max, disk_roots.shared_bytes(self.tx)
        quota, used = disk_roots.quota_of(self.tx, owner)
        used += files.size(self.settings.user_file(UserId(owner)))
        used += disk_blobs.size_of_folder(self.settings.files_folder(UserId(owner)))
        return self.settings.member_bytes_max if quota is None else quota, used

    def _step(self, do: str, key: str, target: str) -> Step:
        mark = disk_steps.mark_of(self.descriptor, key)
        if mark is None:
            raise NotFoundError
        return Step("remove" if do == "remove" else "move", key, target, mark)

    def _record(
        self, key: str, action: Action, now: Text | None = None, step: Step | None = None
    ) -> None:
        disk_roots.record(
            self.tx,
            self.root.id,
            key,
            action,
            self.author,
            size_bytes=None if now is None else now.size_bytes,
            content_version=None if now is None else now.digest,
            pending=None if step is None else json.dumps(step.as_json()),
        )
