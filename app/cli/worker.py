"""The worker process that `strongroom serve` starts: python -m app.cli.worker.

Its parent alone calls it, and tells it its work once it has loaded the program
(`channel.py`); it loads none of the commands.
"""

import contextlib
import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from app import telemetry
from app.cli import channel, supervisor
from app.db.file_lock import FileLock
from app.errors.starting import AlreadyServingError
from app.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_LET_IN_STEP_S: Final = 0.005


def main() -> int:
    """Be a worker of `strongroom serve`; the exit code."""
    gc.disable()  # a tenth of the loading would be looking for garbage that is none
    from app.main import create_app  # noqa: PLC0415 - FastAPI, which the parent never needs

    return run_worker(create_app)


def run_worker(create_app: Callable[[Settings], "ASGIApp"]) -> int:
    """Take the parent's orders and answer requests until SIGTERM, SIGINT or the parent's end.

    For a process of its own.

    Args:
        create_app: Wires the application; its lifespan opens and closes the stores.

    Returns:
        The exit code: 0 after it was asked to stop, 3 when the application cannot start.

    Raises:
        StartError: The process cannot be confined.
    """
    import uvicorn  # noqa: PLC0415 - 0.15 s that no other command should wait

    from app.web.wire import StrictHttp  # noqa: PLC0415 - likewise

    orders = channel.receive()
    if orders is None:
        return supervisor.EXIT_FINE
    gc.freeze()  # what was loaded stays: no collection ever looks at it again
    gc.enable()
    settings = Settings.model_validate_json(orders.settings)
    telemetry.configure(worker=orders.place)
    supervisor.confine_process()
    StrictHttp.stall_s = settings.stall_s
    lock = FileLock(settings.workers_lock_file)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(settings),
            http=StrictHttp,
            loop="uvloop",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # it writes query strings
            server_header=False,
            proxy_headers=False,  # the application trusts only the proxies it is told of
            timeout_graceful_shutdown=max(1, settings.stop_s // 2),  # the rest closes stores
        )
    )
    asked = threading.Event()

    def stop(*_: object) -> None:
        asked.set()
        server.should_exit = True

    # uvicorn raises its signals again after the shutdown; the default would end us there.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    channel.hear_interrupts()
    with orders.listener as listener:
        threading.Thread(
            target=_end_with_parent, args=(listener, stop, settings.stop_s), daemon=True
        ).start()
        if _let_in(lock, asked):
            server.run(sockets=[listener])
    lock.close()
    return supervisor.EXIT_FINE if asked.is_set() else supervisor.EXIT_CANNOT


def _let_in(lock: FileLock, asked: threading.Event) -> bool:
    """Wait until the root is prepared; False when the process was asked to stop before."""
    while True:
        try:
            lock.acquire_shared()
        except AlreadyServingError:
            if asked.wait(_LET_IN_STEP_S):
                return False
        else:
            return True


def _end_with_parent(listener: socket.socket, stop: Callable[[], None], stop_s: int) -> None:
    channel.wait_for_parents_end()
    # At once, in every orphan: a client that comes now is to meet the next server, not this one.
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    stop()
    time.sleep(stop_s)
    os._exit(1)  # a thread that hangs must not keep the next server waiting


if __name__ == "__main__":
    raise SystemExit(main())
