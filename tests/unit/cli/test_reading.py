"""Every command that only reads: it needs no server and no lock, and writes nothing."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Final

import pytest
from typer.main import get_group

from app import cli
from app.bridge import commands
from app.bridge.arguments import ArgumentError
from app.bridge.reading import reading, reading_member
from app.cli import control, supervisor
from app.db.locks import LockFile
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader
from app.errors.callers import NotFoundError
from app.errors.stores import StoreLockedError
from app.ids import UserId
from app.registry import accounts
from app.settings import Settings
from tests.support import schema_fixtures
from tests.support.rooms import add, open_room
from tests.unit.cli.conftest import Terminal
from tests.unit.cli.test_control import listening

_NOBODY: Final = "01890000-0000-7000-8000-00000000ffff"
_READING: Final = {
    "audit head": (),
    "audit verify": (),
    "breakers list": (),
    "check": (),
    "deliveries list": (),
    "deliveries show": (_NOBODY,),
    "flags list": (),
    "jobs list": (),
    "jobs show": (_NOBODY,),
    "operations list": (),
    "schedules list": (),
    "schedules show": (_NOBODY,),
    "user list": (),
}
"""Each with what it needs to be told."""
_VERBS: Final = {"list", "show", "head", "verify", "check"}
EVERY: Final = pytest.mark.parametrize("command", _READING)


def _run(terminal: Terminal, command: str, code: int) -> str:
    """Run it; what it says."""
    ended = terminal.run(*command.split(), *_READING[command], "--json")
    assert ended.exit_code == code, ended.output
    return ended.output


def _files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, but SQLite's index of a log: when it was written, and what."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith("-shm")
    }


def test_these_are_all_of_them() -> None:
    """Whatever the command line calls a look is one, and so is each in the table of looks."""
    words = []
    for noun, command in get_group(cli.build()).commands.items():
        verbs = getattr(command, "commands", None)
        words += [noun] if verbs is None else [f"{noun} {verb}" for verb in verbs]
    assert {each for each in words if each.split()[-1] in _VERBS} == set(_READING)
    by_themselves = {"audit head", "audit verify", "check"}
    assert {each.replace(".", " ") for each in commands.LOOKS} == set(_READING) - by_themselves


@EVERY
def test_where_no_root_is_none_is_made(terminal: Terminal, command: str) -> None:
    """It is refused, and the folder stays as empty as it was."""
    assert "strongroom init" in _run(terminal, command, supervisor.EXIT_CANNOT)
    assert list(terminal.settings.root.iterdir()) == []


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that nobody serves, with a plain member, and the log of a process that was killed."""
    root, left = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("left")
    settings = Settings(root=root)
    Terminal(root).run("init")

    async def main() -> None:
        async with open_room(settings) as room:
            await add(room, "ana", encrypted=False)
            await add(room, "ben")
            shutil.copytree(root, left, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*-shm"))

    asyncio.run(main())
    settings.setup_token_file.write_text("unused")
    assert Settings(root=left).system_file.with_name("system.db-wal").stat().st_size
    return left


@pytest.fixture
def left(terminal: Terminal, stopped: Path) -> Terminal:
    """A terminal on a root like that."""
    shutil.copytree(stopped, terminal.settings.root, dirs_exist_ok=True)
    return terminal


@EVERY
def test_a_root_stays_as_it_is_whoever_has_its_lock(left: Terminal, command: str) -> None:
    """No file of it is written; a log that a killed process left stays a log."""
    with supervisor.root_taken(left.settings):
        before = _files(left.settings.root)
        said = _run(left, command, 3 if _READING[command] else 0)
        assert _files(left.settings.root) == before
    assert not _READING[command] or json.loads(said)["error"]["code"] == "not_found"


@EVERY
def test_a_root_of_an_older_program_is_not_brought_up(terminal: Terminal, command: str) -> None:
    """It is told what does that, and the versions stay."""
    root = terminal.settings.root
    schema_fixtures.unpack(schema_fixtures.kept()[0], root)
    terminal.settings.stores_lock_file.touch()
    before = _files(root)
    ended = terminal.run(*command.split(), *_READING[command])
    assert ended.exit_code == (1 if command == "check" else 3)
    assert "older than the program: the next start" in ended.output
    assert _files(root) == before


def test_a_members_store_is_read_as_far_as_it_opens(left: Terminal) -> None:
    """A plain one here; what is under a key by the server that may have it, or not at all."""
    for noun in ("jobs", "deliveries"):
        assert left.answer(noun, "list", "--user", "ana") == {noun: []}
        locked = left.answer(noun, "list", "--user", "ben", code=3)
        assert locked["error"]["code"] == StoreLockedError.code
        unknown = left.answer(noun, "list", "--user", "cyd", code=3)
        assert unknown["error"]["code"] == "not_found"
    asked = {"command": "jobs.list", "arguments": {"user": "ben"}}
    with listening(left.settings, b'{"result": {"jobs": []}}\n') as lines:
        assert control.look(left.settings, "jobs.list", {"user": "ben"}) == {"jobs": []}
    assert json.loads(lines[0]) == asked


def test_what_a_look_cannot_take_is_told(left: Terminal) -> None:
    """As a usage error, and before anything is opened."""
    assert left.run("jobs", "list", "--status", "odd").exit_code == 2
    with pytest.raises(ArgumentError):
        commands.look(Settings(root=left.settings.root / "none"), "user.list", {"all": True})


def test_a_member_whose_store_is_taken_is_left_alone(left: Terminal) -> None:
    """As every opening is refused then."""
    locks = LockFile(left.settings.stores_lock_file)
    ana = next(each for each in left.answer("user", "list")["users"] if each["username"] == "ana")
    with reading(left.settings) as reader:
        number = accounts.get(reader, ana["id"]).lock_number
    assert locks.try_exclusive(number)
    assert left.answer("jobs", "list", "--user", "ana", code=3)["error"]["code"] == "store_busy"
    locks.close()


def test_a_member_who_has_just_gone_is_not_there(left: Terminal) -> None:
    """They are looked for again, under the lock of their store."""
    ana = next(each for each in left.answer("user", "list")["users"] if each["username"] == "ana")

    def find(registry: RegistryReader) -> AccountRow:
        return accounts.get(registry, ana["id"])._replace(id=UserId(_NOBODY))

    with pytest.raises(NotFoundError), reading_member(left.settings, find):
        raise AssertionError
