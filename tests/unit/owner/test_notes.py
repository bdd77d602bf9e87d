"""The texts of notes: written on a condition, or not at all."""

from collections.abc import Callable

import pytest

from app.db.owner import statements
from app.db.owner.store import OwnerTransactor
from app.errors.callers import NotANoteError, NotFoundError
from app.errors.conflicts import (
    AlreadyExistsError,
    NoMatchError,
    PathConflictError,
    VersionConflictError,
)
from app.errors.inputs import InvalidInputError, InvalidPathError, PayloadTooLargeError
from app.errors.root import StrongroomError
from app.owner.edits import Edit, InsertLines, ReplaceText
from app.owner.notes import (
    Condition,
    Written,
    append_note,
    edit_note,
    find_judged,
    find_note,
    get_note,
    only_row,
    put_note,
    restore_note,
)
from app.owner.tree import delete_note
from app.owner.versions import list_versions
from tests.support.probes import changes
from tests.support.stores import ANA, BEN, OwnerFile

_ANY = Condition()
_MAX = 1000


def _put(store: OwnerFile, key: str, content: str, condition: Condition = _ANY) -> Written:
    with store.write() as tx:
        return put_note(tx, key, content, ANA, condition)


def _append(store: OwnerFile, key: str, text: str, condition: Condition = _ANY) -> Written:
    with store.write() as tx:
        return append_note(tx, key, text, ANA, condition, _MAX)


def _edit(store: OwnerFile, key: str, edits: list[Edit], condition: Condition = _ANY) -> Written:
    with store.write() as tx:
        return edit_note(tx, key, edits, ANA, condition, _MAX)


def _restore(store: OwnerFile, key: str, version: int, condition: Condition = _ANY) -> Written:
    with store.write() as tx:
        return restore_note(tx, key, version, ANA, condition)


def _delete(store: OwnerFile, key: str, condition: Condition = _ANY) -> int:
    with store.write() as tx:
        return delete_note(tx, key, condition=condition, purge=False, recursive=False, author=ANA)


@pytest.mark.parametrize(
    ("content", "size_bytes", "lines"),
    [
        pytest.param("", 0, 0, id="empty"),
        pytest.param("one", 3, 1, id="no newline"),
        pytest.param("one\ntwo\n", 8, 2, id="two lines"),
        pytest.param("日本\r\n", 8, 1, id="beyond ascii"),
    ],
)
def test_a_note_is_read_as_it_was_written(
    store: OwnerFile, content: str, size_bytes: int, lines: int
) -> None:
    """A note comes back to the byte, with its size, lines, author and times."""
    written = _put(store, "a/n.md", content)
    note = get_note(store.reader, "a/n.md")
    assert written == Written(written.note, created=True)
    assert note.content == content
    assert note[:-1] == tuple(written.note)
    assert (note.size_bytes, note.lines, note.version) == (size_bytes, lines, 1)
    assert (note.author, note.created_at, note.updated_at) == (ANA, *[store.clock()] * 2)


def test_a_replaced_note_keeps_its_identity(store: OwnerFile) -> None:
    """A new text makes a new version of the same note, by its own author and at its time."""
    old = _put(store, "n", "one").note
    store.clock.advance(5)
    with store.write() as tx:
        new = put_note(tx, "n", "two!", BEN, _ANY)
    assert new == Written(
        old._replace(version=2, size_bytes=4, author=BEN, updated_at=old.updated_at + 5),
        created=False,
        replaced_version=1,
    )


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda store: _put(store, "n", "same"), id="put"),
        pytest.param(lambda store: _append(store, "n", ""), id="append nothing"),
        pytest.param(lambda store: _edit(store, "n", [ReplaceText("am", "am")]), id="edit"),
        pytest.param(lambda store: _edit(store, "n", []), id="no edits"),
        pytest.param(lambda store: _restore(store, "n", 1), id="restore the present"),
    ],
)
def test_the_same_text_changes_nothing(
    store: OwnerFile, write: Callable[[OwnerFile], Written]
) -> None:
    """A write of what is there answers the present version and leaves no trace."""
    note = _put(store, "n", "same").note
    store.clock.advance(1)
    before = changes(store.connection)
    assert write(store) == Written(note, created=False)
    assert changes(store.connection) == before


@pytest.mark.parametrize(
    ("condition", "on_note", "on_nothing"),
    [
        pytest.param(_ANY, None, None, id="none"),
        pytest.param(Condition(match=frozenset({1})), None, VersionConflictError, id="present"),
        pytest.param(
            Condition(match=frozenset({7, 1})), None, VersionConflictError, id="one of several"
        ),
        pytest.param(
            Condition(match=frozenset({7})), VersionConflictError, VersionConflictError, id="stale"
        ),
        pytest.param(
            Condition(match=frozenset()), VersionConflictError, VersionConflictError, id="no match"
        ),
        pytest.param(Condition(must_exist=True), None, VersionConflictError, id="must exist"),
        pytest.param(Condition(must_not_exist=True), AlreadyExistsError, None, id="must not"),
    ],
)
def test_a_condition_is_judged_before_anything_changes(
    store: OwnerFile,
    condition: Condition,
    on_note: type[StrongroomError] | None,
    on_nothing: type[StrongroomError] | None,
) -> None:
    """A condition that does not hold is an error that names the present version."""
    _put(store, "n", "text")
    for key, error, version in (("n", on_note, 1), ("m", on_nothing, None)):
        if error is None:
            _put(store, key, "new", condition)
            continue
        with pytest.raises(error) as caught:
            _put(store, key, "new", condition)
        assert getattr(caught.value, "current_version", 0) == version
        found = find_note(store.reader, key)
        assert (found and found.content) == ("text" if version else None)


_WRITES = [
    pytest.param(lambda s, key, c: _put(s, key, "new", c), id="put"),
    pytest.param(lambda s, key, c: _append(s, key, "new", c), id="append"),
    pytest.param(lambda s, key, c: _edit(s, key, [InsertLines(1, "new")], c), id="edit"),
    pytest.param(lambda s, key, c: _restore(s, key, 1, c), id="restore"),
    pytest.param(_delete, id="delete"),
]


@pytest.mark.parametrize("write", _WRITES)
def test_every_write_takes_a_condition(
    store: OwnerFile, write: Callable[[OwnerFile, str, Condition], object]
) -> None:
    """No kind of write gets past an old ETag."""
    _put(store, "n", "one")
    _put(store, "n", "two")
    with pytest.raises(VersionConflictError) as caught:
        write(store, "n", Condition(match=frozenset({1})))
    assert caught.value.current_version == 2
    assert get_note(store.reader, "n").content == "two"
    write(store, "n", Condition(match=frozenset({2})))


@pytest.mark.parametrize("write", _WRITES)
def test_the_root_is_no_note(
    store: OwnerFile, write: Callable[[OwnerFile, str, Condition], object]
) -> None:
    """The root is never written or removed."""
    with pytest.raises(InvalidPathError):
        write(store, "", _ANY)


@pytest.mark.parametrize("text", ["a\x00", "\ud800"], ids=["NUL", "surrogate"])
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(_put, id="put"),
        pytest.param(_append, id="append"),
        pytest.param(lambda s, key, text: _edit(s, key, [InsertLines(1, text)]), id="edit"),
    ],
)
def test_what_no_store_can_hold_is_refused(
    store: OwnerFile, write: Callable[[OwnerFile, str, str], object], text: str
) -> None:
    """A text that SQL or UTF-8 would not carry is an input error and changes nothing."""
    _put(store, "n", "one")
    with pytest.raises(InvalidInputError):
        write(store, "n", text)
    assert get_note(store.reader, "n").content == "one"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda store, key: _put(store, key, "x"), id="put"),
        pytest.param(lambda store, key: _append(store, key, "x"), id="append"),
    ],
)
@pytest.mark.parametrize(
    "key",
    [
        pytest.param("a/b", id="a folder stands there"),
        pytest.param("a", id="a folder of a folder"),
        pytest.param("a/b/c/d", id="the parent is a note"),
        pytest.param("a/b/c/d/e", id="a further parent is a note"),
    ],
)
def test_a_path_is_a_note_or_a_folder(
    store: OwnerFile, make: Callable[[OwnerFile, str], Written], key: str
) -> None:
    """A note never stands where a folder is, nor below a note."""
    _put(store, "a/b/c", "x")
    with pytest.raises(PathConflictError):
        make(store, key)


def test_names_alike_do_not_clash(store: OwnerFile) -> None:
    """A folder is told by whole components, not by how a path begins."""
    for key in ("a/b", "a-b", "a0", "a.", "aa/b", "a b"):
        assert _put(store, key, key).created


def test_reading_tells_a_folder_from_nothing(store: OwnerFile) -> None:
    """A folder is no note, and what is not there is not found."""
    _put(store, "a/b", "x")
    with pytest.raises(NotANoteError):
        get_note(store.reader, "a")
    with pytest.raises(NotFoundError) as caught:
        get_note(store.reader, "b")
    assert type(caught.value) is NotFoundError
    assert find_note(store.reader, "a") is None


def test_what_is_named_as_replaced_can_be_brought_back(store: OwnerFile) -> None:
    """An append that is one version with the one before names none, for that is kept no more."""
    first = _put(store, "n", "one").note.version
    second = _append(store, "n", "two")
    third = _append(store, "n", "three")
    assert (second.replaced_version, third.replaced_version) == (first, None)
    kept = [row.version for row in list_versions(store.reader, "n", None, 9)]
    assert kept == [third.note.version, first]


@pytest.mark.parametrize(
    ("content", "text", "result", "lines"),
    [
        pytest.param(None, "x", "x", 1, id="no note"),
        pytest.param(None, "", "", 0, id="no note, no text"),
        pytest.param("", "x", "x", 1, id="an empty note"),
        pytest.param("a", "x", "a\nx", 2, id="no newline"),
        pytest.param("a\n", "x\n", "a\nx\n", 2, id="a newline"),
        pytest.param("a", "\n", "a\n\n", 2, id="an empty line"),
        pytest.param("日", "本\n", "日\n本\n", 2, id="beyond ascii"),
    ],
)
def test_appended_text_begins_a_line(
    store: OwnerFile, content: str | None, text: str, result: str, lines: int
) -> None:
    """Appended text never fuses with what was there, and makes a missing note."""
    if content is not None:
        _put(store, "n", content)
    written = _append(store, "n", text)
    note = get_note(store.reader, "n")
    assert note.content == result
    assert (note.size_bytes, note.lines) == (len(result.encode()), lines)
    replaced = None if content is None else 1
    assert written == Written(written.note, created=content is None, replaced_version=replaced)
    assert tuple(written.note) == note[:-1]
    store.check()


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda s: _append(s, "m", "x" * (_MAX + 1)), id="append to nothing"),
        pytest.param(lambda s: _append(s, "n", "x" * (_MAX - 1)), id="append, by its newline"),
        pytest.param(lambda s: _edit(s, "n", [InsertLines(2, "é" * _MAX)]), id="edit, by bytes"),
    ],
)
def test_a_note_does_not_grow_past_its_limit(
    store: OwnerFile, write: Callable[[OwnerFile], object]
) -> None:
    """What would be too large is refused and nothing of it stored."""
    _put(store, "n", "a")
    with pytest.raises(PayloadTooLargeError):
        write(store)
    assert get_note(store.reader, "n").content == "a"
    assert find_note(store.reader, "m") is None


def test_a_note_may_reach_its_limit(store: OwnerFile) -> None:
    """The limit itself is allowed, newline counted."""
    _put(store, "n", "a")
    assert _append(store, "n", "x" * (_MAX - 2)).note.size_bytes == _MAX


def test_edits_make_one_version(store: OwnerFile) -> None:
    """All edits of a call are one new version; one that fails undoes all."""
    _put(store, "n", "one\ntwo\n")
    edits: list[Edit] = [ReplaceText("one", "1"), InsertLines(3, "three")]
    assert _edit(store, "n", edits).note.version == 2
    assert get_note(store.reader, "n").content == "1\ntwo\nthree"
    with pytest.raises(NoMatchError):
        _edit(store, "n", [InsertLines(1, "zero"), ReplaceText("gone", "")])
    assert get_note(store.reader, "n").version == 2


def test_only_a_note_is_edited(store: OwnerFile) -> None:
    """Edits of a folder or of nothing find no note."""
    _put(store, "a/b", "x")
    with pytest.raises(NotANoteError):
        _edit(store, "a", [])
    with pytest.raises(NotFoundError):
        _edit(store, "b", [])


def test_a_restored_text_is_a_new_version(store: OwnerFile) -> None:
    """An older text comes back as the newest version; nothing between is lost."""
    _put(store, "n", "one")
    _put(store, "n", "two")
    assert _restore(store, "n", 1).note.version == 3
    assert get_note(store.reader, "n").content == "one"
    assert [row.via for row in list_versions(store.reader, "n", None, 9)] == [
        "restore",
        "put",
        "put",
    ]


def test_a_deleted_note_is_restored(store: OwnerFile) -> None:
    """A deleted note comes back as the note it was; a deletion has no text to give."""
    old = _put(store, "a/n", "one").note
    _delete(store, "a/n")
    with pytest.raises(NotFoundError):
        _restore(store, "a/n", 2)
    with pytest.raises(NotFoundError):
        _restore(store, "a/n", 9)
    restored = _restore(store, "a/n", 1)
    assert restored.created
    assert (restored.note.version, restored.note.id) == (3, old.id)
    assert get_note(store.reader, "a/n").content == "one"


def test_a_note_is_not_restored_where_others_stand(store: OwnerFile) -> None:
    """A restore minds what has come to stand at its path meanwhile."""
    _put(store, "a", "one")
    _delete(store, "a")
    _put(store, "a/b", "x")
    with pytest.raises(PathConflictError):
        _restore(store, "a", 1)


@pytest.mark.parametrize(
    ("size_max", "content"),
    [pytest.param(3, "two", id="fits"), pytest.param(2, None, id="too large")],
)
def test_the_event_loop_reads_small_notes_alone(
    store: OwnerFile, size_max: int, content: str | None
) -> None:
    """The inline read gives a note's version always, its content only up to a size."""
    _put(store, "n", "two")
    row = store.reader.one(statements.FIND_SMALL_NOTE, path="n", inline_max=size_max)
    assert row == (1, content)


def _replace(tx: OwnerTransactor, version: int) -> None:
    note = find_judged(tx, "n", _ANY)
    assert note is not None
    only_row(tx.run(statements.REMOVE_NOTE, id=note.id, read_version=version))


def test_a_change_names_the_version_it_read(store: OwnerFile) -> None:
    """A change of a version that does not stand any more fails instead of doing nothing."""
    _put(store, "n", "one")
    with pytest.raises(VersionConflictError), store.write() as tx:
        _replace(tx, 7)
    with store.write() as tx:
        _replace(tx, 1)


def test_every_write_is_one_event(store: OwnerFile) -> None:
    """Each change leaves exactly one event, with the version and never the text."""
    _put(store, "n", "canary one")
    _append(store, "n", "canary two")
    _edit(store, "n", [ReplaceText("one", "1")])
    _restore(store, "n", 1)
    _delete(store, "n")
    events = store.rows("SELECT type, payload ->> 'version' FROM sys_events ORDER BY seq")
    names = ["created", *["updated"] * 3, "deleted"]
    assert events == [
        (f"memory_doc.{name}", version)
        for name, version in zip(names, [1, 2, 3, 4, 4], strict=True)
    ]
    records = store.rows("SELECT payload FROM sys_events UNION ALL SELECT fields FROM sys_audit")
    assert "canary" not in repr(records)
