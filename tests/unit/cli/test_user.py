"""`strongroom user` and `strongroom lock`, with no server running."""

import pytest

from app.cli import supervisor
from app.cli import terminal as terminals
from app.ids import UserId
from tests.support.rooms import PASSWORD
from tests.unit.cli.conftest import Terminal

_ADD = ("--password-stdin",)


def _add(terminal: Terminal, name: str, *words: str) -> str:
    answer = terminal.answer("user", "add", name, *_ADD, *words, typed=PASSWORD + "\n")
    return str(answer["user"]["id"])


def _users(terminal: Terminal) -> dict[str, dict[str, object]]:
    return {user["username"]: user for user in terminal.answer("user", "list")["users"]}


def test_an_administrator_is_made_without_one(terminal: Terminal) -> None:
    """On a root that nobody prepared, too; the password is never shown."""
    ended = terminal.run(
        "user", "add", "ana", "--role", "admin", "--display-name", "Ana A.", *_ADD, typed=PASSWORD
    )
    assert ended.exit_code == 0
    assert "Made ana (admin)" in ended.stdout
    assert PASSWORD not in ended.output
    user = _users(terminal)["ana"]
    shown = [user[name] for name in ("display_name", "encrypted", "password_is_temporary")]
    assert shown == ["Ana A.", True, True]
    assert not terminal.settings.setup_token_file.exists()


def test_a_member_may_have_a_plain_store(terminal: Terminal) -> None:
    """Encrypted unless said otherwise."""
    _add(terminal, "ana", "--encrypted")
    ben = _add(terminal, "ben", "--plain")
    encrypted = {name: user["encrypted"] for name, user in _users(terminal).items()}
    assert encrypted == {"ana": True, "ben": False}
    assert terminal.settings.user_file(UserId(ben)).read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize(
    ("words", "typed", "code", "error"),
    [
        pytest.param(["cyd"], "short\n", 2, "weak_password", id="weak password"),
        pytest.param(["cyd"], "", 2, "weak_password", id="no password"),
        pytest.param(["cyd"], b"\xff" * 20, 2, "invalid_input", id="no UTF-8"),
        pytest.param(["a/b"], PASSWORD, 2, "invalid_username", id="no name"),
        pytest.param(["cyd", "--role", "boss"], PASSWORD, 2, "invalid_input", id="no such role"),
        pytest.param(["ANA"], PASSWORD, 3, "username_taken", id="taken"),
    ],
)
def test_what_cannot_be_made_is_told(
    terminal: Terminal, words: list[str], typed: str | bytes, code: int, error: str
) -> None:
    """A fault of what was given exits with 2, any other with 3; nobody is made."""
    _add(terminal, "ana")
    ended = terminal.run("user", "add", *words, *_ADD, "--json", typed=typed)
    assert ended.exit_code == code
    assert error in ended.stdout
    assert PASSWORD not in ended.output
    assert list(_users(terminal)) == ["ana"]


def test_a_password_is_typed_twice(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal it is asked for until both agree, and not shown."""
    monkeypatch.setattr(terminals, "is_interactive", lambda: True)
    typed = f"{PASSWORD}\nanother\n{PASSWORD}\n{PASSWORD}\n"
    ended = terminal.run("user", "add", "ana", typed=typed)
    assert ended.exit_code == 0
    assert PASSWORD not in ended.output
    assert list(_users(terminal)) == ["ana"]


def test_a_prompt_can_be_left(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever types no password makes nobody."""
    monkeypatch.setattr(terminals, "is_interactive", lambda: True)
    assert terminal.run("user", "add", "ana", typed="").exit_code == 3
    assert not terminal.settings.database.exists()


def test_a_program_must_say_where_the_password_is(terminal: Terminal) -> None:
    """Without a terminal and without `--password-stdin` nobody is asked."""
    ended = terminal.run("user", "add", "ana", typed=PASSWORD)
    assert (ended.exit_code, "--password-stdin" in ended.stderr) == (2, True)


def test_no_option_takes_a_password(terminal: Terminal) -> None:
    """An argument would stand in the list of processes."""
    assert terminal.run("user", "add", "ana", "--password", PASSWORD).exit_code == 2


def test_members_are_shown_as_a_table(terminal: Terminal) -> None:
    """One line each, with nothing that a terminal could take for a command."""
    ana = _add(terminal, "ana[red]")
    _add(terminal, "ben", "--plain")
    terminal.run("user", "deactivate", "ben")
    ended = terminal.run("user", "list")
    assert ended.exit_code == 0
    for word in (ana, "ana[red]", "encrypted", "temporary password", "plain", "inactive", "never"):
        assert word in ended.stdout


def test_listing_needs_no_lock(terminal: Terminal) -> None:
    """Whoever holds the root does not hold up who reads."""
    _add(terminal, "ana")
    with supervisor.root_taken(terminal.settings):
        assert list(_users(terminal)) == ["ana"]


def test_listing_no_root_is_refused(terminal: Terminal) -> None:
    """What is not there is not made."""
    assert terminal.answer("user", "list", code=3)["error"]["code"] == "cannot_start"
    assert not terminal.settings.database.exists()


def test_a_member_is_deactivated(terminal: Terminal) -> None:
    """By name or id; the last administrator stays."""
    _add(terminal, "ana", "--role", "admin")
    ben = _add(terminal, "ben")
    ended = terminal.run("user", "deactivate", ben)
    assert (ended.exit_code, ended.stdout) == (0, "Deactivated ben.\n")
    assert terminal.answer("user", "deactivate", "ben")["user"]["active"] is False
    ended = terminal.run("user", "deactivate", "ana")
    assert (ended.exit_code, ended.stderr) == (3, "The last administrator stays.\n")


@pytest.mark.parametrize(
    ("words", "typed", "code", "is_erased"),
    [
        pytest.param(["--yes"], "", 0, True, id="said"),
        pytest.param([], "y\n", 0, True, id="asked, yes"),
        pytest.param([], "n\n", 3, False, id="asked, no"),
        pytest.param([], "", 3, False, id="asked, left"),
    ],
)
def test_erasing_is_asked_for(  # noqa: PLR0913, PLR0917 - one row of the table
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    typed: str,
    code: int,
    is_erased: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Nothing goes without a yes."""
    monkeypatch.setattr(terminals, "is_interactive", lambda: True)
    ben = UserId(_add(terminal, "ben"))
    ended = terminal.run("user", "erase", "ben", *words, typed=typed)
    assert ended.exit_code == code
    assert ("Receipt" in ended.stdout) is is_erased
    assert terminal.settings.user_file(ben).exists() is not is_erased


def test_erasing_by_a_program(terminal: Terminal) -> None:
    """It must say yes itself, and gets the receipt."""
    ben = _add(terminal, "ben")
    ended = terminal.run("user", "erase", "ben", "--json")
    assert (ended.exit_code, "--yes" in ended.stderr) == (2, True)
    receipt = terminal.answer("user", "erase", "ben", "--yes")["receipt"]
    assert (receipt["user_id"], sorted(receipt)) == (
        ben,
        ["erased_at", "file_bytes", "id", "user_id"],
    )


def test_a_store_is_locked(terminal: Terminal) -> None:
    """Nobody has it open here, and that is said all the same."""
    _add(terminal, "ben")
    assert terminal.run("lock", "ben").stdout == "Locked ben.\n"
    assert terminal.answer("lock", "ben")["user"]["username"] == "ben"
    ended = terminal.run("lock", "nobody")
    assert (ended.exit_code, ended.stderr) == (3, "There is nothing here for this caller.\n")


def test_control_characters_do_not_reach_the_terminal() -> None:
    """Cursor movements, colours and line ends come out as what they are not."""
    assert terminals.printable("a\x1b[31mb\nc\u202ed") == "a\ufffd[31mb\ufffdc\ufffdd"
    assert terminals.printable("Ünï 日本") == "Ünï 日本"
