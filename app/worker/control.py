"""The control socket: the operator's commands, beside a running server.

One process serves it, the leader. A client sends one JSON line, `{"command": text,
"arguments": object}`, and is answered with one: `{"result": object}` or `{"error": {"code":
text, "detail": text}}`.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Final

from pydantic import JsonValue

from app import telemetry
from app.bridge import commands
from app.bridge.strongroom import Strongroom
from app.errors.callers import NotPermittedError
from app.errors.inputs import InvalidInputError, PayloadTooLargeError
from app.errors.root import StrongroomError

LINE_BYTES_MAX: Final = 64 * 1024
"""Bytes of a request; an answer may be longer."""
DEADLINE_S: Final = 10.0
"""Seconds that a client may take to send its line, and again to take its answer."""
_FINISH_S: Final = 5.0
"""Seconds that a stop leaves to commands under way."""
_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred, unix(7): pid, uid, gid


@contextlib.asynccontextmanager
async def serve_control(room: Strongroom) -> AsyncIterator[None]:
    """Answer on `database/control.sock`; for the leader alone, who may replace a stale one.

    Yields:
        Once it listens.

    Raises:
        OSError: The socket cannot be made.
    """
    folder = os.open(room.settings.database, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    name = room.settings.control_socket.name
    try:
        desk = _Desk(room)
        server = await asyncio.start_unix_server(
            desk.serve, sock=_bind(folder, name), limit=LINE_BYTES_MAX
        )
        try:
            yield
        finally:
            server.close()
            _remove(folder, name)
            await desk.close()
    finally:
        os.close(folder)


def _bind(folder: int, name: str) -> socket.socket:
    """Make the socket by way of the folder's descriptor: a long path does not fit in 108 bytes."""
    _remove(folder, name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The file takes its mode from the socket: it is private from its first moment,
        # and the umask, which other threads share, stays as it is.
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(f"/proc/self/fd/{folder}/{name}")
    except BaseException:
        listener.close()
        raise
    return listener


def _remove(folder: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


class _Desk:
    """The clients of one control socket."""

    def __init__(self, room: Strongroom) -> None:
        self._room = room
        self._clients: set[asyncio.Task[None]] = set()
        self._asking: set[asyncio.Task[None]] = set()
        """Those whose request is not whole yet: a stop need not wait for them."""

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client, whatever it does."""
        task = asyncio.create_task(self._serve(reader, writer))
        for tasks in (self._clients, self._asking):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def close(self) -> None:
        """End who has not asked yet; let commands under way finish, as far as time allows."""
        for task in self._asking:
            task.cancel()
        if self._clients:
            _, late = await asyncio.wait(self._clients, timeout=_FINISH_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that went away, or is too slow, gets no answer. (A time-out is an OSError.)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            try:
                answer = await self._answer(reader, writer)
                writer.transport.set_write_buffer_limits(0)  # drained means sent
                writer.write(json.dumps(answer).encode() + b"\n")
                async with asyncio.timeout(DEADLINE_S):
                    await writer.drain()
            finally:
                writer.transport.abort()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, JsonValue]:
        try:
            _require_owner(writer)
            name, arguments = _parse(await self._read(reader))
        except StrongroomError as error:
            return _refusal(error)
        try:
            return {"result": await commands.perform(self._room, name, arguments)}
        except StrongroomError as error:
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 - the boundary of a command
            telemetry.unexpected("control", error)
            return _refusal(StrongroomError())

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            raise PayloadTooLargeError from error
        finally:
            self._asking -= {asyncio.current_task()}


def _refusal(error: StrongroomError) -> dict[str, JsonValue]:
    return {"error": {"code": error.code, "detail": str(error)}}


def _require_owner(writer: asyncio.StreamWriter) -> None:
    """Refuse another user of the box, should the file's mode not have kept them out.

    Raises:
        NotPermittedError: It is neither this process's user nor root.
    """
    peer = writer.get_extra_info("socket")
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(packed)
    if user not in {0, os.geteuid()}:
        raise NotPermittedError


def _parse(line: bytes) -> tuple[str, Mapping[str, JsonValue]]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError from error
    match request:
        case {"command": str(name), "arguments": dict(arguments), **rest} if not rest:
            return name, arguments
        case _:
            raise InvalidInputError
