"""`strongroom lock`."""

from typing import Annotated

import typer

from app.cli import control
from app.cli.terminal import AsJson, Root, printable, show_json, telling_errors, working
from app.settings import Settings


def lock(
    user: Annotated[str, typer.Argument(help="Name or id of the member.")],
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Close a member's store in every process; their next credential opens it again."""
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Locking", as_json=as_json):
            answer = control.perform(settings, "lock", {"user": user})
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"Locked {printable(answer['user']['username'])}.")
