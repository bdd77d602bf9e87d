"""How a command reaches the service: by a running server, in its place, or by reading alone."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue
from typing_extensions import override

from app.cli import supervisor
from app.errors.root import StrongroomError
from app.errors.starting import AlreadyServingError, StartError
from app.errors.stores import StoreLockedError
from app.settings import Settings

Answer = dict[str, Any]
"""What JSON can hold."""

_CONNECT_S: Final = 5.0
"""Seconds for a server that starts, or whose leader changes, to listen."""
_PAUSE_S: Final = 0.1
_ANSWER_S: Final = 120.0
"""Seconds that the server may take: derivations wait for their turn, stores for theirs."""


class RefusedError(StrongroomError):
    """The server refused the command."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__()
        self.reported_code = code
        """The stable code of what stands in the way."""
        self._detail = detail

    @override
    def __str__(self) -> str:
        return self._detail


class NoAnswerError(StrongroomError):
    """The server went away before it answered: look whether it was done."""


def perform(settings: Settings, name: str, arguments: dict[str, JsonValue]) -> Answer:
    """Have a command done by the server of this root; without one, do it in its place.

    Args:
        settings: Of the root.
        name: One of `app.bridge.commands`.
        arguments: Its arguments by name.

    Returns:
        The command's answer.

    Raises:
        RefusedError: The server says what stands in the way.
        NoAnswerError: The server ended meanwhile, or took too long.
        AlreadyServingError: Another process has the root, and does not listen.
        StrongroomError: What stands in the way here.
    """
    supervisor.confine_process()
    deadline = time.monotonic() + _CONNECT_S
    while True:
        reply = _ask(settings, {"command": name, "arguments": arguments})
        if reply is not None:
            return _result_of(reply)
        try:
            return _perform_here(settings, name, arguments)
        except AlreadyServingError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def look(settings: Settings, name: str, arguments: Mapping[str, JsonValue]) -> Answer:
    """Have a command done that only reads: here, without server, lock or preparation.

    A running server is asked only for what is under a key that it may have.

    Args:
        settings: Of the root.
        name: One of `app.bridge.commands.LOOKS`.
        arguments: Its arguments by name.

    Returns:
        The command's answer.

    Raises:
        RefusedError: The server says what stands in the way.
        NoAnswerError: The server ended meanwhile, or took too long.
        StrongroomError: What stands in the way here.
    """
    from app.bridge import commands  # noqa: PLC0415 - the driver and the ciphers

    try:
        return commands.look(settings, name, arguments)
    except StoreLockedError:
        reply = _ask(settings, {"command": name, "arguments": dict(arguments)})
        if reply is None:
            raise
    return _result_of(reply)


def _ask(settings: Settings, request: dict[str, JsonValue]) -> bytes | None:
    """Send one line and read one; None when nobody listens."""
    try:
        folder = os.open(settings.database, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _start_error(error) from error
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(_ANSWER_S)
            try:
                # By way of the folder's descriptor: a long path does not fit in 108 bytes.
                client.connect(f"/proc/self/fd/{folder}/{settings.control_socket.name}")
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            except OSError as error:
                raise _start_error(error) from error
            return _exchange(client, json.dumps(request).encode() + b"\n")
    finally:
        os.close(folder)


def _exchange(client: socket.socket, line: bytes) -> bytes:
    try:
        client.sendall(line)
        with client.makefile("rb") as answers:
            return answers.readline()
    except OSError as error:  # a time-out is one
        raise NoAnswerError from error


def _result_of(line: bytes) -> Answer:
    if not line.endswith(b"\n"):
        raise NoAnswerError
    reply: dict[str, Answer] = json.loads(line)
    if "error" in reply:
        raise RefusedError(reply["error"]["code"], reply["error"]["detail"])
    return reply["result"]


def _perform_here(settings: Settings, name: str, arguments: dict[str, JsonValue]) -> Answer:
    from app.bridge import commands, start  # noqa: PLC0415 - the driver and the ciphers

    async def perform_alone() -> Answer:
        async with start.running(settings) as room:
            return await commands.perform(room, name, arguments)

    with supervisor.root_taken(settings):
        start.prepare(settings)
        try:
            return asyncio.run(perform_alone())
        except OSError as error:
            raise _start_error(error) from error


def _start_error(error: OSError) -> StartError:
    return StartError(f"{error.filename or 'The control socket'}: {error.strerror}.")
