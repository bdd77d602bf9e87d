"""Stores of an earlier version, brought to the present one when they are first opened."""

import asyncio
import contextlib
import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from app.bridge import access, layout, migration, start
from app.bridge.accounts import erasure, passwords, rotation, signin
from app.bridge.accounts.rotation import Rotation
from app.bridge.callers import Caller
from app.bridge.content import notes
from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom, account_of
from app.clock import system_clock
from app.db import files, migrations, upgrades
from app.db.files import Connection
from app.db.migrations import Bucket, Migration
from app.db.owner.store import OWNER
from app.db.pool import StoreClosedError
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow, FleetRow
from app.db.registry.store import RegistryTransactor
from app.errors.starting import StartError
from app.errors.stores import (
    DiskFullError,
    StoreBusyError,
    StoreMigratingError,
    StoreMigrationFailedError,
    StoreTooNewError,
)
from app.ids import DekId
from app.owner import notes as owner_notes
from app.owner.paths import USER_MEMORY, PathRef
from app.registry import fleet as registry_fleet
from app.runtime import steps
from app.runtime.steps import Run
from app.settings import Settings
from tests.support import schema_fixtures
from tests.support.matrix import chosen
from tests.support.outside import key_of
from tests.support.rig import Rig, StopHereError, begin_state, enter, member, stop_at
from tests.support.rooms import CALL, CHEAP, PASSWORD
from tests.support.schema_fixtures import ENCRYPTED, PLAIN

_DAY_MS: Final = 86_400_000
_OLD: Final = "1.1"
_BOTH: Final = pytest.mark.parametrize("name", [ENCRYPTED, PLAIN])


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of the first version whose system.db is a present one already."""
    root = tmp_path_factory.mktemp("migration") / "root"
    settings = schema_fixtures.unpack(schema_fixtures.kept()[0], root)
    start.prepare(settings, kdf_params=CHEAP)
    return root


@pytest.fixture
def rig(template: Path, tmp_path: Path) -> Rig:
    """It, copied, at the time it is."""
    rig = Rig(tmp_path / "root", template, exclusive_wait_s=0.2)
    rig.clock.now_ms = system_clock()
    return rig


def _row(rig: Rig, name: str) -> AccountRow:
    async def find(room: Strongroom) -> AccountRow:
        rows = await room.stores.registry.read(lambda r: r.all(sql.LIST_ALL_ACCOUNTS))
        return next(row for row in rows if row.username == name)

    return rig.run(find)


def _mirror(rig: Rig, name: str) -> FleetRow:
    async def find(room: Strongroom) -> FleetRow:
        rows = await room.stores.registry.read(lambda r: r.all(sql.LIST_FLEET, after="", limit=-1))
        return next(row for row in rows if row.username == name)

    return rig.run(find)


@contextlib.contextmanager
def _opened(rig: Rig, name: str, path: Path | None = None) -> Iterator[Connection]:
    """A handle that may do anything with a member's store."""
    row = _row(rig, name)
    key = key_of(row, PASSWORD) if row.encrypted else None
    path = path or rig.settings.user_file(row.id)
    connection = files.open_maintenance(path, key, layout.MEMBER_KIND, system_clock)
    with contextlib.closing(connection):
        yield connection


def _version(rig: Rig, name: str, path: Path | None = None) -> str:
    with _opened(rig, name, path) as connection:
        recorded = migrations.applied(connection)
    return migrations.version_of(recorded, layout.MEMBER_KIND.buckets)


async def _read(room: Strongroom, caller: Caller) -> str:
    ref = PathRef(USER_MEMORY, f"{caller.user_id}/kept.md")
    return await notes.read(
        room, caller, CALL, ref, lambda reader: owner_notes.get_note(reader, ref.key).content
    )


def _enter_and_read(rig: Rig, name: str) -> str:
    async def run(room: Strongroom) -> str:
        return await _read(room, await enter(room, name))

    return rig.run(run)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _broken(monkeypatch: pytest.MonkeyPatch, sql_text: str = "SELEC;\n") -> None:
    """Let the program have a migration that fails."""
    kind = layout.MEMBER_KIND
    more = Migration(OWNER.version + 1, "fails", sql_text)
    owner = Bucket(OWNER.name, (*OWNER.migrations, more), OWNER.tracked)
    broken = replace(kind, buckets=(*kind.buckets[:-1], owner))
    monkeypatch.setattr(layout, "MEMBER_KIND", broken)


@_BOTH
def test_the_first_opening_brings_a_store_up_to_date(rig: Rig, name: str) -> None:
    """What it held is there, the operator is told the version, and nothing is half-done."""
    assert _version(rig, name) == _OLD
    assert _enter_and_read(rig, name) == "two"
    assert _version(rig, name) == layout.MEMBER_KIND.version
    mirror = _mirror(rig, name)
    assert (mirror.schema_version, mirror.schema_check) == (layout.MEMBER_KIND.version, "ok")
    assert (mirror.store_state, mirror.migration_failed) == ("open", None)
    assert rig.run(lambda room: room.stores.registry.read(steps.list_open)) == []


@_BOTH
def test_a_copy_of_before_is_kept_beside_it_under_the_same_key(rig: Rig, name: str) -> None:
    """Whole, of the old version, and for its owner alone."""
    _enter_and_read(rig, name)
    path = rig.settings.user_file(_row(rig, name).id)
    [snapshot] = files.snapshots(path)
    assert snapshot.name == f"{path.name}.v{_OLD}"
    assert snapshot.stat().st_mode & 0o777 == 0o600
    assert _version(rig, name, snapshot) == _OLD
    with _opened(rig, name, snapshot) as connection:
        assert connection.scalar("PRAGMA integrity_check") == "ok"


def test_the_copy_goes_after_a_week(rig: Rig) -> None:
    """Not an hour before."""
    _enter_and_read(rig, ENCRYPTED)
    path = rig.settings.user_file(_row(rig, ENCRYPTED).id)

    async def tidy(room: Strongroom) -> None:
        await Janitor(rig.settings, room.stores).round()

    rig.clock.advance(7 * _DAY_MS - 3_600_000)
    rig.run(tidy)
    assert len(files.snapshots(path)) == 1
    rig.clock.advance(2 * 3_600_000)
    rig.run(tidy)
    assert files.snapshots(path) == []


def test_the_copy_goes_with_its_member(rig: Rig) -> None:
    """Nothing of an erased member is left."""
    _enter_and_read(rig, PLAIN)
    row = _row(rig, PLAIN)

    async def erase(room: Strongroom) -> None:
        await erasure.erase(room, row.id, CALL, migration._ACTOR)

    rig.run(erase)
    assert not list(rig.settings.database.glob(f"{row.id}*"))


async def _rotate(room: Strongroom, name: str) -> None:
    checked = await passwords.check(room, name, PASSWORD, CALL)
    try:
        await rotation.rotate(room, Rotation(checked, PASSWORD, None), CALL, migration._ACTOR)
    finally:
        checked.zero()


def test_a_change_of_key_migrates_first_and_leaves_no_copy_under_the_old_key(rig: Rig) -> None:
    """Whoever comes back after years may begin with their recovery code."""
    row = _row(rig, ENCRYPTED)
    rig.run(lambda room: _rotate(room, ENCRYPTED))
    assert files.snapshots(rig.settings.user_file(row.id)) == []
    assert _version(rig, ENCRYPTED) == layout.MEMBER_KIND.version
    assert _enter_and_read(rig, ENCRYPTED) == "two"


def test_many_requests_at_once_migrate_once(rig: Rig) -> None:
    """One does it; the others are told to come again, or find it done."""

    async def attempt(room: Strongroom, caller: Caller) -> str:
        try:
            return await _read(room, caller)
        except StoreMigratingError:
            return "migrating"

    async def run(room: Strongroom) -> list[str]:
        made = await signin.sign_in(room, PLAIN, PASSWORD, CALL)
        caller = await access.authenticate(room, made.token)
        return await asyncio.gather(*(attempt(room, caller) for _ in range(5)))

    async def unmigrated(room: Strongroom) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            # A sign-in opens the store, so it is let go without that.
            patch.setattr(signin, "_open_now", _never_opened)
            made = await signin.sign_in(room, PLAIN, PASSWORD, CALL)
        caller = await access.authenticate(room, made.token)
        seen = await asyncio.gather(*(attempt(room, caller) for _ in range(5)))
        caller = await access.authenticate(room, made.token)
        return [*seen, await _read(room, caller)]

    seen = rig.run(unmigrated)
    assert set(seen) <= {"two", "migrating"}
    assert seen[-1] == "two"
    assert rig.run(run) == ["two"] * 5


async def _never_opened(*_: object) -> bool:
    return False


def test_two_processes_migrate_once(rig: Rig) -> None:
    """Whichever comes first; the other waits for nothing, and both serve it afterwards."""

    async def run() -> list[str]:
        async with rig.open() as one, rig.open() as other:
            await asyncio.gather(enter(one, ENCRYPTED), enter(other, ENCRYPTED))
            callers = [await enter(room, ENCRYPTED) for room in (one, other)]
            return [
                await _read(room, caller)
                for room, caller in zip((one, other), callers, strict=True)
            ]

    assert asyncio.run(run()) == ["two", "two"]
    assert len(files.snapshots(rig.settings.user_file(_row(rig, ENCRYPTED).id))) == 1


@_BOTH
def test_a_migration_that_fails_leaves_the_store_as_it_was(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is refused, in words, without being tried again; the next build tries again."""
    row = _row(rig, name)
    path = rig.settings.user_file(row.id)
    before = _digest(path)

    async def run(room: Strongroom) -> None:
        caller = await enter(room, name)
        present = await member(room, row.id)
        for _ in range(2):
            with pytest.raises(StoreMigrationFailedError):
                await _read(room, caller)
        assert (await member(room, row.id)).store_generation == present.store_generation
        assert present.store_state == "open"

    with monkeypatch.context() as patch:
        _broken(patch)
        rig.run(run)
        assert _digest(path) == before
        assert [p.name for p in path.parent.glob(f"{path.name}*")] == [path.name]
        assert _mirror(rig, name).migration_failed == migration.build()
        rig.run(lambda room: Janitor(rig.settings, room.stores).round())
    assert _version(rig, name) == _OLD
    assert _enter_and_read(rig, name) == "two"
    assert _mirror(rig, name).migration_failed is None


def test_a_failure_stops_nobody_else(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member whose store is there already goes on, and signs in anew."""
    assert _enter_and_read(rig, PLAIN) == "two"
    row = _row(rig, ENCRYPTED)

    def fail(path: Path, *_: object) -> None:
        assert path == rig.settings.user_file(row.id)
        message = "a fault"
        raise RuntimeError(message)

    monkeypatch.setattr(upgrades, "migrate", fail)

    async def run(room: Strongroom) -> str:
        caller = await enter(room, ENCRYPTED)
        with pytest.raises(StoreMigrationFailedError):
            await _read(room, caller)
        return await _read(room, await enter(room, PLAIN))

    assert rig.run(run) == "two"


@pytest.mark.parametrize("error", [DiskFullError(), StoreBusyError(), OSError(28, "full")], ids=str)
def test_what_passes_is_not_remembered(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A full disk is told as such, and the next request tries again."""

    def fail(*_: object) -> None:
        raise error

    async def run(room: Strongroom) -> str:
        monkeypatch.setattr(signin, "_open_now", _never_opened)
        caller = await enter(room, ENCRYPTED)
        with monkeypatch.context() as patch:
            patch.setattr(upgrades, "migrate", fail)
            with pytest.raises(type(error)):
                await _read(room, caller)
        return await _read(room, await access.authenticate(room, caller.token))

    assert rig.run(run) == "two"


@pytest.mark.parametrize(
    "point",
    ["migrate.taken", "migrate.begun", "migrate.copied", "migrate.applying", "migrate.applied"],
)
def test_a_fault_at_any_point_leaves_it_in_service(rig: Rig, point: str) -> None:
    """And the key is not left in memory."""
    row = _row(rig, ENCRYPTED)
    key = key_of(row, PASSWORD)
    assert key is not None

    async def run(room: Strongroom) -> None:
        with pytest.raises((StopHereError, StoreMigrationFailedError)):
            await migration.bring_up(room, account_of(await member(room, row.id)), key)
        assert (await member(room, row.id)).store_state == "open"
        await Janitor(rig.settings, room.stores).round()
        assert await room.stores.registry.read(steps.list_open) == []
        await room.stores.registry.write(
            lambda tx: tx.run(sql.FORGET_FAILED_MIGRATIONS), migration._ACTOR
        )

    rig.run(run, stop_at(point))
    with pytest.raises(ValueError, match="zeroed"):
        key.view()
    assert _enter_and_read(rig, ENCRYPTED) == "two"


def test_a_state_left_by_a_crash_is_taken_back(rig: Rig) -> None:
    """By the janitor; meanwhile the store is being migrated, as far as anybody knows."""
    row = _row(rig, PLAIN)

    async def run(room: Strongroom) -> str:
        await begin_state(room, row.id, "migrating")
        with pytest.raises(StoreMigratingError):
            await migration.bring_up(room, account_of(await member(room, row.id)), None)
        await Janitor(rig.settings, room.stores).round()
        return await _read(room, await enter(room, PLAIN))

    assert rig.run(run) == "two"


def test_a_record_left_by_a_crash_is_ended(rig: Rig) -> None:
    """With what there was of a copy; the store is whole whichever version it is of."""
    row = _row(rig, PLAIN)
    half = rig.settings.user_file(row.id).with_suffix(".db.new")
    half.touch()

    async def run(room: Strongroom) -> None:
        def begin(tx: RegistryTransactor) -> None:
            made = Run("some record")
            steps.begin(tx, made, migration.ACTION, row.id, migration.SHAPE)
            steps.sent(tx, made, "snapshot", _OLD)

        await begin_state(room, row.id, "migrating")
        await room.stores.registry.write(begin, migration._ACTOR)
        await Janitor(rig.settings, room.stores).settle()
        assert await room.stores.registry.read(steps.list_open) == []
        assert (await member(room, row.id)).store_state == "open"

    rig.run(run)
    assert not half.exists()
    assert _enter_and_read(rig, PLAIN) == "two"


def _killed_at(rig: Rig, name: str, point: str) -> None:
    """Let a process of its own unlock a member's store, and be killed at a point."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            rig.run(lambda room: enter(room, name), _killer_at(point))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _killer_at(point: str) -> Callable[[str], None]:
    def reach(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


async def _settle(room: Strongroom) -> None:
    await Janitor(room.settings, room.stores).settle()


@pytest.mark.parametrize(
    ("name", "point"),
    chosen(
        [(ENCRYPTED, "migrate.applying")],
        [(name, f"migrate.{at}") for name in (ENCRYPTED, PLAIN) for at in ("begun", "applying")],
    ),
)
def test_a_migration_that_kills_its_process_is_begun_a_few_times_only(
    template: Path, tmp_path: Path, name: str, point: str
) -> None:
    """Then the store is left as it was, told of, and tried again at the operator's word."""
    rig = Rig(tmp_path / "root", template, migration_kills_max=2)
    rig.clock.now_ms = system_clock()
    path = rig.settings.user_file(_row(rig, name).id)
    before = _digest(path)
    for kills in (1, 2):
        _killed_at(rig, name, point)
        assert _mirror(rig, name).store_state == "migrating"
        rig.run(_settle)
        left = _mirror(rig, name)
        assert (left.store_state, left.migration_failed is not None) == ("open", kills == 2)

    async def refused(room: Strongroom) -> None:
        caller = await enter(room, name)
        with pytest.raises(StoreMigrationFailedError):
            await _read(room, caller)
        fleet = await room.stores.registry.read(lambda r: registry_fleet.count(r, "any"))
        assert fleet.failed == 1
        await room.stores.registry.write(registry_fleet.forget_failures, migration._ACTOR)

    rig.run(refused)
    assert (_version(rig, name), _digest(path)) == (_OLD, before)
    assert _enter_and_read(rig, name) == "two"
    assert _mirror(rig, name).migration_failed is None
    # Since it succeeded, none counts that was before.
    subject = _row(rig, name).id

    async def count(room: Strongroom) -> int:
        return await room.stores.registry.read(
            lambda reader: steps.times_cut(reader, migration.ACTION, subject)
        )

    assert rig.run(count) == 0


def test_what_is_migrating_elsewhere_is_told_as_such(rig: Rig) -> None:
    """And what is out of service for another reason as that."""
    row = _row(rig, PLAIN)

    async def run(room: Strongroom) -> None:
        account = account_of(await member(room, row.id))
        for state, error in (("migrating", StoreMigratingError), ("copying", StoreBusyError)):
            await begin_state(room, row.id, state)
            with pytest.raises(error):
                await migration.bring_up(room, account, None)
            await room.stores.registry.write(
                lambda tx, s=state: tx.run(sql.END_STORE_STATE, user_id=row.id, store_state=s),  # type: ignore[misc]
                migration._ACTOR,
            )

    rig.run(run)


@_BOTH
def test_a_newer_store_is_refused_and_not_written(rig: Rig, name: str) -> None:
    """Not one byte of it, nor of its folder."""
    with _opened(rig, name) as connection:
        connection.all("INSERT INTO sys_migrations VALUES ('owner', 99, 'later', 'x', 0)")
        connection.checkpoint()
    path = rig.settings.user_file(_row(rig, name).id)
    before = _digest(path)

    async def run(room: Strongroom) -> None:
        caller = await enter(room, name)
        with pytest.raises(StoreTooNewError):
            await _read(room, caller)

    rig.run(run)
    assert _digest(path) == before
    assert {p.name for p in path.parent.glob(f"{path.name}*")} == {path.name}


def test_whoever_had_the_store_meanwhile_is_not_disturbed(rig: Rig) -> None:
    """The request that waited does not take it again; it opens what is there by now."""
    row = _row(rig, ENCRYPTED)

    async def run(room: Strongroom) -> None:
        account = account_of(await member(room, row.id))
        assert await migration.bring_up(room, account, key_of(row, PASSWORD))
        present = await member(room, row.id)
        with pytest.raises(StoreClosedError):
            await migration._migrate(room, account, key_of(row, PASSWORD))
        assert await member(room, row.id) == present

    rig.run(run)


def test_a_key_changed_meanwhile_opens_nothing(rig: Rig) -> None:
    """The request that waited has the old key; it is to come again."""
    row = _row(rig, ENCRYPTED)

    async def run(room: Strongroom) -> None:
        account = replace(account_of(await member(room, row.id)), dek_id=DekId("another"))
        with pytest.raises(StoreClosedError):
            await migration.open_present(room, account, lambda: key_of(row, PASSWORD))

    rig.run(run)


def test_drift_is_noted_at_unlock(rig: Rig) -> None:
    """For the operator, who cannot look into an encrypted store; it is served all the same."""
    assert _enter_and_read(rig, ENCRYPTED) == "two"
    with _opened(rig, ENCRYPTED) as connection:
        connection.all("CREATE INDEX extra ON reports (title)")
    assert _enter_and_read(rig, ENCRYPTED) == "two"
    assert _mirror(rig, ENCRYPTED).schema_check == "drift"
    with _opened(rig, ENCRYPTED) as connection:
        connection.all("DROP INDEX extra")
    _enter_and_read(rig, ENCRYPTED)
    assert _mirror(rig, ENCRYPTED).schema_check == "ok"


# -- system.db ---------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Settings:
    """A root of the first version."""
    return schema_fixtures.unpack(schema_fixtures.kept()[0], tmp_path / "old")


def _system_version(settings: Settings) -> str | None:
    return upgrades.outdated_version(settings.system_file, None, layout.SYSTEM_KIND, system_clock)


@pytest.mark.parametrize("point", ["start.copied", "start.applying", "start.applied"])
def test_a_start_that_fails_amid_its_migration_is_begun_anew(old: Settings, point: str) -> None:
    """Before the commit the old version stands, after it the new one."""
    with pytest.raises(StartError, match="as it was at version 1"):
        start.prepare(old, kdf_params=CHEAP, reach=stop_at(point))
    assert _system_version(old) == (None if point == "start.applied" else "1.1.1")
    start.prepare(old, kdf_params=CHEAP)
    assert _system_version(old) is None
    [snapshot] = files.snapshots(old.system_file)
    assert snapshot.name == "system.db.v1.1.1"


def test_a_newer_system_file_stops_the_start(old: Settings) -> None:
    """Without a byte written."""
    connection = files.open_maintenance(old.system_file, None, layout.SYSTEM_KIND, system_clock)
    with contextlib.closing(connection):
        connection.all("INSERT INTO sys_migrations VALUES ('owner', 99, 'later', 'x', 0)")
        connection.checkpoint()
    before = _digest(old.system_file)
    with pytest.raises(StartError, match="newer"):
        start.prepare(old, kdf_params=CHEAP)
    assert _digest(old.system_file) == before
    assert files.snapshots(old.system_file) == []
