"""`strongroom serve`."""

from pathlib import Path
from typing import Annotated

import typer

from app import telemetry
from app.cli import supervisor
from app.cli.channel import WORKER_COMMAND, WorkerProcess
from app.settings import PORT_MAX, WORKERS_MAX, Settings


def serve(  # noqa: PLR0913 - each is one option
    context: typer.Context,
    *,
    root: Annotated[Path | None, typer.Option(help="Folder of the data.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=PORT_MAX, help="0 takes any.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=WORKERS_MAX)] = None,
    instance_key_file: Annotated[Path | None, typer.Option(help="File of its key.")] = None,
) -> None:
    """Serve a root until SIGTERM. What is not given comes from STRONGROOM_* or a default."""
    telemetry.configure()
    settings = Settings.load(
        root=root, host=host, port=port, workers=workers, instance_key_file=instance_key_file
    )
    code = supervisor.run(
        settings,
        prepare=_prepare,
        worker_command=WORKER_COMMAND,
        first=context.find_object(WorkerProcess),
    )
    raise typer.Exit(code)


def _prepare(settings: Settings) -> None:
    from app.bridge.start import prepare  # noqa: PLC0415 - the driver and the ciphers

    prepare(settings)
