"""The command line, one module a noun. Acts through the control socket beside a running server.

What only reads needs neither that nor the root's lock, and prepares nothing.
A command module imports what is heavy inside its commands, for every call of the program
imports all of them. Exit codes: 0 fine, 1 found something, 2 usage, 3 cannot.
"""

import signal
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import typer

    from app.cli.channel import WorkerProcess

_INTERRUPTED: Final = 130
"""As shells have it: 128 and the number of SIGINT."""


def build() -> "typer.Typer":
    """Put the commands together; a new noun adds its line here."""
    import typer  # noqa: PLC0415 - a worker imports this package, and no command

    from app.cli import (  # noqa: PLC0415 - likewise
        archives,
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
        user,
    )

    commands = typer.Typer(
        name="strongroom",
        help="A storage service for a small trusted group.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # they print the locals, keys among them
    )
    commands.command("serve")(serve.serve)
    commands.command("init")(init.init)
    commands.add_typer(user.build(), name="user")
    commands.add_typer(jobs.build(), name="jobs")
    commands.add_typer(deliveries.build(), name="deliveries")
    commands.add_typer(deliveries.build_breakers(), name="breakers")
    commands.add_typer(schedules.build(), name="schedules")
    commands.add_typer(flags.build(), name="flags")
    commands.add_typer(operations.build(), name="operations")
    commands.command("lock")(lock.lock)
    commands.command("export")(archives.export_notes)
    commands.command("import")(archives.import_notes)
    commands.command("check")(check.check)
    commands.command("migrate")(migrate.migrate)
    commands.add_typer(audit.build(), name="audit")
    return commands


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    from app.cli.channel import WORKER_COMMAND, WorkerProcess  # noqa: PLC0415 - before the rest

    first = None
    try:
        if sys.argv[1:2] == ["serve"]:
            # A stop is in order also before there is anything to stop.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: sys.exit(0))
            first = WorkerProcess(WORKER_COMMAND)
        _run(first)
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    finally:
        if first is not None:
            first.kill()


def _run(first: "WorkerProcess | None") -> None:
    from app import telemetry  # noqa: PLC0415 - as above
    from app.cli import supervisor  # noqa: PLC0415 - as above
    from app.errors.root import StrongroomError  # noqa: PLC0415 - as above

    telemetry.configure(level="warning")
    try:
        build()(obj=first)
    except StrongroomError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(supervisor.EXIT_CANNOT) from error
    except Exception as error:  # the boundary of the whole process
        telemetry.unexpected("command", error)
        raise SystemExit(supervisor.EXIT_CANNOT) from error
