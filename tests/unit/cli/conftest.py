"""What the tests of the commands share."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app import cli
from app.bridge import start
from app.cli import supervisor
from app.settings import Settings
from tests.support.rooms import CHEAP


class Terminal:
    """The command line on a root of its own, in this process and at no cost."""

    def __init__(self, root: Path) -> None:
        self.settings = Settings(root=root)

    def run(self, *words: str, typed: str | bytes | None = None) -> Result:
        """Run a command; its exit code, and what it wrote."""
        where = ["--root", str(self.settings.root)]
        return CliRunner().invoke(cli.build(), [*words, *where], input=typed)

    def answer(self, *words: str, typed: str | None = None, code: int = 0) -> Any:  # noqa: ANN401 - what JSON can hold
        """Run a command with `--json`; its answer."""
        ended = self.run(*words, "--json", typed=typed)
        assert ended.exit_code == code, ended.output
        assert ended.stderr == ""
        return json.loads(ended.stdout)


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal on a fresh root, whose commands confine nothing and derive cheaply."""
    prepare: Callable[..., None] = functools.partial(start.prepare, kdf_params=CHEAP)
    monkeypatch.setattr(start, "prepare", prepare)
    monkeypatch.setattr(start, "running", functools.partial(start.running, kdf_params=CHEAP))
    monkeypatch.setattr(supervisor, "confine_process", lambda: None)
    return Terminal(tmp_path)
