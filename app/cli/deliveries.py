"""`strongroom deliveries`, `strongroom breakers`: what subscribers are owed, and what holds it."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from app.cli import control
from app.cli.terminal import (
    AsJson,
    Root,
    look,
    printable,
    show_json,
    show_one,
    telling_errors,
    working,
)
from app.settings import Settings

_PIPE_WIDTH: Final = 200
"""Columns of a table that goes to a file or a program."""
_DONE: Final = {"retry": "Due again", "cancel": "Cancelled", "release": "Released"}

Delivery = Annotated[str, typer.Argument(help="Id of the delivery.")]
User = Annotated[
    str | None, typer.Option(help="Name or id of a member; without it the group's are meant.")
]


def build() -> typer.Typer:
    """Put the commands on deliveries together."""
    commands = typer.Typer(
        help="What subscribers are owed, without what it tells.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    commands.command("list")(list_all)
    commands.command("show")(show)
    commands.command("retry")(retry)
    commands.command("cancel")(cancel)
    commands.command("release")(release)
    return commands


def build_breakers() -> typer.Typer:
    """Put the commands on breakers together."""
    commands = typer.Typer(
        help="Connections that failed of late.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    commands.command("list")(list_breakers)
    commands.command("reset")(reset)
    return commands


def list_all(
    user: User = None,
    status: Annotated[str | None, typer.Option(help="As pending, held or dead.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Show deliveries, newest first."""
    which = {"user": user, "status": status, "limit": limit}
    answer = look("deliveries.list", which, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    rows = [
        (
            each["id"],
            each["type"],
            each["status"],
            str(each["attempts"]),
            each["next_attempt_at"] or "",
            each["last_failure"] or "",
        )
        for each in answer["deliveries"]
    ]
    _show_table(("Id", "Event", "Status", "Tries", "Due", "Last failure"), rows)


def show(
    delivery: Delivery,
    user: User = None,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Show one delivery."""
    which = {"delivery": delivery, "user": user}
    answer = look("deliveries.show", which, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    show_one(answer, "delivery")


def retry(
    delivery: Delivery,
    user: User = None,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Have a delivery tried from the start, now: one that failed, is held or has ended."""
    _act("retry", delivery, user, root, as_json=as_json)


def cancel(
    delivery: Delivery,
    user: User = None,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """End a delivery for good; that is recorded."""
    _act("cancel", delivery, user, root, as_json=as_json)


def release(
    delivery: Delivery,
    user: User = None,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Let a held delivery go now, as the probe of its connection; that is recorded."""
    _act("release", delivery, user, root, as_json=as_json)


def list_breakers(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show connections of the group that failed of late."""
    answer = look("breakers.list", {}, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    rows = [
        (
            each["connection"],
            each["state"],
            str(each["failures"]),
            each["opened_at"] or "",
            each["next_probe_at"] or "",
        )
        for each in answer["breakers"]
    ]
    _show_table(("Connection", "State", "Failures", "Since", "Next probe"), rows)


def reset(
    connection: Annotated[str, typer.Argument(help="As https://example.com:443.")],
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Close a breaker and let go on what it held; that is recorded."""
    answer = _perform("breakers.reset", {"connection": connection}, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"Closed: {printable(answer['breaker']['connection'])}.")


def _perform(name: str, arguments: dict[str, Any], root: Root, *, as_json: bool) -> control.Answer:
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Asking", as_json=as_json):
            return control.perform(settings, name, arguments)


def _act(name: str, delivery: str, user: str | None, root: Root, *, as_json: bool) -> None:
    which = {"delivery": delivery, "user": user}
    answer = _perform(f"deliveries.{name}", which, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"{_DONE[name]}: {answer['delivery']['id']}.")


def _show_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that no other command should wait
    from rich.table import Column, Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    first, *others = names
    table = Table(Column(first, no_wrap=True), *others)
    for row in rows:
        # As Text, not as markup.
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)
