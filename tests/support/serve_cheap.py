"""The service at a key derivation cost of nearly nothing, which may kill itself at a point.

python -m tests.support.serve_cheap serve --settings JSON [--descriptors COUNT] [--kill-at POINT]

Beside `--kill-at`, which holds for every worker and as long as the server lives, a file
beside the root names the one point at which a worker ends itself, once.
"""

import argparse
import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.cli.channel import WorkerProcess

if TYPE_CHECKING:
    from app.bridge.strongroom import Reach
    from app.settings import Settings

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
    parser.add_argument("--settings", default="")
    parser.add_argument("--kill-at", default="")
    parser.add_argument("--descriptors", type=int)
    words = parser.parse_args()
    if words.descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (words.descriptors, words.descriptors))
    if words.part == "serve":
        return _serve(words.settings, words.kill_at)
    return _work(words.kill_at)


def _serve(chosen: str, kill_at: str) -> int:
    command = [sys.executable, "-m", MODULE, "worker", "--kill-at", kill_at]
    first = WorkerProcess(command)
    from app import telemetry  # noqa: PLC0415 - as in the program: loaded beside the worker
    from app.bridge import start  # noqa: PLC0415 - as above
    from app.cli import supervisor  # noqa: PLC0415 - as above
    from app.errors.starting import StartError  # noqa: PLC0415 - as above
    from app.settings import Settings  # noqa: PLC0415 - as above
    from tests.support.rooms import CHEAP  # noqa: PLC0415 - as above

    telemetry.configure()
    try:
        return supervisor.run(
            Settings.model_validate_json(chosen),
            prepare=lambda s: start.prepare(s, kdf_params=CHEAP, reach=_killer(s, kill_at)),
            worker_command=command,
            first=first,
        )
    except StartError as error:
        sys.stderr.write(f"{error}\n")
        return supervisor.EXIT_CANNOT
    finally:
        first.kill()


def _work(kill_at: str) -> int:
    gc.disable()  # as in the program's own worker
    from app.cli.worker import run_worker  # noqa: PLC0415 - what the parent never needs
    from app.main import create_app  # noqa: PLC0415 - as above
    from app.worker.handlers import OWN, Handlers  # noqa: PLC0415 - as above
    from tests.support.rooms import CHEAP  # noqa: PLC0415 - as above
    from tests.support.workshop import Workshop  # noqa: PLC0415 - as above

    handlers = Handlers([OWN, Workshop().handlers])
    return run_worker(
        lambda s: create_app(s, kdf_params=CHEAP, reach=_killer(s, kill_at), handlers=handlers)
    )


def _killer(settings: "Settings", kill_at: str) -> "Reach":
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


if __name__ == "__main__":
    sys.exit(main())
