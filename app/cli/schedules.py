"""`strongroom schedules`: what is due again and again for the whole group."""

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

Schedule = Annotated[str, typer.Argument(help="Id of the schedule.")]


def build() -> typer.Typer:
    """Put the commands of this noun together."""
    commands = typer.Typer(help="The group's schedules.", no_args_is_help=True)
    commands.command("list")(list_all)
    commands.command("show")(show)
    commands.command("run")(run)
    commands.command("enable")(enable)
    commands.command("disable")(disable)
    return commands


def list_all(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show every schedule of the group, and when each is next due."""
    answer = look("schedules.list", {}, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        _show_table(answer["schedules"])


def show(schedule: Schedule, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show one schedule, and what became of its last ticks."""
    answer = look("schedules.show", {"schedule": schedule}, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    show_one(answer, "schedule")
    for each in answer["runs"]:
        told = each["reason"] or f"job {each['job_id']}, {each['job_status'] or 'no longer kept'}"
        count = f" ({each['ticks']} times)" if each["ticks"] > 1 else ""
        typer.echo(f"  {each['due_at']}{count}: {each['outcome']}, {told}")


def run(schedule: Schedule, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Run a schedule now, be it disabled; that is recorded."""
    answer = _perform("schedules.run", {"schedule": schedule}, root, as_json=as_json)
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"Runs as job {answer['job_id']}.")


def enable(schedule: Schedule, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Have a schedule run again when it is due; that is recorded."""
    _switch("enable", schedule, root, as_json=as_json)


def disable(schedule: Schedule, root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Have a schedule skip whenever it is due; that is recorded."""
    _switch("disable", schedule, root, as_json=as_json)


def _perform(name: str, arguments: dict[str, Any], root: Root, *, as_json: bool) -> control.Answer:
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Asking", as_json=as_json):
            return control.perform(settings, name, arguments)


def _switch(verb: str, schedule: str, root: Root, *, as_json: bool) -> None:
    answer = _perform(f"schedules.{verb}", {"schedule": schedule}, root, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    found = answer["schedule"]
    state = "enabled" if found["enabled"] else "disabled"
    typer.echo(f"{printable(found['title'])} is {state}.")


def _show_table(schedules: list[dict[str, Any]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that no other command should wait
    from rich.table import Column, Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(Column("Id", no_wrap=True), "Title", "When", "Next due", "Last due", "State")
    for each in schedules:
        when = (
            f"every {each['interval_s']} s"
            if each["cron"] is None
            else f"{each['cron']} ({each['timezone']})"
        )
        cells = (
            each["id"],
            each["title"],
            when,
            each["next_due_at"] or "never",
            each["last_due_at"] or "",
            "enabled" if each["enabled"] else "disabled",
        )
        # As Text, not as markup: a title may hold brackets.
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells))
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)
