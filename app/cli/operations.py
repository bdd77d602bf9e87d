"""`strongroom operations`: what spans files and is not over."""

from typing import Annotated, Any

import typer

from app.cli import control
from app.cli.terminal import AsJson, Root, look, printable, show_json, telling_errors, working
from app.settings import Settings

Key = Annotated[str, typer.Argument(help="Key of the operation.")]


def build() -> typer.Typer:
    """Put the commands of this noun together."""
    commands = typer.Typer(help="What spans files and is not over.", no_args_is_help=True)
    commands.command("list")(list_all)
    commands.command("release")(release)
    return commands


def list_all(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show operations under way, left by a crash, or left to a person."""
    answer = look("operations.list", {}, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    for operation in answer["operations"]:
        _show(operation)


def release(key: Key, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Have this program finish or undo an operation that it left to a person; that is recorded."""
    answer = _perform("operations.release", {"operation": key}, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        _show(answer["operation"])


def _perform(name: str, arguments: dict[str, Any], root: Root, *, as_json: bool) -> control.Answer:
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Asking", as_json=as_json):
            return control.perform(settings, name, arguments)


def _show(operation: dict[str, Any]) -> None:
    waits = ", waits for a person" if operation["diverged"] else ""
    line = "{key} {action} of {subject} since {started_at}".format(**operation)
    typer.echo(printable(line + waits))
