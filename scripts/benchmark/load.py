"""The load, made by a process of its own: what asks takes no time from what answers.

One JSON object a line on standard input is one run; one on standard output is its outcome.
"""

import asyncio
import functools
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Final, cast

import uvloop
from typing_extensions import override

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_FIRST_ERROR: Final = 400


class Outcome:
    """What one stream of requests met."""

    def __init__(self, count_max: int) -> None:
        self.count_max = count_max
        self.micros: list[int] = []
        """Microseconds from sending a request to the last byte of its answer."""
        self.errors = 0
        self.began = time.perf_counter()
        self.ended = self.began


class Connection(asyncio.Protocol):
    """One kept-alive connection that asks again as soon as it is answered."""

    def __init__(self, requests: Iterator[bytes], until: float, outcome: Outcome) -> None:
        self._requests = requests
        self._until = until
        self._outcome = outcome
        self._answer = b""
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    @override
    def data_received(self, data: bytes) -> None:
        answer = self._answer = self._answer + data
        head = answer.find(_HEAD_END)
        if head < 0 or len(answer) < head + len(_HEAD_END) + _length(answer[:head]):
            return
        now = time.perf_counter()
        outcome = self._outcome
        outcome.micros.append(int((now - self._sent_at) * 1e6))
        outcome.errors += int(answer[9:12]) >= _FIRST_ERROR
        outcome.ended = now
        self._answer = b""
        if now < self._until and len(outcome.micros) < outcome.count_max:
            self._ask()
        else:
            self._end()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._outcome.errors += 1
            self.done.set_result(None)

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None or self._transport is None:
            self._end()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        if self._transport is not None:
            self._transport.close()


def _length(head: bytes) -> int:
    at = head.find(_LENGTH)
    return int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0


async def _run_stream(stream: dict[str, Any], until: float) -> dict[str, Any]:
    outcome = Outcome(stream["count_max"])
    requests = [text.encode("latin-1") for text in stream["requests"]]
    connections = stream["connections"]
    loop = asyncio.get_running_loop()
    made = []
    for number in range(connections):
        own = requests[number::connections] or requests
        turn = iter(own) if stream["once"] else itertools.cycle(own)
        make = functools.partial(Connection, turn, until, outcome)
        _, connection = await loop.create_connection(make, "127.0.0.1", stream["port"])
        made.append(connection)
    await asyncio.gather(*(connection.done for connection in made))
    return {
        "seconds": outcome.ended - outcome.began,
        "micros": outcome.micros,
        "errors": outcome.errors,
    }


async def _run(job: dict[str, Any]) -> list[dict[str, Any]]:
    until = time.perf_counter() + job["seconds"]
    return await asyncio.gather(*(_run_stream(stream, until) for stream in job["streams"]))


def main() -> None:
    """Serve runs until standard input ends."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    for line in sys.stdin:
        sys.stdout.write(json.dumps(uvloop.run(_run(json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
