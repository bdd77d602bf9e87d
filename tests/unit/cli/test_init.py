"""`strongroom init`."""

import pytest
from typer.testing import CliRunner

from app import cli
from app.cli import supervisor
from app.settings import Settings
from tests.support.rooms import PASSWORD
from tests.unit.cli.conftest import Terminal


def test_a_fresh_root_is_prepared_once(terminal: Terminal) -> None:
    """What was made is named; again is no harm, and makes nothing."""
    settings = terminal.settings
    first = terminal.run("init")
    assert first.exit_code == 0
    for path in (settings.instance_key, settings.system_file, settings.setup_token_file):
        assert path.exists()
        assert str(path) in first.stdout
    key = settings.instance_key.read_bytes()
    again = terminal.run("init")
    assert (again.exit_code, "was prepared before" in again.stdout) == (0, True)
    assert settings.instance_key.read_bytes() == key


def test_programs_are_told_the_same(terminal: Terminal) -> None:
    """The setup token is named by its file, and only while it stands there."""
    settings = terminal.settings
    made = [str(settings.instance_key), str(settings.system_file)]
    token = str(settings.setup_token_file)
    root = str(settings.root)
    assert terminal.answer("init") == {"root": root, "made": made, "setup_token_file": token}
    terminal.run("user", "add", "ana", "--password-stdin", typed=PASSWORD)
    assert terminal.answer("init") == {"root": root, "made": [], "setup_token_file": None}
    assert "token" not in terminal.run("init").stdout


def test_a_served_root_is_not_touched(terminal: Terminal) -> None:
    """Whoever holds the root's lock has prepared it."""
    with supervisor.root_taken(terminal.settings):
        before = sorted(terminal.settings.root.rglob("*"))
        ended = terminal.run("init")
        assert ended.exit_code == 3
        assert "Another process serves this root." in ended.stderr
        assert sorted(terminal.settings.root.rglob("*")) == before


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
def test_a_root_that_is_none_is_told(terminal: Terminal, as_json: bool) -> None:  # noqa: FBT001 - a parameter
    """A missing folder is not made: the name may be a slip."""
    absent = terminal.settings.root / "absent"
    words = ["init", "--root", str(absent)] + (["--json"] if as_json else [])
    ended = CliRunner().invoke(cli.build(), words)
    assert ended.exit_code == 3
    assert "does not exist" in (ended.stdout if as_json else ended.stderr)
    assert not absent.exists()


def test_a_setting_that_cannot_be_is_told(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in the environment is named by its variable, before anything is made."""
    monkeypatch.setenv("STRONGROOM_PORT", "none")
    answer = terminal.answer("init", code=3)
    assert answer["error"]["code"] == "cannot_start"
    assert "STRONGROOM_PORT" in answer["error"]["detail"]
    monkeypatch.delenv("STRONGROOM_PORT")
    assert not Settings(root=terminal.settings.root).database.exists()
