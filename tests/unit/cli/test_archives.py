"""`strongroom export` and `strongroom import`, with no server running."""

import zipfile
from pathlib import Path

import pytest

from app.bridge.arguments import ArgumentError
from app.cli import control
from app.cli import terminal as terminals
from tests.support.rooms import PASSWORD
from tests.unit.cli.conftest import Terminal

_STDIN = "--password-stdin"


@pytest.fixture
def archive(terminal: Terminal, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an archive is to be; `ana` and `ben` are members."""
    for name in ("ana", "ben"):
        terminal.answer("user", "add", name, _STDIN, typed=PASSWORD + "\n")
    return tmp_path_factory.mktemp("archives") / "notes.zip"


def test_notes_go_out_and_come_in(terminal: Terminal, archive: Path) -> None:
    """By the member's password; in clear, for the service's user alone."""
    ended = terminal.run("export", "ana", str(archive), _STDIN, typed=PASSWORD)
    assert ended.exit_code == 0, ended.output
    assert "Wrote 2 notes" in ended.stdout
    assert archive.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(archive, "a") as out:
        assert "user-memory/index.md" in out.namelist()
    own = archive.with_name("own.zip")
    with zipfile.ZipFile(own, "w") as out:
        out.writestr("more.md", "more")
    answer = terminal.answer("import", "ben", str(own), _STDIN, typed=PASSWORD)
    assert answer == {"written": 1, "unchanged": 0}
    ended = terminal.run("import", "ben", str(archive), _STDIN, typed=PASSWORD)
    assert "Wrote 0 notes; 2 stood there already." in ended.stdout
    # The session that did it is gone, and its store is locked again.
    assert terminal.answer("export", "ben", f"{archive}.2", _STDIN, typed=PASSWORD)["notes"] == 3


@pytest.mark.parametrize(
    ("words", "password", "code", "error"),
    [
        pytest.param(
            ["export", "ana", "{}"], "another password", 3, "invalid_credentials", id="password"
        ),
        pytest.param(["export", "cyd", "{}"], PASSWORD, 3, "not_found", id="nobody"),
        pytest.param(["export", "ana", "/"], PASSWORD, 3, "already_exists", id="a folder"),
        pytest.param(["export", "ana", "/no/x"], PASSWORD, 2, "invalid_input", id="no folder"),
        pytest.param(["import", "ana", "{}"], PASSWORD, 2, "invalid_input", id="no file"),
        pytest.param(
            ["import", "ana", __file__], PASSWORD, 3, "archive_unreadable", id="no archive"
        ),
    ],
)
def test_what_cannot_be_done_is_told(  # noqa: PLR0913, PLR0917 - a table's columns
    terminal: Terminal, archive: Path, words: list[str], password: str, code: int, error: str
) -> None:
    """And leaves nothing; the password is never shown."""
    given = [word.format(archive) for word in words]
    ended = terminal.run(*given, _STDIN, "--json", typed=password)
    assert ended.exit_code == code, ended.output
    assert error in ended.stdout
    assert password not in ended.output
    assert not archive.exists()


def test_a_password_is_typed_once(
    terminal: Terminal, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not a new one."""
    monkeypatch.setattr(terminals, "is_interactive", lambda: True)
    ended = terminal.run("export", "ana", str(archive), typed=f"{PASSWORD}\n")
    assert ended.exit_code == 0, ended.output
    assert archive.exists()


@pytest.mark.parametrize("path", ["relative.zip", "/a\0b"])
def test_a_path_is_absolute(terminal: Terminal, path: str) -> None:
    """For the server has another folder than whoever calls it."""
    asked = {"user": "ana", "password": PASSWORD, "path": path}
    with pytest.raises(ArgumentError, match="path"):
        control.perform(terminal.settings, "memory.export", {**asked})
