"""`strongroom user`: members made, listed, deactivated, erased."""

import sys
from typing import Annotated, Any

import typer
from pydantic import JsonValue

from app.cli import control
from app.cli.terminal import (
    AsJson,
    Root,
    ask_password,
    confirm,
    look,
    printable,
    show_json,
    telling_errors,
    working,
)
from app.settings import Settings

_PIPE_WIDTH = 200
"""Columns of a table that goes into no terminal."""
User = Annotated[str, typer.Argument(help="Name or id of the member.")]


def build() -> typer.Typer:
    """Put the commands of this noun together."""
    commands = typer.Typer(help="Members.", no_args_is_help=True)
    commands.command("add")(add)
    commands.command("list")(list_all)
    commands.command("deactivate")(deactivate)
    commands.command("erase")(erase)
    return commands


def add(  # noqa: PLR0913, PLR0917 - each is one option
    name: Annotated[str, typer.Argument(help="Name to sign in with.")],
    role: Annotated[str, typer.Option(help="As `member` or `admin`.")] = "member",
    encrypted: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--encrypted/--plain", help="Whether their store is under a key.")
    ] = True,
    display_name: Annotated[str | None, typer.Option(help="Name to show.")] = None,
    password_stdin: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--password-stdin", help="Read the password's line from there.")
    ] = False,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Make a member, with a temporary password that is asked for twice.

    The member's own first change of it changes the key as well and gives them, alone, the
    recovery code. With `--role admin` this works where no administrator is.
    """
    password = ask_password(from_stdin=password_stdin)
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        new: dict[str, JsonValue] = {
            "username": name,
            "password": password,
            "role_id": role,
            "encrypted": encrypted,
            "display_name": display_name,
            "is_temporary": True,
        }
        with working("Making the member", as_json=as_json):
            answer = control.perform(settings, "user.add", new)
    if as_json:
        show_json(answer)
        return
    user = answer["user"]
    typer.echo(f"Made {printable(user['username'])} ({user['role_id']}), {user['id']}.")
    typer.echo("The password is temporary: let them change it.")


def list_all(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show every member; of what they wrote, no more than its size."""
    answer = look("user.list", {}, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        _show_table(answer["users"])


def deactivate(user: User, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Close a member's account: every session and token ends now. Their file stays."""
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Deactivating", as_json=as_json):
            answer = control.perform(settings, "user.deactivate", {"user": user})
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"Deactivated {printable(answer['user']['username'])}.")


def erase(
    user: User,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002 - an option
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Erase a member and all they wrote, for ever."""
    if not yes:
        confirm(f"Erase {user} and all they wrote, for ever?")
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Erasing", as_json=as_json):
            answer = control.perform(settings, "user.erase", {"user": user})
    if as_json:
        show_json(answer)
        return
    receipt = answer["receipt"]
    typer.echo(f"Erased {receipt['user_id']}: a file of {receipt['file_bytes']} bytes.")
    typer.echo(f"Receipt {receipt['id']}, {receipt['erased_at']}.")


def _show_table(users: list[dict[str, Any]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that no other command should wait
    from rich.table import Column, Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(Column("Id", no_wrap=True), "Name", "Role", "Store", "Bytes", "Opened", "Account")
    for user in users:
        cells = (
            user["id"],
            user["username"],
            user["role_id"],
            "encrypted" if user["encrypted"] else "plain",
            "" if user["store_bytes"] is None else str(user["store_bytes"]),
            user["last_unlocked_at"] or "never",
            _account_of(user),
        )
        # As Text, not as markup: a name may hold brackets.
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells))
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)


def _account_of(user: dict[str, Any]) -> str:
    if not user["active"]:
        return "inactive"
    return "temporary password" if user["password_is_temporary"] else "active"
