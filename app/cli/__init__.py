"""The command line, one module a noun. Acts through the control socket beside a running server.

What only reads needs neither that nor the root's lock, and prepares nothing.
A command module imports what is heavy inside its commands, for every call of the program
imports all of them. Exit codes: 0 fine, 1 found something, 2 usage, 3 cannot.
"""

import errno
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import typer

    from app.cli.channel import WorkerProcess

_INTERRUPTED: Final = 130
"""As shells have it: 128 and the number of SIGINT."""
_STANDARD: Final = 2
"""The last of the standard streams' descriptors."""
_CANNOT_WRITE: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EBADF})


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
    _stand_in_for_closed_streams()
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


def _stand_in_for_closed_streams() -> None:
    """Give the null device for a standard stream that the caller has closed.

    Else the next file that is opened, a lock or a store, would be taken for it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD:
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - the name says what
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


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
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            telemetry.unexpected("command", error)
        else:
            sys.stderr.write(f"The answer cannot be written: {error.strerror}.\n")
        raise SystemExit(supervisor.EXIT_CANNOT) from error
    except Exception as error:  # the boundary of the whole process
        telemetry.unexpected("command", error)
        raise SystemExit(supervisor.EXIT_CANNOT) from error
