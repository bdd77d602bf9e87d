"""What can be told of a root from outside."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.bridge import layout
from app.bridge.maintenance import inspection
from app.bridge.maintenance.inspection import Inspection, inspect
from app.bridge.reading import UnreadableRootError, reading
from app.bridge.strongroom import Strongroom
from app.clock import system_clock
from app.db import files
from app.db.context import system_actor
from app.db.files import Connection, Kind
from app.db.locks import LockFile
from app.db.registry import statements as sql
from app.errors.stores import StoreBusyError
from app.ids import UserId
from app.runtime import steps
from app.runtime.steps import Run
from app.settings import Settings
from tests.support.rooms import add, open_room, prepared

_ACTOR = system_actor("test")
_STRAY = UserId("01890000-0000-7000-8000-000000000001")


class _Root:
    """A root with an encrypted member, `ana`, and two plain ones, `ben` and `cyd`."""

    def __init__(self, folder: Path) -> None:
        self.settings = prepared(folder)

        async def run() -> list[str]:
            async with open_room(self.settings) as room:
                return [
                    await add(room, "ana", "admin"),
                    await add(room, "ben", encrypted=False),
                    await add(room, "cyd", encrypted=False),
                ]

        paths = [self.settings.user_file(UserId(user_id)) for user_id in asyncio.run(run())]
        self.ana, self.ben, self.cyd = paths
        self.system = self.settings.system_file

    @contextlib.contextmanager
    def changing(self, path: Path) -> Iterator[Connection]:
        """A handle that may change anything of a plain store."""
        kind: Kind = layout.SYSTEM_KIND if path == self.system else layout.MEMBER_KIND
        connection = files.open_maintenance(path, None, kind, system_clock)
        try:
            yield connection
        finally:
            connection.close()

    def inspect(self) -> Inspection:
        return inspect(self.settings)

    def found(self) -> list[tuple[str, str]]:
        return [(finding.file, finding.detail) for finding in self.inspect().findings]


VERSION = layout.MEMBER_KIND.version


@pytest.fixture
def root(tmp_path: Path) -> _Root:
    """Three members, nothing running."""
    return _Root(tmp_path)


def _digests(settings: Settings) -> dict[str, str]:
    paths = sorted(settings.database.iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_a_sound_root_is_counted_and_left_as_it_was(root: _Root) -> None:
    """Nothing is found, every store is counted, and not one byte changes."""
    before = _digests(root.settings)
    told: list[tuple[int, int]] = []
    seen = inspect(root.settings, lambda done, total: told.append((done, total)))
    assert seen == Inspection(members=3, versions={VERSION: 2}, unknown=1)
    assert told[-3:] == [(2, 4), (3, 4), (4, 4)]
    assert _digests(root.settings) == before


def test_a_served_root_can_be_inspected(root: _Root) -> None:
    """The running service is no finding, and is not held up."""

    async def run() -> None:
        async with open_room(root.settings) as room:
            await add(room, "dan")
            seen = await asyncio.to_thread(root.inspect)
            assert seen == Inspection(members=4, versions={VERSION: 2}, unknown=2)
            await add(room, "eve")

    asyncio.run(run())


def _unlink(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _overwrite(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1000)


def _damage(path: Path) -> None:
    pages = bytearray(path.read_bytes())
    pages[4096 + 8 : 3 * 4096] = b"\xa5" * (2 * 4096 - 8)
    path.write_bytes(pages)


@pytest.mark.parametrize(
    ("which", "harm", "says"),
    [
        pytest.param("ana", _unlink, "missing", id="encrypted, missing"),
        pytest.param("ben", _unlink, "missing", id="plain, missing"),
        pytest.param("ana", _empty, "empty", id="encrypted, empty"),
        pytest.param("ben", _empty, "empty", id="plain, empty"),
        pytest.param("ben", _overwrite, "damaged", id="plain, overwritten"),
        pytest.param("ben", _damage, "", id="plain, damaged pages"),
        pytest.param("system", _overwrite, "damaged", id="system, overwritten"),
        pytest.param("system", _damage, "", id="system, damaged pages"),
        pytest.param("system", _empty, "damaged", id="system, empty"),
    ],
)
def test_harm_is_found(root: _Root, which: str, harm: Callable[[Path], None], says: str) -> None:
    """A file that is gone, empty or damaged is named, and no other."""
    path: Path = getattr(root, which)
    harm(path)
    found = root.found()
    assert {name for name, _ in found} == {path.name}
    assert says in found[0][1]


def test_exchanged_files_are_found(root: _Root) -> None:
    """A sound file of another member, or of another kind, is in the wrong place."""
    ben, cyd = root.ben.read_bytes(), root.cyd.read_bytes()
    root.ben.write_bytes(cyd)
    root.cyd.write_bytes(ben)
    assert {name for name, _ in root.found()} == {root.ben.name, root.cyd.name}
    assert all("another" in detail for _, detail in root.found())
    root.ben.write_bytes(root.system.read_bytes())
    assert root.found()[0][0] == root.ben.name


@pytest.mark.parametrize("which", ["ben", "system"])
def test_a_changed_schema_is_found(root: _Root, which: str) -> None:
    """What is there beyond the migrations, or no longer, is named."""
    path: Path = getattr(root, which)
    with root.changing(path) as store:
        store.all("CREATE TABLE extra (x)")
    assert root.found() == [(path.name, "The schema differs: table extra.")]


def test_a_store_of_another_version_is_told(root: _Root) -> None:
    """One that waits for its migration is counted; one of a newer program is a finding."""
    with root.changing(root.ben) as store:
        store.all("DELETE FROM sys_migrations WHERE number = 0")
    seen = root.inspect()
    assert (seen.versions, seen.waiting, seen.findings) == ({VERSION: 2}, 1, [])
    with root.changing(root.ben) as store:
        store.all(
            "UPDATE sys_migrations SET number = 99 WHERE bucket = 'owner' AND number = :newest",
            {"newest": layout.MEMBER_KIND.buckets[-1].version},
        )
    ((name, detail),) = root.found()
    assert (name, "newer" in detail) == (root.ben.name, True)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param("DROP INDEX sys_step_records_open", "index sys_step_records_open", id="lost"),
        pytest.param("CREATE TABLE junk (x)", "table junk", id="added"),
        pytest.param("DELETE FROM sys_migrations", "table sys_migrations", id="no record"),
    ],
)
def test_a_store_that_waits_is_held_against_what_it_was(
    root: _Root, change: str, found: str
) -> None:
    """Its migration would build on what somebody's hand has changed."""
    with root.changing(root.ben) as store:
        store.all("DELETE FROM sys_migrations WHERE number = 0")
        store.all(change)
    assert root.found() == [(root.ben.name, f"The schema differs: {found}.")]


def test_an_index_that_differs_from_its_texts_is_told(root: _Root) -> None:
    """Words of a note that is gone would still be found, and SQLite's own check sees nothing."""
    for path in (root.system, root.ben):
        with root.changing(path) as store:
            store.all(
                "INSERT INTO memory_docs_fts (rowid, path, content) VALUES (9, 'gone', 'words')"
            )
    told = "The search index memory_docs_fts differs from the texts."
    assert root.found() == [("system.db", told), (root.ben.name, told)]


def test_a_store_that_cannot_be_read_on_hides_no_other(root: _Root) -> None:
    """What is broken in one is told, and the next one is looked at."""
    for path in (root.ben, root.cyd):
        with root.changing(path) as store:
            store.all("DROP TABLE memory_docs_fts_config")
    assert {name for name, _ in root.found()} == {root.ben.name, root.cyd.name}


def test_an_older_system_file_is_told(root: _Root) -> None:
    """The next start brings it up to date; until then nothing can be listed."""
    with root.changing(root.system) as store:
        store.all("DELETE FROM sys_migrations WHERE number = 0")
    ((name, detail),) = root.found()
    assert (name, "older" in detail) == ("system.db", True)


def test_a_file_without_a_member_is_found(root: _Root) -> None:
    """A store's file whose row is gone belongs to nobody; other files are none of it."""
    stray = root.settings.user_file(_STRAY)
    stray.write_bytes(root.ben.read_bytes())
    (root.settings.database / "notes.db").touch()
    assert root.found() == [(stray.name, "The file belongs to no member.")]


def test_a_sign_up_under_way_is_no_finding(root: _Root) -> None:
    """Its file is there before its row, and its record says so."""
    root.settings.user_file(_STRAY).touch()

    async def run() -> None:
        async with open_room(root.settings) as room:
            await room.stores.registry.write(
                lambda tx: steps.begin(tx, Run("k"), "sign_up", _STRAY, ["file"]), _ACTOR
            )

    asyncio.run(run())
    assert root.found() == []


def test_a_member_who_has_just_come_or_gone_is_no_finding(root: _Root) -> None:
    """Each is looked for again, under the lock, before anything is said."""
    with reading(root.settings) as reader:
        row = reader.all(sql.LIST_ALL_ACCOUNTS)[0]
        seen = Inspection()
        locks = LockFile(root.settings.stores_lock_file)
        inspector = inspection._Inspector(root.settings, locks, system_clock, seen)
        inspector._look_at_member(reader, row._replace(id=_STRAY))
        inspector._look_at_stray(reader, row.id)
        inspector._look_at_stray(reader, _STRAY)
        locks.close()
    assert seen == Inspection()


def test_a_busy_store_is_left_alone(root: _Root) -> None:
    """One that an operation holds, or has taken out of service, is not looked at."""
    with reading(root.settings) as reader:
        ben = reader.one(sql.FIND_ACCOUNT, user_id=root.ben.stem)
    assert ben is not None
    locks = LockFile(root.settings.stores_lock_file)
    assert locks.try_exclusive(ben.lock_number)

    async def take(room: Strongroom) -> None:
        user_id = root.cyd.stem
        await room.stores.registry.write(
            lambda tx: tx.run(sql.BEGIN_STORE_STATE, user_id=user_id, store_state="restoring"),
            _ACTOR,
        )

    async def run() -> None:
        async with open_room(root.settings) as room:
            await take(room)

    asyncio.run(run())
    assert root.inspect() == Inspection(members=3, unknown=1, busy=2)
    locks.close()


def test_a_busy_moment_is_no_finding(root: _Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that answers `busy` was not looked at."""

    def refuse(*_: object) -> None:
        raise StoreBusyError

    monkeypatch.setattr(inspection._Inspector, "_require_own", refuse)
    assert root.inspect() == Inspection(members=3, unknown=1, busy=2)


def test_a_taken_registry_is_a_refusal(root: _Root) -> None:
    """While an operation has system.db, nothing is said of it."""
    locks = LockFile(root.settings.stores_lock_file)
    assert locks.try_exclusive(layout.SYSTEM_LOCK)
    with pytest.raises(StoreBusyError):
        root.inspect()
    with pytest.raises(StoreBusyError), reading(root.settings):
        raise AssertionError
    locks.close()


def test_a_reader_sees_the_members_and_no_content(root: _Root) -> None:
    """The registry can be read from outside; the group's content is closed to this handle."""
    with reading(root.settings) as reader:
        assert len(reader.all(sql.LIST_ALL_ACCOUNTS)) == 3
        with pytest.raises(Exception, match=r"prohibited|authoriz"):
            reader._connection.all("SELECT * FROM memory_docs")


def test_what_is_no_root_is_refused(tmp_path: Path) -> None:
    """Nothing is made where nothing was."""
    with pytest.raises(UnreadableRootError, match="strongroom init"):
        inspect(Settings(root=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_root_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """What the box refuses is said with its file."""
    settings = prepared(tmp_path)
    settings.stores_lock_file.unlink()
    settings.stores_lock_file.mkdir()
    with pytest.raises(UnreadableRootError, match=r"stores\.lock: Is a directory"):
        inspect(settings)
    with pytest.raises(UnreadableRootError, match="too long"):
        inspect(Settings(root=tmp_path / ("x" * 256)))
