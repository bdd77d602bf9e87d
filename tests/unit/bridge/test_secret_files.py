"""Files that hold a secret."""

import os
import stat
from pathlib import Path

import pytest

from app.bridge import secret_files


def test_a_secret_is_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    """What a crash left of an earlier one is replaced."""
    (tmp_path / "secret.new").write_text("half of an earlier one, and longer than this")
    new = secret_files.write_new(tmp_path / "secret", "whole")
    assert new.read_text() == "whole\n"
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [new]


def test_a_secret_that_cannot_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a key would stop every later start."""

    def fail(_: int) -> None:
        raise InterruptedError

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InterruptedError):
        secret_files.write_new(tmp_path / "secret", "whole")
    assert list(tmp_path.iterdir()) == []
