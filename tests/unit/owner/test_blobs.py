"""Blobs: never changed, hung on notes and reports, gone with them and no sooner."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from app.db.owner.store import OwnerTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.conflicts import AlreadyExistsError, BlobDiffersError, VersionConflictError
from app.errors.inputs import InvalidInputError
from app.errors.stores import StoreBusyError
from app.owner import blob_list, blobs, notes, reports, tree, versions
from app.owner.blob_list import Which
from app.owner.blobs import Blob, BlobCondition, Content, NewBlob, Placing, Put
from app.owner.notes import Condition
from app.owner.reports import NewReport
from app.runtime import files
from app.runtime.files import NewFile
from tests.support.stores import ANA, OwnerFile, owner_file

IDS: Final = [f"01890000-0000-4000-8000-00000000000{n}" for n in range(5)]
NEW: Final = NewBlob(IDS[0], "image/png", "a.png")
ANY: Final = BlobCondition()
NO: Final = Condition()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A store of its own."""
    with owner_file(tmp_path) as made:
        yield made


def _content(text: str = "content") -> Content:
    digest = text.encode().ljust(32)
    return Content(digest, len(text), NewFile(text, bytes(32), digest, len(text)))


def _put(
    tx: OwnerTransactor,
    new: NewBlob = NEW,
    content: Content | None = None,
    condition: BlobCondition = ANY,
) -> Put:
    return blobs.put(tx, new, content or _content(), ANA, blobs.may_all, condition)


def _none(_report: object) -> bool:
    return False


def _ids(found: list[Blob]) -> list[str]:
    return [row.id for row in found]


def _all(store: OwnerFile, which: Which = Which()) -> list[str]:  # noqa: B008 - frozen
    return _ids(blob_list.list_page(store.reader, which, "", 100, blobs.may_all))


def _note(tx: OwnerTransactor, key: str = "n.md", text: str = "text") -> None:
    notes.put_note(tx, key, text, ANA, NO)


def _delete(tx: OwnerTransactor, key: str, *, purge: bool = False) -> None:
    tree.delete_note(tx, key, condition=NO, purge=purge, recursive=False, author=ANA)


def test_a_blob_is_put_once_and_never_changed(store: OwnerFile) -> None:
    """The same again is the same; each thing that differs is refused."""
    with store.write() as tx:
        made = _put(tx)
        assert made.created
        assert (made.blob.size_bytes, made.blob.author, made.blob.note_path) == (7, ANA, None)
        _note(tx)
    with store.write() as tx:
        again = _put(tx, content=replace(_content(), file=None))
        assert (again.blob, again.created) == (made.blob, False)
    for new, content in (
        (replace(NEW, name=None), None),
        (replace(NEW, media_type="image/jpeg"), None),
        (replace(NEW, note_key="n.md"), None),
        (NEW, _content("other")),
    ):
        with pytest.raises(BlobDiffersError), store.write() as tx:
            _put(tx, new, content)
    assert blobs.get(store.reader, IDS[0], blobs.may_all)[0] == made.blob


def test_equal_bytes_are_stored_once(store: OwnerFile) -> None:
    """And told apart from others by the tag alone, which is no digest of the bytes themselves."""
    with store.write() as tx:
        one = _put(tx)
        newer = replace(_content(), file=NewFile("newer", bytes(32), one.blob.digest, 7))
        two = _put(tx, replace(NEW, id=IDS[1]), newer)
        three = _put(tx, replace(NEW, id=IDS[2]), _content("other"))
    assert one.file_name == two.file_name == "content"
    assert blobs.tag_of(one.blob) == blobs.tag_of(two.blob) != blobs.tag_of(three.blob)
    assert len(files.list_all(store.reader)) == 2


def test_bytes_that_were_compared_with_what_is_gone_must_come_again(store: OwnerFile) -> None:
    """There is nothing on the disk for them."""
    with pytest.raises(StoreBusyError), store.write() as tx:
        _put(tx, content=replace(_content(), file=None))


@pytest.mark.parametrize(
    "new",
    [
        replace(NEW, id="no id"),
        replace(NEW, id=IDS[0].upper().replace("8", "A")),
        replace(NEW, note_key="n", report_id=IDS[1]),
    ],
)
def test_what_no_blob_can_be_is_refused(new: NewBlob) -> None:
    """An id that is none, and a place that is two."""
    with pytest.raises((InvalidInputError, NotFoundError)):
        blobs.require_new(new)


@pytest.mark.parametrize("new", [replace(NEW, note_key="gone.md"), replace(NEW, report_id=IDS[1])])
def test_what_it_would_hang_on_must_be_there(store: OwnerFile, new: NewBlob) -> None:
    """A note or report that is not there is not found."""
    with pytest.raises(NotFoundError), store.write() as tx:
        _put(tx, new)


def _place(tx: OwnerTransactor, placing: Placing, condition: BlobCondition = ANY) -> Blob:
    return blobs.place(tx, IDS[0], placing, blobs.may_all, lambda _: None, condition)


def _updates(store: OwnerFile) -> int:
    rows = store.rows("SELECT id FROM sys_events WHERE type = 'blob.updated'")
    return len(rows)


def test_name_and_place_are_each_said_once(store: OwnerFile) -> None:
    """With the bytes or later, together or one by one; the same again leaves no mark."""
    with store.write() as tx:
        _note(tx)
        _put(tx, replace(NEW, name=None))
    for placing, updates in (
        (Placing(name="a.png"), 1),
        (Placing(note_key="n.md"), 2),
        (Placing(name="a.png", note_key="n.md"), 2),
        (Placing(name="a.png"), 2),
    ):
        with store.write() as tx:
            row = _place(tx, placing)
        assert row.name == "a.png"
        assert _updates(store) == updates
    [row] = blob_list.list_page(store.reader, Which("n.md"), "", 9, blobs.may_all)
    assert (row.note_path, row.size_bytes) == ("n.md", 7)
    # Now the same put finds it as it was described.
    with store.write() as tx:
        assert not _put(tx, replace(NEW, note_key="n.md")).created


@pytest.mark.parametrize(
    ("placing", "error"),
    [
        (Placing(name="b.png"), BlobDiffersError),
        (Placing(note_key="m.md"), BlobDiffersError),
        (Placing(name="a.png", note_key="m.md"), BlobDiffersError),
        (Placing(note_key="none.md"), NotFoundError),
        (Placing(report_id=IDS[4]), NotFoundError),
        (Placing(name="a.png\0"), InvalidInputError),
    ],
)
def test_another_name_or_place_is_refused(
    store: OwnerFile, placing: Placing, error: type[Exception]
) -> None:
    """What was said stays."""
    with store.write() as tx:
        _note(tx)
        _note(tx, "m.md")
        row = _put(tx, replace(NEW, note_key="n.md")).blob
    with pytest.raises(error), store.write() as tx:
        _place(tx, placing)
    assert blobs.get(store.reader, IDS[0], blobs.may_all)[0] == row


def test_placing_asks_who_and_on_what_condition(store: OwnerFile) -> None:
    """As a removal does."""
    placing = Placing(name="a.png")
    with pytest.raises(NotFoundError), store.write() as tx:
        _place(tx, placing)
    with store.write() as tx:
        _put(tx, replace(NEW, name=None))
    with pytest.raises(VersionConflictError), store.write() as tx:
        _place(tx, placing, BlobCondition(match=frozenset({"other"})))

    def refuse(_: Blob) -> None:
        raise NotPermittedError

    with pytest.raises(NotPermittedError), store.write() as tx:
        blobs.place(tx, IDS[0], placing, blobs.may_all, refuse, ANY)
    assert blobs.get(store.reader, IDS[0], blobs.may_all)[0].name is None


def test_conditions_hold(store: OwnerFile) -> None:
    """By tag, by presence, by absence; for a put and for a removal."""
    must = BlobCondition(must_exist=True)
    with pytest.raises(VersionConflictError), store.write() as tx:
        _put(tx, condition=must)
    with store.write() as tx:
        tag = blobs.tag_of(_put(tx, condition=BlobCondition(must_not_exist=True)).blob)
        _put(tx, condition=BlobCondition(match=frozenset({tag})))
        _put(tx, condition=must)
    with pytest.raises(AlreadyExistsError), store.write() as tx:
        _put(tx, condition=BlobCondition(must_not_exist=True))
    other = BlobCondition(match=frozenset({"other"}))
    with pytest.raises(VersionConflictError), store.write() as tx:
        _put(tx, condition=other)
    with pytest.raises(VersionConflictError), store.write() as tx:
        blobs.remove(tx, IDS[0], blobs.may_all, lambda _: None, other)
    with store.write() as tx:
        blobs.remove(tx, IDS[0], blobs.may_all, lambda _: None, must)
    assert _all(store) == []


def test_whoever_may_read_may_not_always_remove(store: OwnerFile) -> None:
    """And what is not there is not found, by an id or by none."""

    def refuse(_blob: Blob) -> None:
        raise NotPermittedError

    with store.write() as tx:
        _put(tx)
    with pytest.raises(NotPermittedError), store.write() as tx:
        blobs.remove(tx, IDS[0], blobs.may_all, refuse, ANY)
    for blob_id in (IDS[1], "no id"):
        with pytest.raises(NotFoundError), store.write() as tx:
            blobs.remove(tx, blob_id, blobs.may_all, refuse, ANY)
        with pytest.raises(NotFoundError):
            blobs.get(store.reader, blob_id, blobs.may_all)


def test_what_hangs_on_a_note_goes_where_it_goes(store: OwnerFile) -> None:
    """Moved, deleted, restored; listed all the while, until the note is purged."""
    hung = replace(NEW, note_key="n.md")
    with store.write() as tx:
        _note(tx)
        assert _put(tx, hung).blob.note_path == "n.md"
        _put(tx, replace(NEW, id=IDS[1]))
        tree.move_note(tx, "n.md", "m.md", recursive=False, author=ANA)
    assert _all(store, Which("m.md")) == [IDS[0]]
    with pytest.raises(NotFoundError):
        _all(store, Which("n.md"))
    with store.write() as tx:
        _delete(tx, "m.md")
        assert blobs.remove_forgotten(tx) == 0
    assert _all(store, Which("m.md")) == [IDS[0]]
    with store.write() as tx:
        newest = versions.list_versions(tx, "m.md", None, 9)
        text = next(row.version for row in newest if not row.is_deletion)
        notes.restore_note(tx, "m.md", text, ANA, NO)
    [row, _] = blob_list.list_page(store.reader, Which(), "", 9, blobs.may_all)
    assert (row.id, row.note_path) == (IDS[0], "m.md")
    with store.write() as tx:
        _delete(tx, "m.md", purge=True)
    assert _all(store) == [IDS[1]]


def test_a_version_restored_beside_its_note_is_another_note(store: OwnerFile) -> None:
    """What hangs on a note that stands elsewhere stays there."""
    with store.write() as tx:
        _note(tx)
        _put(tx, replace(NEW, note_key="n.md"))
        tree.move_note(tx, "n.md", "m.md", recursive=False, author=ANA)
        notes.restore_note(tx, "n.md", 1, ANA, NO)
    assert _all(store, Which("n.md")) == []
    assert _all(store, Which("m.md")) == [IDS[0]]


def test_a_note_whose_last_version_is_thinned_out_takes_it_along(store: OwnerFile) -> None:
    """Whoever removes versions, the next round sees it."""
    with store.write() as tx:
        _note(tx)
        _put(tx, replace(NEW, note_key="n.md"))
        _delete(tx, "n.md")
        tx._connection.all("DELETE FROM memory_doc_versions")
        assert blobs.remove_forgotten(tx) == 1
    assert _all(store) == []


def test_what_hangs_on_a_report_is_seen_by_who_may_read_it_and_goes_with_it(
    store: OwnerFile,
) -> None:
    """For all others there is nothing: not in a list, not by its id, not to hang something on."""
    new = NewReport("k", "t", "b", "p")
    with store.write() as tx:
        report = reports.add_report(tx, new, ANA)
        hung = replace(NEW, report_id=report.id)
        tag = blobs.tag_of(_put(tx, hung).blob)
        _put(tx, replace(NEW, id=IDS[1]))
    which = Which(report_id=report.id)
    assert _all(store, which) == [IDS[0]]
    assert _ids(blob_list.list_page(store.reader, Which(), "", 9, _none)) == [IDS[1]]
    assert blobs.find(store.reader, IDS[0], _none) is None
    with pytest.raises(NotFoundError):
        blob_list.list_page(store.reader, which, "", 9, _none)
    with pytest.raises(NotFoundError), store.write() as tx:
        blobs.put(tx, replace(hung, id=IDS[2]), _content(), ANA, _none, ANY)
    must_be_new = BlobCondition(must_not_exist=True)
    for may, told in ((blobs.may_all, tag), (_none, None)):
        with pytest.raises(AlreadyExistsError) as refused, store.write() as tx:
            blobs.put(tx, NEW, _content(), ANA, may, must_be_new)
        assert refused.value.current_version == told
    only = blob_list.list_page(store.reader, Which(), "", 9, blobs.may_all, on_notes=False)
    assert _ids(only) == [IDS[0]]
    with store.write() as tx:
        reports.remove_report(tx, report.id)
    assert _all(store) == [IDS[1]]
    assert store.rows("SELECT refs FROM sys_files") == [(1,)]


def test_a_list_goes_on_after_an_id(store: OwnerFile) -> None:
    """Page by page, in the order of the ids."""
    with store.write() as tx:
        for blob_id in reversed(IDS):
            _put(tx, replace(NEW, id=blob_id))
    seen: list[str] = []
    while page := blob_list.list_page(
        store.reader, Which(), seen[-1] if seen else "", 2, blobs.may_all
    ):
        assert len(page) <= 2
        seen += _ids(page)
    assert seen == IDS


def test_a_change_of_a_blob_is_an_event_without_its_name(store: OwnerFile) -> None:
    """One a change, and none for the same again."""
    with store.write() as tx:
        _put(tx)
    with store.write() as tx:
        _put(tx)
        blobs.remove(tx, IDS[0], blobs.may_all, lambda _: None, ANY)
    events = store.rows("SELECT type, payload FROM sys_events WHERE entity_type = 'blob'")
    assert [kind for kind, _ in events] == ["blob.created", "blob.deleted"]
    assert "a.png" not in str(store.rows("SELECT * FROM sys_events, sys_audit"))
