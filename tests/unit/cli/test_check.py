"""`strongroom check`."""

import pytest
from rich.console import Console

from app.bridge import layout
from app.bridge.maintenance import inspection
from app.bridge.maintenance.inspection import Finding, Inspection
from app.cli import supervisor
from tests.support.rooms import PASSWORD
from tests.unit.cli.conftest import Terminal

VERSION = layout.MEMBER_KIND.version


@pytest.fixture
def members(terminal: Terminal) -> Terminal:
    """A root with one encrypted and one plain member."""
    for name, kind in (("ana", "--encrypted"), ("ben", "--plain")):
        terminal.run("user", "add", name, kind, "--password-stdin", typed=PASSWORD)
    return terminal


def test_a_sound_root_exits_with_0(members: Terminal) -> None:
    """What was looked at is counted, and what could not be opened; the lock is not needed."""
    with supervisor.root_taken(members.settings):
        ended = members.run("check")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        f"Plain stores at version {VERSION}: 1.",
        "Encrypted stores that nobody has unlocked yet: 1.",
        "Members: 2. Findings: 0.",
    ]
    assert members.answer("check") == {
        "findings": [],
        "members": 2,
        "plain_stores": {VERSION: 1},
        "encrypted_stores": {},
        "never_unlocked_stores": 1,
        "waiting_stores": 0,
        "drifted_stores": 0,
        "busy_stores": 0,
    }


def test_findings_exit_with_1(members: Terminal) -> None:
    """One line each, with the name of the file."""
    (plain,) = (p for p in members.settings.database.glob("*-*.db") if _is_plain(p.read_bytes()))
    plain.unlink()
    ended = members.run("check")
    assert ended.exit_code == 1
    assert ended.stdout.splitlines()[0] == f"{plain.name}: The member's file is missing."
    assert members.answer("check", code=1)["findings"] == [
        {"file": plain.name, "detail": "The member's file is missing."}
    ]


def _is_plain(content: bytes) -> bool:
    return content.startswith(b"SQLite format 3\0")


def test_busy_stores_are_told(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were not looked at, which is no finding."""
    monkeypatch.setattr(inspection, "inspect", lambda *_: Inspection(members=1, busy=1))
    ended = terminal.run("check")
    assert (ended.exit_code, "busy and not looked at: 1" in ended.stdout) == (0, True)


def test_a_finding_cannot_move_the_cursor(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name from a damaged file may hold anything."""
    seen = Inspection(findings=[Finding("a.db", "\x1b[2J")])
    monkeypatch.setattr(inspection, "inspect", lambda *_: seen)
    assert "\x1b" not in terminal.run("check").stdout


def test_what_is_no_root_exits_with_3(terminal: Terminal) -> None:
    """Nothing to look at is not the same as nothing found."""
    ended = terminal.run("check")
    assert (ended.exit_code, "strongroom init" in ended.stderr) == (3, True)


def test_progress_is_for_people(members: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the work shows itself, on standard error; a program sees nothing of it."""
    monkeypatch.setattr(Console, "is_terminal", property(lambda _: True))
    shown = members.run("check")
    assert "Checking" in shown.stderr
    assert "Checking" not in shown.stdout
    assert "Locking" in members.run("lock", "ana").stderr
    members.answer("check")
    members.answer("lock", "ana")
