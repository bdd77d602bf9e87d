"""`strongroom audit`: the chained record of changes in system.db."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from app.cli import control, supervisor
from app.cli.terminal import AsJson, Root, confirm, show_json, telling_errors, working
from app.settings import Settings

if TYPE_CHECKING:
    from app.runtime.audit import Head, Verdict

_HASH: Final = re.compile("[0-9a-fA-F]{64}")
_FAULTS: Final = {
    "gap": "Row {seq} is missing, or stands in another place.",
    "row": "Row {seq} is not as it was recorded.",
    "fields": "The fields of row {seq} are not those that were recorded.",
    "end": "Row {seq} and what came after it are missing.",
    "head": "No row has the hash that was kept: one before it was changed, or it is removed.",
}


def build() -> typer.Typer:
    """The commands on the record of changes."""
    commands = typer.Typer(help="The record of changes.", no_args_is_help=True)
    commands.command("verify")(verify)
    commands.command("head")(head)
    commands.command("trim")(trim)
    return commands


def _read_hash(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not _HASH.fullmatch(text):
        message = "64 hexadecimal digits, as `strongroom audit head` tells them."
        raise typer.BadParameter(message)
    return bytes.fromhex(text)


def verify(
    kept: Annotated[
        str | None, typer.Option("--head", help="A hash that was kept elsewhere.")
    ] = None,
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Check that the record of changes was not edited since a head that was kept elsewhere.

    Changes nothing, beside a running server too. Ends with 1 when something does not hold.
    """
    from app.bridge.maintenance import audit  # noqa: PLC0415 - the driver and the ciphers

    kept_hash = _read_hash(kept)
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Checking", as_json=as_json):
            found = audit.verify(settings, kept_hash)
    if as_json:
        show_json(_to_dict(found))
    else:
        _show_lines(found)
    if found.fault is not None:
        raise typer.Exit(supervisor.EXIT_FOUND)


def head(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Show the head of the record of changes, to be kept elsewhere."""
    from app.bridge.maintenance import audit  # noqa: PLC0415 - the driver and the ciphers

    with telling_errors(as_json=as_json):
        found = audit.head(Settings.load(root=root))
    if as_json:
        show_json({"head": _head(found)})
    else:
        typer.echo(_in_words(found))


def trim(
    through: Annotated[int, typer.Argument(min=1, help="The last row to remove.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002 - an option
    root: Root = None,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Remove the oldest rows of the record, for ever; a checkpoint stands for them.

    What is left can still be verified, from a head that was kept before too.
    """
    if not yes:
        confirm(f"Remove the record of changes up to row {through}, for ever?")
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with working("Removing", as_json=as_json):
            answer = control.perform(settings, "audit.trim", {"through": through})
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"Rows removed: {answer['removed']}.")


def _head(found: "Head | None") -> dict[str, Any] | None:
    return None if found is None else {"seq": found.seq, "hash": found.row_hash.hex()}


def _to_dict(found: "Verdict") -> dict[str, Any]:
    return {
        "rows": found.rows,
        "erased": found.erased,
        "unchained": found.unchained,
        "removed": found.removed,
        "head": _head(found.head),
        "bad_seq": found.bad_seq,
        "fault": found.fault,
    }


def _show_lines(found: "Verdict") -> None:
    typer.echo(f"Rows that hold: {found.rows}; of these without fields: {found.erased}.")
    if found.unchained:
        typer.echo(f"Rows from before the chain began: {found.unchained}.")
    if found.removed:
        typer.echo(f"Rows that were removed as the oldest: {found.removed}.")
    if found.fault is not None:
        typer.echo(_FAULTS[found.fault].format(seq=found.bad_seq))
    typer.echo(_in_words(found.head))


def _in_words(found: "Head | None") -> str:
    if found is None:
        return "Nothing is recorded yet."
    return f"Head: row {found.seq}, {found.row_hash.hex()}."
