"""The command line, one module a noun. Acts through the control socket beside a running server.

A command module imports what is heavy inside its commands, for every call of the program
imports all of them. Exit codes: 0 fine, 1 found something, 2 usage, 3 cannot.
"""

import typer

from app import telemetry
from app.cli import (
    audit,
    check,
    deliveries,
    flags,
    init,
    jobs,
    lock,
    migrate,
    operations,
    schedules,
    serve,
    supervisor,
    user,
)
from app.errors.root import StrongroomError


def build() -> typer.Typer:
    """Put the commands together; a new noun adds its line here."""
    commands = typer.Typer(
        name="strongroom",
        help="A storage service for a small trusted group.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # they print the locals, keys among them
    )
    commands.command("serve")(serve.serve)
    commands.command("worker", hidden=True)(serve.worker)
    commands.command("init")(init.init)
    commands.add_typer(user.build(), name="user")
    commands.add_typer(jobs.build(), name="jobs")
    commands.add_typer(deliveries.build(), name="deliveries")
    commands.add_typer(deliveries.build_breakers(), name="breakers")
    commands.add_typer(schedules.build(), name="schedules")
    commands.add_typer(flags.build(), name="flags")
    commands.add_typer(operations.build(), name="operations")
    commands.command("lock")(lock.lock)
    commands.command("check")(check.check)
    commands.command("migrate")(migrate.migrate)
    commands.add_typer(audit.build(), name="audit")
    return commands


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    telemetry.configure(level="warning")
    try:
        build()()
    except StrongroomError as error:
        typer.echo(str(error), err=True)
        raise SystemExit(supervisor.EXIT_CANNOT) from error
    except Exception as error:  # the boundary of the whole process
        telemetry.unexpected("command", error)
        raise SystemExit(supervisor.EXIT_CANNOT) from error
