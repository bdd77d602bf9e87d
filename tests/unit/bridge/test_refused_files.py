"""Files as a crash left them, with a log beside them: what refuses one, or looks, changes no byte.

Of a newer program, another member's, or with another file's log.
"""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from app.bridge import layout, start
from app.bridge.maintenance.inspection import inspect
from app.bridge.strongroom import Strongroom
from app.clock import system_clock
from app.crypto.keys import Key
from app.db import files, upgrades
from app.db.files import Connection, Kind, StoreOutdatedError
from app.errors.starting import StartError
from app.errors.stores import StoreDamagedError, StoreSwappedError, StoreTooNewError
from tests.support.probes import KEY, OTHER_KEY
from tests.support.rig import Rig, add, enter, read_note, write_note
from tests.support.rooms import CHEAP

_NEWER: Final = (
    "INSERT INTO sys_migrations (bucket, number, name, checksum, applied_at) "
    "VALUES ('runtime', 9999, 'from_the_future', 'x', 0)"
)
KINDS: Final[dict[str, tuple[Kind, Key | None]]] = {
    "system": (layout.SYSTEM_KIND, None),
    "plain": (layout.MEMBER_KIND, None),
    "encrypted": (layout.MEMBER_KIND, KEY),
}


def leave(path: Path, key: Key | None, kind: Kind, *, has_index: bool = True) -> None:
    """Have a newer program write to a store and die: what it wrote stands in the log alone."""
    died = path.with_name("died")
    died.mkdir()
    with closing(files.open_maintenance(path, key, kind, system_clock)) as store:
        store.all(_NEWER)
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", died)
    for left in died.iterdir():
        left.replace(path.with_name(left.name))
    died.rmdir()
    if not has_index:
        path.with_name(f"{path.name}-shm").unlink()


def digests(folder: Path) -> dict[str, str]:
    """Of every file but SQLite's index of a log, which each first opening makes anew."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.db*")
        if not path.name.endswith("-shm")
    }


@pytest.mark.parametrize("has_index", [True, False], ids=["indexed", "copied"])
@pytest.mark.parametrize("name", KINDS)
def test_a_newer_file_is_refused_unwritten(tmp_path: Path, name: str, has_index: bool) -> None:  # noqa: FBT001 - a parameter
    """By whoever opens it, looks at it or would bring it up to date."""
    kind, key = KINDS[name]
    path = tmp_path / "a.db"
    files.create(path, key, kind, system_clock, lambda _: None)
    leave(path, key, kind, has_index=has_index)
    before = digests(tmp_path)
    assert len(before) == 2
    tries: list[Callable[[], object]] = [
        lambda: files.open_handle(path, key, kind, system_clock, reader=True),
        lambda: files.open_handle(path, key, kind, system_clock, reader=False),
        lambda: upgrades.outdated_version(path, key, kind, system_clock),
        lambda: upgrades.migrate(path, key, kind, system_clock),
    ]
    for attempt in tries:
        with pytest.raises(StoreTooNewError):
            attempt()
        assert digests(tmp_path) == before
    # The newer program finds what it wrote.
    with closing(files.open_maintenance(path, key, kind, system_clock)) as store:
        assert store.all("SELECT 1 FROM sys_migrations WHERE number = 9999") == [(1,)]


def test_a_log_of_another_file_is_not_moved_into_the_one_it_stands_beside(tmp_path: Path) -> None:
    """A file put back without its log's removal is told as damage, and is whole without it."""
    kind, [ours, others] = layout.MEMBER_KIND, [tmp_path / "a.db", tmp_path / "b.db"]
    files.create(ours, KEY, kind, system_clock, lambda _: None)
    files.create(others, OTHER_KEY, kind, system_clock, lambda _: None)
    log = tmp_path / "a.db-wal"
    with closing(files.open_maintenance(others, OTHER_KEY, kind, system_clock)) as store:
        store.all(_NEWER)
        shutil.copy(tmp_path / "b.db-wal", log)
    before = digests(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreDamagedError):
            files.open_handle(ours, KEY, kind, system_clock, reader=True)
        assert digests(tmp_path) == before
    for left in (log, log.with_name("a.db-shm")):
        left.unlink()
    files.open_handle(ours, KEY, kind, system_clock, reader=True).close()


def _admit_none(_connection: Connection) -> None:
    raise StoreSwappedError


@pytest.mark.parametrize("name", ["plain", "encrypted"])
def test_a_file_that_is_not_admitted_is_refused_unwritten(tmp_path: Path, name: str) -> None:
    """Before it is asked of which version it is."""
    kind, key = KINDS[name]
    path = tmp_path / "a.db"
    files.create(path, key, kind, system_clock, lambda _: None)
    died = [tmp_path / f"a.db{suffix}" for suffix in ("", "-wal")]
    with closing(files.open_maintenance(path, key, kind, system_clock)) as store:
        store.all("DELETE FROM sys_migrations")
        kept = [each.read_bytes() for each in died]
    for each, content in zip(died, kept, strict=True):
        each.write_bytes(content)
    before = digests(tmp_path)
    for attempt in (
        lambda: files.open_handle(path, key, kind, system_clock, reader=False, admit=_admit_none),
        lambda: upgrades.outdated_version(path, key, kind, system_clock, _admit_none),
    ):
        with pytest.raises(StoreSwappedError):
            attempt()
        assert digests(tmp_path) == before
    assert upgrades.outdated_version(path, key, kind, system_clock) is not None
    with pytest.raises(StoreOutdatedError):
        files.open_handle(path, key, kind, system_clock, reader=False)
    assert digests(tmp_path) == before


def _after_kill(rig: Rig, *, encrypted: bool) -> tuple[Path, Path]:
    """Two members' files as a killed server leaves them, each with their note in the log."""

    async def work(room: Strongroom) -> tuple[Path, Path]:
        paths = []
        for name in ("ana", "ben"):
            await add(room, name, encrypted=encrypted)
            caller = await enter(room, name)
            store = room.stores.find(caller.user_id, caller.account.generation)
            assert store is not None
            await store.checkpoint()
            await write_note(room, caller, f"of {name}")
            paths.append(room.settings.user_file(caller.user_id))
        for path in paths:
            for suffix in ("", "-wal"):
                shutil.copy(f"{path}{suffix}", f"{path}{suffix}.died")
        return paths[0], paths[1]

    ana, ben = rig.run(work)
    for left in ana.parent.glob("*.died"):
        left.replace(left.with_suffix(""))
    return ana, ben


def _exchange(ours: Path, others: Path) -> None:
    kept = ours.rename(ours.with_name("kept"))
    others.rename(ours)
    kept.rename(others)


def _of_members(ana: Path, ben: Path) -> dict[str, str]:
    members = {ana.name, ben.name, f"{ana.name}-wal", f"{ben.name}-wal"}
    found = digests(ana.parent).items()
    return {path: digest for path, digest in found if Path(path).name in members}


async def _notes(room: Strongroom) -> list[str]:
    return [await read_note(room, await enter(room, name)) for name in ("ana", "ben")]


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "plain"])
def test_anothers_file_is_not_given_the_log_that_stands_there(rig: Rig, *, encrypted: bool) -> None:
    """Neither by who opens it nor by who looks; put back, each has their own notes."""
    ana, ben = _after_kill(rig, encrypted=encrypted)
    _exchange(ana, ben)
    before = _of_members(ana, ben)
    assert len(before) == 4

    async def try_it(room: Strongroom) -> None:
        for name in ("ana", "ben"):
            caller = await enter(room, name)
            for work in (read_note, write_note):
                with pytest.raises(StoreSwappedError):
                    await work(room, caller)

    found = [finding.detail for finding in inspect(rig.settings).findings]
    assert len([detail for detail in found if "another's" in detail]) == (0 if encrypted else 2)
    assert _of_members(ana, ben) == before
    rig.run(try_it)
    assert _of_members(ana, ben) == before
    _exchange(ana, ben)
    assert rig.run(_notes) == ["of ana", "of ben"]


def test_a_look_leaves_the_log_of_a_killed_server(rig: Rig) -> None:
    """Though it looks into every page."""
    ana, ben = _after_kill(rig, encrypted=False)
    before = _of_members(ana, ben)
    assert inspect(rig.settings).findings == []
    assert _of_members(ana, ben) == before
    assert rig.run(_notes) == ["of ana", "of ben"]


def test_damage_by_anothers_log_leaves_with_that_log(rig: Rig) -> None:
    """The file is whole beneath it, whatever was read or tried of it."""
    ana, ben = _after_kill(rig, encrypted=True)
    log, kept = ana.with_name(f"{ana.name}-wal"), ana.with_name("kept")
    log.rename(kept)
    shutil.copy(f"{ben}-wal", log)
    before = ana.read_bytes()

    async def try_it(room: Strongroom) -> None:
        caller = await enter(room, "ana")
        for work in (read_note, write_note, read_note):
            with pytest.raises(StoreDamagedError):
                await work(room, caller)

    rig.run(try_it)
    assert ana.read_bytes() == before
    kept.replace(log)
    ana.with_name(f"{ana.name}-shm").unlink(missing_ok=True)
    assert rig.run(_notes) == ["of ana", "of ben"]


def test_a_start_leaves_a_newer_root_as_it_is(rig: Rig) -> None:
    """And so does a look at it."""
    leave(rig.settings.system_file, None, layout.SYSTEM_KIND)
    before = digests(rig.settings.root)
    with pytest.raises(StartError, match="newer"):
        start.prepare(rig.settings, kdf_params=CHEAP)
    assert digests(rig.settings.root) == before
    found = [finding.detail for finding in inspect(rig.settings).findings]
    assert any("newer" in detail for detail in found)
    assert digests(rig.settings.root) == before


def test_a_member_s_newer_file_is_left_as_it_is(rig: Rig) -> None:
    """By their sign-in, and by a look at the root."""

    async def make(room: Strongroom) -> Path:
        made = await add(room, encrypted=False)
        return room.settings.user_file(made.account.id)

    path = rig.run(make)
    leave(path, None, layout.MEMBER_KIND)
    before = digests(path.parent)[str(path)], digests(path.parent)[f"{path}-wal"]

    async def try_it(room: Strongroom) -> None:
        with pytest.raises(StoreTooNewError):
            await read_note(room, await enter(room))

    rig.run(try_it)
    assert any("newer" in finding.detail for finding in inspect(rig.settings).findings)
    after = digests(path.parent)
    assert (after[str(path)], after[f"{path}-wal"]) == before
