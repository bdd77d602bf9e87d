"""`strongroom export`, `strongroom import`: a member's notes as an archive on this box."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import control
from app.cli.terminal import AsJson, Root, ask_password, show_json, telling_errors, working
from app.settings import Settings

User = Annotated[str, typer.Argument(help="Name or id of the member, whose password is asked for.")]
FromStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password's line from there.")
]


def export_notes(
    user: User,
    file: Annotated[Path, typer.Argument(help="The archive; a new file.")],
    password_stdin: FromStdin = False,  # noqa: FBT002 - an option
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Write a member's own notes into a ZIP file, in clear, by their password."""
    answer = _perform("export", user, file, password_stdin, root, as_json)
    if not as_json:
        typer.echo(f"Wrote {answer['notes']} notes, {answer['size_bytes']} bytes.")
        typer.echo("They are in clear there: keep the file as you would keep them.")


def import_notes(
    user: User,
    file: Annotated[Path, typer.Argument(help="An archive of notes.")],
    password_stdin: FromStdin = False,  # noqa: FBT002 - an option
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Take a ZIP file of notes into a member's own store, all or nothing, by their password."""
    answer = _perform("import", user, file, password_stdin, root, as_json)
    if not as_json:
        typer.echo(f"Wrote {answer['written']} notes; {answer['unchanged']} stood there already.")


def _perform(  # noqa: PLR0913, PLR0917 - the options of both
    act: str,
    user: str,
    file: Path,
    from_stdin: bool,  # noqa: FBT001 - as above
    root: Path | None,
    as_json: bool,  # noqa: FBT001 - as above
) -> control.Answer:
    password = ask_password(from_stdin=from_stdin, is_new=False)
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        # The server has another folder than whoever calls it.
        asked = {"user": user, "password": password, "path": str(file.absolute())}
        with working(f"Working on the {act}", as_json=as_json):
            answer = control.perform(settings, f"memory.{act}", {**asked})
    if as_json:
        show_json(answer)
    return answer
