"""What the commands share: their options, how they ask, how they tell answers and errors."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import JsonValue

from app.cli import control, supervisor
from app.cli.control import Answer, RefusedError
from app.errors.inputs import InvalidInputError, InvalidUsernameError, WeakPasswordError
from app.errors.root import StrongroomError
from app.settings import Settings

Root = Annotated[Path | None, typer.Option(help="Folder of the data.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]

_USAGE_CODES: Final = {
    error.code for error in (InvalidInputError, InvalidUsernameError, WeakPasswordError)
}
_PASSWORD_BYTES_MAX: Final = 8_192
"""Longer than any password may be."""


@contextlib.contextmanager
def telling_errors(*, as_json: bool) -> Iterator[None]:
    """Tell what stands in a command's way, and choose its exit code.

    Yields:
        For the command's work.

    Raises:
        Exit: 2 when the arguments cannot be taken, 3 when it cannot be done.
    """
    try:
        yield
    except StrongroomError as error:
        code = error.reported_code if isinstance(error, RefusedError) else error.code
        if as_json:
            show_json({"error": {"code": code, "detail": str(error)}})
        else:
            typer.echo(printable(str(error)), err=True)
        is_usage = code in _USAGE_CODES
        raise typer.Exit(supervisor.EXIT_USAGE if is_usage else supervisor.EXIT_CANNOT) from error


def look(name: str, arguments: Mapping[str, JsonValue], root: Root, *, as_json: bool) -> Answer:
    """Have a command done that only reads, and tell what stands in its way.

    Returns:
        Its answer.
    """
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Looking", as_json=as_json):
            return control.look(settings, name, arguments)


def show_json(answer: Mapping[str, Any]) -> None:
    """Write an answer as one line of ASCII."""
    typer.echo(json.dumps(answer))


def show_one(answer: Mapping[str, Any], noun: str) -> None:
    """Write a thing line by line, and what operators did to it."""
    for name, value in answer[noun].items():
        typer.echo(f"{name}: {'' if value is None else printable(str(value))}")
    for act in answer["acts"]:
        typer.echo(f"  {act['at']}: {act['action']} by {act['operator']}")


def printable(text: str) -> str:
    """The text, unable to move a terminal's cursor or change its colours."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def is_interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Go on only with a person's yes.

    Raises:
        BadParameter: Nobody can be asked.
        Exit: The answer was no, or none.
    """
    if not is_interactive():
        message = "Nobody can be asked here: say --yes."
        raise typer.BadParameter(message)
    try:
        is_meant = typer.confirm(printable(question), err=True)
    except typer.Abort:
        is_meant = False
    if not is_meant:
        typer.echo("Nothing was done.", err=True)
        raise typer.Exit(supervisor.EXIT_CANNOT)


def ask_password(*, from_stdin: bool, is_new: bool = True) -> str:
    """Take a password: one line of standard input, or typed at a prompt.

    Args:
        from_stdin: Whether it comes from there.
        is_new: Whether it is to be set, and so typed twice.

    Returns:
        As typed; the rule for passwords is applied where it is set.

    Raises:
        BadParameter: Nobody can be asked.
        Exit: The prompt was left.
    """
    if from_stdin:
        # What is not UTF-8 comes as lone surrogates, which no password may hold.
        line = sys.stdin.buffer.readline(_PASSWORD_BYTES_MAX)
        return line.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if not is_interactive():
        message = "Nobody can be asked here: say --password-stdin."
        raise typer.BadParameter(message)
    try:
        typed = typer.prompt("Password", hide_input=True, confirmation_prompt=is_new, err=True)
    except typer.Abort as error:
        raise typer.Exit(supervisor.EXIT_CANNOT) from error
    return str(typed)


@contextlib.contextmanager
def working(text: str, *, as_json: bool) -> Iterator[None]:
    """Show on a terminal that something is being done.

    Yields:
        While it is.
    """
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that no other command should wait

    console = Console(stderr=True, quiet=as_json)
    with console.status(text) if console.is_terminal else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def counting(text: str, *, as_json: bool) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far something is.

    Yields:
        To be told how much is done, and of how much.
    """
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.progress import Progress  # noqa: PLC0415 - as above

    console = Console(stderr=True)
    is_shown = console.is_terminal and not as_json
    with Progress(console=console, transient=True, disable=not is_shown) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
