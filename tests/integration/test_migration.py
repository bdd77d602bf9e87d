"""A group that comes back with stores of the first version, on the real program."""

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
import pytest

from app.bridge import layout
from app.cli import control
from app.clock import system_clock
from app.db import files, migrations
from tests.support import schema_fixtures
from tests.support.clients import Client, code_of
from tests.support.matrix import chosen
from tests.support.outside import eventually, faults, half_done, key_of, members
from tests.support.points import MIGRATED, STARTED
from tests.support.schema_fixtures import ENCRYPTED, PLAIN
from tests.support.service import PASSWORD, LiveService

_OLD: Final = "1.1"
_PRESENT: Final = layout.MEMBER_KIND.version


@dataclass
class Group:
    """A served root whose members' stores can be those of the first version again."""

    service: LiveService
    old: Path
    """The root as it was left."""
    turns: Iterator[str] = field(default_factory=lambda: itertools.cycle((ENCRYPTED, PLAIN)))

    def path(self, name: str) -> Path:
        """Of a member's store."""
        settings = self.service.settings
        return settings.user_file(members(settings)[name].id)

    def set_back(self, name: str) -> None:
        """Put a member's old store back; nobody has it open."""
        path = self.path(name)
        files.remove_all(path)
        shutil.copy(self.old / "database" / path.name, path)

    def version(self, name: str) -> str:
        """What a member's file is of."""
        row = members(self.service.settings)[name]
        key = key_of(row, PASSWORD) if row.encrypted else None
        store = files.open_maintenance(
            self.path(name), key, layout.MEMBER_KIND, system_clock, reader=True
        )
        with contextlib.closing(store):
            recorded = migrations.applied(store)
        return migrations.version_of(recorded, layout.MEMBER_KIND.buckets)

    def client(self, name: str) -> Client:
        """A member, signed in, which opens their store."""
        headers = self.service.sign_in(name)
        return Client(self.service, name, PASSWORD, headers, self.path(name).stem)

    def require_whole(self, name: str) -> Client:
        """Everything is there, and can be added to."""
        client = self.client(name)
        note = f"user-memory/{client.user_id}/kept.md"
        assert client.read(note) == "two"
        assert client.append("user-memory/new.md", "more").status_code in {200, 201}
        assert client.call("GET", "/api/reports").json()["items"]
        assert self.version(name) == _PRESENT
        return client


def _group(folder: Path, workers: int = 1) -> Group:
    old = folder / "old"
    schema_fixtures.unpack(schema_fixtures.kept()[0], old)
    shutil.copytree(old, folder / "root")
    return Group(LiveService(folder / "root", workers=workers), old)


@pytest.fixture(scope="module", params=chosen([1], [1, 2]), ids=lambda count: f"{count}w")
def group(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Group]:
    """One group for all, served."""
    group = _group(tmp_path_factory.mktemp("migration"), request.param)
    with group.service:
        yield group


def test_members_come_back_and_find_everything(group: Group) -> None:
    """The start brings system.db up to date, each sign-in its member's store; all is told."""
    ana = group.client(ENCRYPTED)
    fleet = ana.call("GET", "/api/admin/fleet").json()
    assert fleet == {
        "present": _PRESENT,
        "stores": 2,
        "encrypted": 1,
        "versions": {_PRESENT: 1, _OLD: 1},
        "unknown": 0,
        "waiting": 1,
        "waiting_encrypted": 0,
        "drifted": 0,
        "failed": 0,
    }
    seen = ana.call("GET", "/api/admin/stores").json()["items"]
    assert {each["username"]: each["open"] for each in seen} == {ENCRYPTED: True, PLAIN: False}
    for name in (ENCRYPTED, PLAIN):
        group.require_whole(name)
    stores = ana.call("GET", "/api/admin/stores", params={"limit": 1}).json()
    assert stores["items"] == [
        {
            "user_id": ana.user_id,
            "username": ENCRYPTED,
            "encrypted": True,
            "active": True,
            "store_state": "open",
            "schema_version": _PRESENT,
            "schema_check": "ok",
            "migration_failed": False,
            "open": True,
            "store_bytes": stores["items"][0]["store_bytes"],
            "last_unlocked_at": stores["items"][0]["last_unlocked_at"],
        }
    ]
    size = stores["group"].pop("store_bytes")
    assert size > 0
    version = layout.SYSTEM_KIND.version
    assert stores["group"] == {"encrypted": False, "open": True, "schema_version": version}
    more = {"cursor": stores["next_cursor"]}
    [ben] = ana.call("GET", "/api/admin/stores", params=more).json()["items"]
    assert (ben["username"], ben["encrypted"]) == (PLAIN, False)
    assert faults(group.service.settings, serving=True) == []


def test_only_the_operator_sees_the_fleet(group: Group) -> None:
    """A member without the capability does not, nor do names or versions reach them."""
    ben = group.client(PLAIN)
    for path in ("/api/admin/fleet", "/api/admin/stores"):
        assert code_of(ben.call("GET", path)) == "not_permitted"


@pytest.mark.parametrize("is_everybody", chosen([True], [True, False]))
@pytest.mark.parametrize("point", chosen(["migrate.applying"], list(MIGRATED)))
@pytest.mark.long
def test_a_migration_killed_at_a_point_is_done_or_never_was(
    group: Group, point: str, *, is_everybody: bool
) -> None:
    """Nothing stays half-done, without a restart if one worker went; the next unlock finds all."""
    name, settings = next(group.turns), group.service.settings
    group.service.kill()
    group.set_back(name)
    group.service.start()
    group.service.kill_once(point, everybody=is_everybody)
    with pytest.raises(httpx.TransportError):
        group.service.sign_in(name)
    if is_everybody:
        group.service.kill()
        assert group.version(name) == (_PRESENT if MIGRATED[point] else _OLD)
        group.service.start()
        assert faults(settings, serving=True) == []
    assert eventually(lambda: faults(settings, serving=True), lambda found: not found) == []
    group.require_whole(name)
    assert faults(settings, serving=True) == []


@pytest.mark.long
def test_a_migration_that_kills_its_worker_is_left_and_told(tmp_path: Path) -> None:
    """Nobody else is stopped for ever, the operator sees which, and lets it be tried again."""
    group = _group(tmp_path)
    settings = group.service.settings
    with group.service as service:
        for _ in range(settings.migration_kills_max):
            service.kill_once("migrate.applying", everybody=False)
            with pytest.raises(httpx.TransportError):
                service.sign_in(ENCRYPTED)
            assert eventually(lambda: half_done(settings), lambda found: not found) == []
        ana = group.client(ENCRYPTED)
        refused = ana.call("GET", "/api/file", params={"path": "user-memory/kept.md"})
        assert code_of(refused) == "store_migration_failed"
        assert ana.call("GET", "/api/admin/fleet").json()["failed"] == 1
        assert group.version(ENCRYPTED) == _OLD
        [found] = faults(settings, serving=True)
        assert "Its migration failed" in found
        assert control.perform(settings, "migrate.begin", {})["forgotten"] == 1
        group.require_whole(ENCRYPTED)
        group.require_whole(PLAIN)


@pytest.mark.parametrize("point", chosen(["start.applying"], list(STARTED)))
@pytest.mark.long
def test_a_start_killed_amid_its_migration_is_begun_anew(tmp_path: Path, point: str) -> None:
    """The next one finds system.db of one of the two versions, and serves."""
    group = _group(tmp_path)
    service = group.service
    service.kill_once(point, everybody=True)
    assert service.spawn().wait(60) != 0
    service.kill()
    with service:
        assert faults(service.settings, serving=True) == []
        group.require_whole(ENCRYPTED)
