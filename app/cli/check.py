"""`strongroom check`: system.db and its members' files, without any key and without the server."""

from typing import TYPE_CHECKING

import typer

from app.cli import supervisor
from app.cli.terminal import AsJson, Root, counting, printable, show_json, telling_errors
from app.settings import Settings

if TYPE_CHECKING:
    from app.bridge.maintenance.inspection import Inspection


def check(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Look for damage, drift of the schema, and rows and files without each other.

    Changes nothing, beside a running server too. Ends with 1 when something is found, one
    line each.
    """
    from app.bridge.maintenance import inspection  # noqa: PLC0415 - the driver and the ciphers

    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with counting("Checking", as_json=as_json) as progress:
            seen = inspection.inspect(settings, progress)
    if as_json:
        _show_json(seen)
    else:
        _show_lines(seen)
    if seen.findings:
        raise typer.Exit(supervisor.EXIT_FOUND)


def _show_json(seen: "Inspection") -> None:
    show_json(
        {
            "findings": [{"file": f.file, "detail": f.detail} for f in seen.findings],
            "members": seen.members,
            "plain_stores": seen.versions,
            "encrypted_stores": seen.sealed,
            "never_unlocked_stores": seen.unknown,
            "waiting_stores": seen.waiting,
            "drifted_stores": seen.drifted,
            "busy_stores": seen.busy,
        }
    )


def _show_lines(seen: "Inspection") -> None:
    for finding in seen.findings:
        typer.echo(printable(f"{finding.file}: {finding.detail}"))
    for version, count in sorted(seen.versions.items()):
        typer.echo(f"Plain stores at version {version}: {count}.")
    for version, count in sorted(seen.sealed.items()):
        typer.echo(f"Encrypted stores at version {version}, as of their last unlock: {count}.")
    counts = {
        "Encrypted stores that nobody has unlocked yet": seen.unknown,
        "Stores that wait to be brought up to date": seen.waiting,
        "Stores whose schema is not what it should be": seen.drifted,
        "Stores that were busy and not looked at": seen.busy,
    }
    for words, count in counts.items():
        if count:
            typer.echo(f"{words}: {count}.")
    typer.echo(f"Members: {seen.members}. Findings: {len(seen.findings)}.")
