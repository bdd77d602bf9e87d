"""The service at a key derivation cost of nearly nothing, which may kill itself at a point.

python -m tests.support.serve_cheap serve --settings JSON [--descriptors COUNT] [--kill-at POINT]

Beside `--kill-at`, which holds for every worker and as long as the server lives, a file
beside the root names the one point at which a worker ends itself, once.
"""

import argparse
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app import telemetry
from app.bridge import start
from app.bridge.strongroom import Reach
from app.cli import supervisor
from app.cli.worker import run_worker
from app.errors.starting import StartError
from app.settings import Settings
from tests.support.rooms import CHEAP

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MODULE: Final = "tests.support.serve_cheap"
EVERYBODY: Final = "everybody"
"""After the point in the file: parent and workers end together, as in a power cut."""


def kill_file(root: Path) -> Path:
    """Where the point is named at which a worker of this root ends itself, once."""
    return root.with_name(f"{root.name}.kill")


def main() -> int:
    """Be the parent, or one of its workers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["serve", "worker"])
    parser.add_argument("--settings", required=True)
    parser.add_argument("--kill-at", default="")
    parser.add_argument("--descriptors", type=int)
    parser.add_argument("--fd", type=int)
    parser.add_argument("--parent-pipe", type=int)
    parser.add_argument("--index", type=int)
    words = parser.parse_args()
    settings = Settings.model_validate_json(words.settings)
    if words.descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (words.descriptors, words.descriptors))
    if words.part == "serve":
        return _serve(settings, words.kill_at)
    return run_worker(
        settings, words.fd, words.parent_pipe, words.index, lambda s: _app(s, words.kill_at)
    )


def _serve(settings: Settings, kill_at: str) -> int:
    telemetry.configure()
    command = [sys.executable, "-m", MODULE, "worker", "--kill-at", kill_at]
    try:
        return supervisor.run(
            settings,
            prepare=lambda s: start.prepare(s, kdf_params=CHEAP, reach=_killer(s, kill_at)),
            worker_command=command,
        )
    except StartError as error:
        sys.stderr.write(f"{error}\n")
        return supervisor.EXIT_CANNOT


def _killer(settings: Settings, kill_at: str) -> Reach:
    """What ends this process at the point that was named."""
    once = kill_file(settings.root)

    def reach(point: str) -> None:
        if point == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        named = once.read_text().split() if once.exists() else []
        if named[:1] == [point]:
            once.unlink()
            if EVERYBODY in named:
                os.killpg(0, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def _app(settings: Settings, kill_at: str) -> "ASGIApp":
    from app.main import create_app  # noqa: PLC0415 - FastAPI, which the parent never needs
    from app.worker.handlers import OWN, Handlers  # noqa: PLC0415 - as above
    from tests.support.workshop import Workshop  # noqa: PLC0415 - as above

    handlers = Handlers([OWN, Workshop().handlers])
    return create_app(
        settings, kdf_params=CHEAP, reach=_killer(settings, kill_at), handlers=handlers
    )


if __name__ == "__main__":
    sys.exit(main())
