"""`strongroom jobs`: durable work of the group, or of a member whose store is open."""

import sys
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
_DONE: Final = {"retry": "Due again", "cancel": "Cancelled", "purge": "Removed"}

Job = Annotated[str, typer.Argument(help="Id of the job.")]
User = Annotated[
    str | None, typer.Option(help="Name or id of a member; without it the group's jobs are meant.")
]


def build() -> typer.Typer:
    """Put the commands on jobs together."""
    commands = typer.Typer(
        help="Durable work, without what it carries.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    commands.command("list")(list_all)
    commands.command("show")(show)
    commands.command("retry")(retry)
    commands.command("cancel")(cancel)
    commands.command("purge")(purge)
    return commands


def list_all(  # noqa: PLR0913, PLR0917 - each is an option
    user: User = None,
    status: Annotated[str | None, typer.Option(help="As pending, running or dead.")] = None,
    kind: Annotated[str | None, typer.Option(help="Of the work.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Show jobs, newest first."""
    which = {"user": user, "status": status, "kind": kind, "limit": limit}
    answer = look("jobs.list", which, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        _show_table(answer["jobs"])


def show(job: Job, user: User = None, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show one job."""
    answer = look("jobs.show", {"job": job, "user": user}, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    show_one(answer, "job")


def retry(job: Job, user: User = None, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Have a dead, cancelled or waiting job run from the start, now; that is recorded."""
    _act("retry", job, user, root, as_json=as_json)


def cancel(job: Job, user: User = None, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """End a pending or running job for good; that is recorded."""
    _act("cancel", job, user, root, as_json=as_json)


def purge(job: Job, user: User = None, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Take a job that is over away; that is recorded."""
    _act("purge", job, user, root, as_json=as_json)


def _perform(name: str, arguments: dict[str, Any], root: Root, *, as_json: bool) -> control.Answer:
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Asking", as_json=as_json):
            return control.perform(settings, name, arguments)


def _act(name: str, job: str, user: str | None, root: Root, *, as_json: bool) -> None:
    answer = _perform(f"jobs.{name}", {"job": job, "user": user}, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"{_DONE[name]}: {answer['job']['id']}.")


def _show_table(jobs: list[dict[str, Any]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that no other command should wait
    from rich.table import Column, Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(Column("Id", no_wrap=True), "Kind", "Status", "Tries", "Due", "Last error")
    for job in jobs:
        cells = (
            job["id"],
            job["kind"] or "a member's",
            job["status"],
            str(job["attempts"]),
            job["run_at"],
            job["last_error"] or "",
        )
        # As Text, not as markup: a kind may hold brackets.
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells))
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)
