"""`strongroom init`."""

import typer

from app.cli import supervisor
from app.cli.terminal import AsJson, Root, printable, show_json, telling_errors, working
from app.settings import Settings


def init(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Prepare a root as the first start does, and say what was made; again is no harm."""
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        before = {path for path in (settings.instance_key, settings.system_file) if path.exists()}
        with working("Preparing", as_json=as_json):
            _prepare(settings)
    made = [str(p) for p in (settings.instance_key, settings.system_file) if p not in before]
    token = settings.setup_token_file
    if as_json:
        token_file = str(token) if token.exists() else None
        show_json({"root": str(settings.root), "made": made, "setup_token_file": token_file})
        return
    for path in made:
        typer.echo(f"Made {printable(path)}")
    if not made:
        typer.echo(f"{printable(str(settings.root))} was prepared before.")
    if token.exists():
        typer.echo(f"The token for the first administrator stands in {printable(str(token))}")


def _prepare(settings: Settings) -> None:
    from app.bridge import start  # noqa: PLC0415 - the driver and the ciphers

    supervisor.confine_process()
    with supervisor.root_taken(settings):
        start.prepare(settings)
