"""Stores of released versions, brought to the present: every row, or not a byte."""

import json
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from app.bridge import layout
from app.clock import Millis, system_clock
from app.crypto.keys import Key
from app.db import files, looking, migrations, upgrades
from app.db.files import Kind
from app.db.sqlite import Connection, Row
from app.errors.stores import StoreDamagedError
from app.project import PROJECT_FOLDER
from app.registry.accounts import Account
from app.runtime import steps
from app.settings import Settings
from tests.support import interrupted, schema_fixtures
from tests.support.interrupted import CutError
from tests.support.matrix import chosen
from tests.support.outside import key_of
from tests.support.rooms import PASSWORD
from tests.support.schema_fixtures import ENCRYPTED

IN_THE_MAKING: Final = "0.1.0"
"""The version of the program whose schema may still change."""
_FIRST: Final = schema_fixtures.kept()[0]


@dataclass(frozen=True)
class Root:
    """One root, and how each of its stores is opened."""

    settings: Settings
    stores: dict[str, tuple[Path, Key | None, Kind]]

    def open(self, name: str) -> Connection:
        """A handle that may do anything."""
        path, key, kind = self.stores[name]
        return files.open_maintenance(path, key, kind, system_clock)


def _root(settings: Settings) -> Root:
    """Find out how its stores are opened, whatever the version of its registry."""
    system = settings.system_file
    found: dict[str, tuple[Path, Key | None, Kind]] = {"system": (system, None, layout.SYSTEM_KIND)}
    with closing(
        files.open_maintenance(system, None, layout.SYSTEM_KIND, system_clock, reader=True)
    ) as registry:
        columns = ", ".join(Account._fields)
        rows = [Account(*row) for row in registry.all(f"SELECT {columns} FROM users")]  # noqa: S608 - its own names
    for row in rows:
        key = key_of(row, PASSWORD) if row.encrypted else None
        found[row.username] = (settings.user_file(row.id), key, layout.MEMBER_KIND)
    return Root(settings, found)


def _rows(connection: Connection) -> dict[str, list[Row]]:
    """Every row of every table but the record of migrations, by the columns it has."""
    names = connection.all(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
        "AND name NOT LIKE 'sqlite#_%' ESCAPE '#' AND name <> 'sys_migrations'"
    )
    return {name: connection.all(f"SELECT * FROM {name}") for (name,) in names}  # noqa: S608 - from the schema


def _columns(connection: Connection, table: str) -> list[str]:
    return [name for (name,) in connection.all(f"SELECT name FROM pragma_table_info('{table}')")]  # noqa: S608 - from the schema


# -- kept versions -----------------------------------------------------------------------------


def test_there_is_one_for_every_released_version() -> None:
    """Their numbers have no gap; when this program is released its own is kept as well."""
    assert [folder.name for folder in schema_fixtures.kept()] == [
        f"schema_{number}" for number in range(1, len(schema_fixtures.kept()) + 1)
    ]
    assert steps.BUILD == IN_THE_MAKING, (
        f"keep the schema of {IN_THE_MAKING} as tests/fixtures/README.md says, and name the next"
    )


@pytest.mark.parametrize("folder", schema_fixtures.kept(), ids=lambda folder: folder.name)
def test_a_released_migration_is_never_edited(folder: Path) -> None:
    """Whoever has a store that it made could not come back."""
    present = schema_fixtures.present()
    for bucket, recorded in schema_fixtures.facts_of(folder)["migrations"].items():
        assert recorded.items() <= present[bucket].items()


@pytest.mark.parametrize("folder", schema_fixtures.kept(), ids=lambda folder: folder.name)
def test_every_row_of_a_released_version_is_there_afterwards(tmp_path: Path, folder: Path) -> None:
    """In each of its stores; and nothing differs from what the migrations make."""
    root = _root(schema_fixtures.unpack(folder, tmp_path / "root"))
    for name, (path, key, kind) in root.stores.items():
        with closing(root.open(name)) as old:
            before = _rows(old)
            columns = {table: _columns(old, table) for table in before}
        assert sum(map(len, before.values())) > 20
        upgrades.migrate(path, key, kind, system_clock)
        assert upgrades.outdated_version(path, key, kind, system_clock) is None
        assert upgrades.drift(path, key, kind, system_clock) == []
        assert looking.integrity(path, key, kind, system_clock) == []
        with closing(root.open(name)) as new:
            for table, rows in before.items():
                names = ", ".join(columns[table])
                kept = new.all(f"SELECT {names} FROM {table}")  # noqa: S608 - from the schema
                assert sorted(map(repr, kept)) == sorted(map(repr, rows)), (name, table)


def test_the_present_version_can_be_kept(tmp_path: Path) -> None:
    """What is made now is whole, is of the present version, and says what made it."""
    schema_fixtures.make(tmp_path / "schema_9")
    facts = json.loads((tmp_path / "schema_9" / "versions.json").read_text())
    assert facts == {"program": steps.BUILD, "migrations": schema_fixtures.present()}
    root = _root(schema_fixtures.unpack(tmp_path / "schema_9", tmp_path / "root"))
    assert len(root.stores) == 3
    for path, key, kind in root.stores.values():
        assert upgrades.outdated_version(path, key, kind, system_clock) is None
        assert upgrades.drift(path, key, kind, system_clock) == []


# -- cut at a statement ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A root of the first version, which nobody changes."""
    return _root(schema_fixtures.unpack(_FIRST, tmp_path_factory.mktemp("first") / "root"))


def _count(first: Root, name: str, folder: Path) -> int:
    path, key, _ = first.stores[name]
    return interrupted.migrate(Path(shutil.copy(path, folder / "counted.db")), key, lambda _: None)


@pytest.mark.parametrize("name", chosen([ENCRYPTED], [ENCRYPTED, schema_fixtures.PLAIN]))
def test_a_migration_cut_at_any_statement_changed_nothing(
    first: Root, tmp_path: Path, name: str
) -> None:
    """The file is as it was, to the byte, and the next try succeeds."""
    path, key, kind = first.stores[name]
    [step] = chosen([6], [1])
    copy = tmp_path / "cut.db"
    for index in range(1, _count(first, name, tmp_path) + 1, step):
        shutil.copy(path, copy)

        def cut(number: int, at: int = index) -> None:
            if number == at:
                raise CutError

        with pytest.raises(CutError):
            interrupted.migrate(copy, key, cut)
        assert copy.read_bytes() == path.read_bytes()
        assert [p.name for p in tmp_path.glob("cut.db*")] == ["cut.db"]
    upgrades.migrate(copy, key, kind, system_clock)
    assert upgrades.drift(copy, key, kind, system_clock) == []


@pytest.mark.parametrize("part", chosen([0.5, 1.0], [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]))
def test_a_migration_killed_at_a_statement_begins_anew(
    first: Root, tmp_path: Path, part: float
) -> None:
    """Whatever the process left beside the file, the next opening finds the old version."""
    path, _, kind = first.stores[schema_fixtures.PLAIN]
    index = max(1, int(_count(first, schema_fixtures.PLAIN, tmp_path) * part))
    copy = Path(shutil.copy(path, tmp_path / "killed.db"))
    command = [sys.executable, "-m", "tests.support.interrupted", str(copy), str(index)]
    ended = subprocess.run(command, cwd=PROJECT_FOLDER, check=False)  # noqa: S603 - the project's own program
    assert ended.returncode == -signal.SIGKILL
    assert upgrades.outdated_version(copy, None, kind, system_clock) == "1.1"
    upgrades.migrate(copy, None, kind, system_clock)
    assert upgrades.outdated_version(copy, None, kind, system_clock) is None
    assert upgrades.drift(copy, None, kind, system_clock) == []


# -- copies of before --------------------------------------------------------------------------


def _one(first: Root, folder: Path, name: str = ENCRYPTED) -> tuple[Path, Key | None, Kind]:
    path, key, kind = first.stores[name]
    return Path(shutil.copy(path, folder / "a.db")), key, kind


@pytest.mark.parametrize("name", [ENCRYPTED, schema_fixtures.PLAIN, "system"])
def test_a_snapshot_is_whole_and_takes_the_place_of_an_older_one(
    first: Root, tmp_path: Path, name: str
) -> None:
    """What stood under its name, from a try that was cut, is gone."""
    path, key, kind = _one(first, tmp_path, name)
    upgrades.snapshot_of(path, "1.1").write_bytes(b"half a copy")
    made = upgrades.take_snapshot(path, key, kind, "1.1", lambda: Millis(86_400_000))
    assert (made.name, made.stat().st_mtime) == ("a.db.v1.1", 86_400)
    assert {p.name for p in tmp_path.iterdir()} == {"a.db", "a.db.v1.1"}
    with (
        closing(files.open_maintenance(made, key, kind, system_clock)) as copy,
        closing(files.open_maintenance(path, key, kind, system_clock)) as store,
    ):
        assert _rows(copy) == _rows(store)
        assert migrations.schema(copy) == migrations.schema(store)


def test_snapshots_are_found_by_name_and_go_by_age(tmp_path: Path) -> None:
    """Another store's, and what only looks like one, stay."""
    path = tmp_path / "a.db"
    for name in ("a.db", "a.db.v1.1", "a.db.v2.1", "a.db.vain", "b.db.v1.1", "a.db.new"):
        (tmp_path / name).touch()
    assert {each.name for each in files.snapshots(path)} == {"a.db.v1.1", "a.db.v2.1"}
    assert files.remove_snapshots(path, Millis(0)) == 0
    assert files.remove_snapshots(path) == 2
    assert len(list(tmp_path.iterdir())) == 4


def test_a_damaged_store_is_not_copied(first: Root, tmp_path: Path) -> None:
    """Nothing of the copy is left, and an older snapshot stays."""
    path, key, kind = _one(first, tmp_path)
    pages = bytearray(path.read_bytes())
    pages[-4096:] = bytes(4096)
    path.write_bytes(pages)
    upgrades.snapshot_of(path, "1.1").touch()
    with pytest.raises(StoreDamagedError):
        upgrades.take_snapshot(path, key, kind, "1.1", system_clock)
    assert {p.name for p in tmp_path.iterdir()} == {"a.db", "a.db.v1.1"}
