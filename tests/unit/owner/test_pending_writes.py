"""What waits for a decision: kept as it was asked, judged as the write itself would be."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.owner import statements
from app.db.owner.store import OwnerTransactor
from app.errors.callers import TooManyApprovalsError
from app.errors.conflicts import VersionConflictError
from app.errors.inputs import PayloadTooLargeError
from app.errors.root import StrongroomError
from app.owner import notes, paths, pending_writes
from app.owner.edits import Edit, InsertLines, ReplaceLines, ReplaceText
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, PathRef
from app.owner.pending_writes import Wanted
from tests.support.stores import OwnerFile

_ANY = Condition()
_SIZE_MAX = 60
_EXPIRES = 2_000_000_000_000
_names = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="/\\~."), min_size=1
)
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_numbers = st.integers(1, 2**31 - 1)
_edits: st.SearchStrategy[Edit] = st.one_of(
    st.builds(ReplaceText, _texts, _texts),
    st.builds(InsertLines, _numbers, _texts),
    st.builds(ReplaceLines, _numbers, _numbers, _texts),
)


def _ref(key: str) -> PathRef:
    return PathRef(SHARED_MEMORY, key)


def _keep(tx: OwnerTransactor, wanted: Wanted, base: str | None = None) -> str:
    return pending_writes.keep(tx, wanted, base, "scribe", _EXPIRES, 100).id


@given(
    tool=st.sampled_from(
        ["write_file", "append_file", "edit_file", "move_file", "delete_file", "restore_file"]
    ),
    names=st.lists(_names, min_size=1, max_size=3),
    content=st.none() | _texts,
    edits=st.lists(_edits, max_size=3),
    version=st.none() | st.integers(1, 2**60),
    said=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_was_asked_is_what_is_kept(  # noqa: PLR0913, PLR0917 - the parts of one write
    store: OwnerFile,
    tool: pending_writes.Tool,
    names: list[str],
    content: str | None,
    edits: list[Edit],
    version: int | None,
    said: tuple[bool, bool, bool],
) -> None:
    """Whatever it was: path, text and all the rest come out of the store as they went in."""
    with suppress(StrongroomError):
        ref = paths.clean(f"{SHARED_MEMORY}/{'/'.join(names)}")
        moves, recursive, purge = said
        to = ref if moves else None
        wanted = Wanted(tool, ref, content, tuple(edits), to, version, recursive, purge)
        with store.write() as tx:
            kept = _keep(tx, wanted)
            row = pending_writes.find(tx, kept)
            assert row is not None
            assert pending_writes.wanted_of(row) == wanted
            [facts] = pending_writes.list_facts(tx)
            assert (facts.root, facts.tool) == (SHARED_MEMORY, tool)
            assert pending_writes.remove(tx, [kept]) == 1
            assert pending_writes.remove(tx, [kept]) == 0


_TREE = {"note": "one\ntwo", "folder/note": "x", "long": "y" * 50}
_WANTED = st.builds(
    Wanted,
    st.sampled_from(["write_file", "append_file"]),
    st.sampled_from(["note", "folder", "note/below", "new", "folder/note", "long", ""]).map(_ref),
    st.sampled_from(["", "one", "z" * 20, "z" * 61, "\0"]),
) | st.builds(
    Wanted,
    st.just("edit_file"),
    st.sampled_from(["note", "folder", "new", "long"]).map(_ref),
    edits=st.lists(
        st.builds(ReplaceText, st.sampled_from(["one", "t", "y"]), st.sampled_from(["", "z" * 60]))
        | st.builds(InsertLines, st.integers(1, 9), st.just("in")),
        min_size=1,
        max_size=2,
    ).map(tuple),
)
_CONDITIONS = st.sampled_from(
    [_ANY, Condition(must_exist=True), Condition(must_not_exist=True), Condition(frozenset({1}))]
)


def _do(tx: OwnerTransactor, wanted: Wanted, condition: Condition) -> None:
    key, author = wanted.ref.key, "ana"
    if wanted.tool == "write_file":
        # As `files.put` does, before it asks the store; but for a condition, that comes first here.
        notes.find_judged(tx, key, condition)
        if len((wanted.content or "").encode()) > _SIZE_MAX:
            raise PayloadTooLargeError
        notes.put_note(tx, key, wanted.content or "", author, condition)
    elif wanted.tool == "append_file":
        notes.append_note(tx, key, wanted.content or "", author, condition, _SIZE_MAX)
    else:
        notes.edit_note(tx, key, wanted.edits, author, condition, _SIZE_MAX)


@given(wanted=_WANTED, condition=_CONDITIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_judgement_is_what_the_write_would_have_said(
    store: OwnerFile, wanted: Wanted, condition: Condition
) -> None:
    """The same refusal or none, and nothing is written to find out."""

    def outcome(act: Callable[[], None]) -> type[Exception] | None:
        try:
            act()
        except StrongroomError as error:
            return type(error)
        return None

    with suppress(_UndoneError), store.write() as tx:
        for key, text in _TREE.items():
            notes.put_note(tx, key, text, "ana", _ANY)
        before = tx.all(statements.LIST_NOTES, low="", high=b"", limit=-1)
        said = outcome(lambda: pending_writes.judge(tx, wanted, condition, _SIZE_MAX))
        assert tx.all(statements.LIST_NOTES, low="", high=b"", limit=-1) == before
        assert outcome(lambda: _do(tx, wanted, condition)) == said
        raise _UndoneError


class _UndoneError(Exception):
    """So that each example begins alike."""


def test_what_stands_is_one_word_that_changes_with_it(store: OwnerFile) -> None:
    """Of a note its version, of a folder all its notes' versions and names, of nothing none."""
    with store.write() as tx:
        seen = [pending_writes.base_of(tx, "folder")]
        for key, text in (("folder/a", "1"), ("folder/a", "2"), ("folder/b", "1"), ("other", "1")):
            notes.put_note(tx, key, text, "ana", _ANY)
            seen.append(pending_writes.base_of(tx, "folder"))
        assert seen[0] is None
        assert len(set(seen[:4])) == 4
        assert seen[3] == seen[4]
        assert pending_writes.base_of(tx, "folder/a") == "2"
        assert pending_writes.base_of(tx, "") is None
        pending_writes.require_base(tx, "folder/a", "2")
        with pytest.raises(VersionConflictError):
            pending_writes.require_base(tx, "folder/a", None)


def test_every_path_that_changes_is_named(store: OwnerFile) -> None:
    """Of a folder each note in it, of a move each place where one ends."""
    with store.write() as tx:
        for key in ("f/a", "f/b/c"):
            notes.put_note(tx, key, "x", "ana", _ANY)
        moves = Wanted("move_file", _ref("f"), to=_ref("g"), recursive=True)
        assert set(pending_writes.paths_of(tx, moves)) == {
            f"{SHARED_MEMORY}/{key}" for key in ("f", "g", "f/a", "g/a", "f/b/c", "g/b/c")
        }
        root = Wanted("delete_file", _ref(""), recursive=True)
        assert pending_writes.paths_of(tx, root) == [SHARED_MEMORY]


def test_no_more_wait_than_may(store: OwnerFile) -> None:
    """And what waits says nothing of itself where it is printed."""
    wanted = Wanted("write_file", _ref("a-secret"), "a secret")
    with store.write() as tx:
        pending_writes.keep(tx, wanted, None, None, _EXPIRES, 1)
        with pytest.raises(TooManyApprovalsError):
            pending_writes.keep(tx, wanted, None, None, _EXPIRES, 1)
        [facts] = pending_writes.list_facts(tx)
        assert "secret" not in repr(pending_writes.find(tx, facts.id)) + repr(facts) + repr(wanted)
