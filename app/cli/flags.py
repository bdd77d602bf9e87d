"""`strongroom flags`: switches of the whole instance."""

import json
from typing import Annotated, Any

import typer

from app.cli import control
from app.cli.terminal import AsJson, Root, look, printable, show_json, telling_errors, working
from app.settings import Settings

Name = Annotated[str, typer.Argument(help="Name of the flag.")]


def build() -> typer.Typer:
    """Put the commands of this noun together."""
    commands = typer.Typer(help="Switches of the whole instance.", no_args_is_help=True)
    commands.command("list")(list_all)
    commands.command("set")(set_value)
    commands.command("unset")(unset)
    return commands


def list_all(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show every flag, what it is and what it does."""
    answer = look("flags.list", {}, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    for flag in answer["flags"]:
        _show(flag)


def set_value(
    name: Name,
    value: Annotated[str, typer.Argument(help="As `true`, `false`, a number or a word.")],
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Set a flag; it holds at once, and that is recorded."""
    arguments = {"flag": name, "value": _read(value)}
    _change("flags.set", arguments, root, as_json=as_json)


def unset(name: Name, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Have a flag be its default again; that is recorded."""
    _change("flags.unset", {"flag": name}, root, as_json=as_json)


def _read(text: str) -> bool | int | str:
    """A value as it is typed: a JSON boolean or whole number, else the word itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int) else text


def _perform(name: str, arguments: dict[str, Any], root: Root, *, as_json: bool) -> control.Answer:
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Asking", as_json=as_json):
            return control.perform(settings, name, arguments)


def _change(name: str, arguments: dict[str, Any], root: Root, *, as_json: bool) -> None:
    answer = _perform(name, arguments, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        _show(answer["flag"])


def _show(flag: dict[str, Any]) -> None:
    default = " (default)" if flag["is_default"] else ""
    value = printable(json.dumps(flag["value"]))
    typer.echo(f"{flag['name']} = {value}{default}: {flag['about']}")
