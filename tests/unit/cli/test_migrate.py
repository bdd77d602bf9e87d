"""`strongroom migrate`, and what `strongroom check` says of stores of several versions."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bridge import layout
from app.bridge.maintenance import fleet
from app.cli import control
from app.clock import system_clock
from app.db import files, upgrades
from app.db.files import Connection
from tests.support import schema_fixtures
from tests.support.outside import members
from tests.support.rooms import PASSWORD
from tests.support.schema_fixtures import PLAIN
from tests.unit.cli.conftest import Terminal

_PRESENT = layout.MEMBER_KIND.version


@pytest.fixture
def old(terminal: Terminal) -> Terminal:
    """A root of the first version."""
    schema_fixtures.unpack(schema_fixtures.kept()[0], terminal.settings.root)
    return terminal


@contextlib.contextmanager
def _changing(terminal: Terminal, path: Path) -> Iterator[Connection]:
    kind = layout.SYSTEM_KIND if path == terminal.settings.system_file else layout.MEMBER_KIND
    with contextlib.closing(files.open_maintenance(path, None, kind, system_clock)) as connection:
        yield connection


def _plain_file(terminal: Terminal) -> Path:
    return terminal.settings.user_file(members(terminal.settings)[PLAIN].id)


def test_what_needs_no_key_is_migrated_now(old: Terminal) -> None:
    """system.db and the plain store; the encrypted one waits, and both commands say so."""
    ended = old.run("migrate")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        f"Plain stores brought to version {_PRESENT}: 1.",
        "Encrypted stores that wait for their next unlock: 1.",
    ]
    path = _plain_file(old)
    assert upgrades.outdated_version(path, None, layout.MEMBER_KIND, system_clock) is None
    assert [each.name for each in files.snapshots(path)] == [f"{path.name}.v1.1"]
    checked = old.run("check")
    assert checked.exit_code == 0
    assert checked.stdout.splitlines() == [
        f"Plain stores at version {_PRESENT}: 1.",
        "Encrypted stores at version 1.1, as of their last unlock: 1.",
        "Stores that wait to be brought up to date: 1.",
        "Members: 2. Findings: 0.",
    ]


def test_a_second_time_there_is_nothing_to_do(old: Terminal) -> None:
    """For programs in figures."""
    old.answer("migrate")
    assert old.answer("migrate") == {
        "version": _PRESENT,
        "migrated": 0,
        "failed": [],
        "encrypted_stores": 1,
        "waiting_stores": 1,
        "tried_again": 0,
    }


def test_before_the_start_an_older_system_file_is_a_finding(old: Terminal) -> None:
    """Nothing can be listed until it is brought up to date."""
    ended = old.run("check")
    assert ended.exit_code == 1
    assert "system.db: It is older than the program" in ended.stdout


def test_a_store_that_cannot_be_migrated_ends_with_1(old: Terminal) -> None:
    """It is named, by its member's id, with the code of what stands in the way."""
    old.answer("user", "list", code=3)
    old.answer("migrate")
    path = _plain_file(old)
    with _changing(old, path) as store:
        store.all("INSERT INTO sys_migrations VALUES ('owner', 99, 'later', 'x', 0)")
    answer = old.answer("migrate", code=1)
    assert answer["failed"] == [{"user_id": path.stem, "code": "store_too_new"}]
    assert f"{path.stem}: store_too_new." in old.run("migrate").stdout


def test_a_failed_migration_is_a_finding_until_it_is_tried_again(old: Terminal) -> None:
    """The operator's word lets it be tried, whatever the build."""
    old.answer("migrate")
    path = _plain_file(old)
    with _changing(old, old.settings.system_file) as system:
        # The columns alone, without the events of a member's own change.
        system.all("UPDATE users SET migration_failed = 'some build' WHERE username = 'ben'")
    assert f"{path.name}: Its migration failed" in old.run("check").stdout
    assert old.answer("migrate")["tried_again"] == 1
    assert old.run("check").exit_code == 0


def test_drift_in_an_encrypted_store_is_told_as_of_its_last_unlock(old: Terminal) -> None:
    """By the server's note, for nobody here can look."""
    old.answer("migrate")
    with _changing(old, old.settings.system_file) as system:
        system.all("UPDATE users SET schema_check = 'drift' WHERE username = 'ana'")
    ended = old.run("check")
    assert ended.exit_code == 1
    assert "The schema differed at its last unlock." in ended.stdout
    assert "Stores whose schema is not what it should be: 1." in ended.stdout


def test_many_stores_are_migrated_batch_by_batch(
    old: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two of them the operator sees how far it is; none is passed over."""
    monkeypatch.setattr(fleet, "BATCH", 1)
    for name in ("cyd", "dan"):
        old.run("user", "add", name, "--plain", "--password-stdin", typed=PASSWORD)
    answer = old.answer("migrate")
    assert (answer["migrated"], answer["failed"]) == (1, [])
    begun = control.perform(old.settings, "migrate.begin", {})
    # Those that nobody has opened yet are known as well by now.
    assert begun["versions"] == {_PRESENT: 3, "1.1": 1}
    assert begun["unknown"] == 0
