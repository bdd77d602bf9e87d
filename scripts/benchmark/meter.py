"""What is measured, and how it is asked for."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from scripts.benchmark.servers import Server

COUNT_MAX: Final = 50_000
"""Requests of one round at most."""


def request(
    method: str, target: str, token: str | None = None, body: str = "", kind: str = "text/markdown"
) -> str:
    """One request as it goes over the wire."""
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", body])


@dataclass(frozen=True)
class Stream:
    """Requests to one server over some connections, each asking again once it is answered."""

    server: Server
    requests: Sequence[str]
    """Dealt out to the connections; asked again and again."""
    connections: int
    once: bool = False
    """True to ask each request one time only."""

    def to_job(self) -> dict[str, Any]:
        """As the load takes it."""
        return {
            "port": self.server.port,
            "requests": list(self.requests),
            "connections": self.connections,
            "once": self.once,
            "count_max": COUNT_MAX,
        }


@dataclass
class Figures:
    """One case at one number of connections, over all its rounds."""

    name: str
    connections: int
    micros: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    """Requests a second, by round."""
    cpu_us: list[float] = field(default_factory=list)
    """Microseconds of the server's processor time a request, by round."""
    errors: int = 0

    @property
    def rate(self) -> float:
        """Requests a second."""
        return statistics.median(self.rates)

    def percentile(self, percent: int) -> int:
        """Microseconds within which so many percent were answered."""
        ordered = sorted(self.micros)
        return ordered[(len(ordered) - 1) * percent // 100]

    def ratio_to(self, other: "Figures") -> float:
        """Requests a second against another's: the median of rounds run side by side."""
        pairs = zip(self.rates, other.rates, strict=True)
        return statistics.median(mine / theirs for mine, theirs in pairs)

    def thrift_to(self, other: "Figures") -> float:
        """The other's processor time a request against this one's, likewise."""
        pairs = zip(self.cpu_us, other.cpu_us, strict=True)
        return statistics.median(theirs / mine for mine, theirs in pairs)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "case": self.name,
            "connections": self.connections,
            "requests_per_s": round(self.rate, 1),
            "p50_us": self.percentile(50),
            "p99_us": self.percentile(99),
            "cpu_us": round(statistics.median(self.cpu_us), 1),
            "errors": self.errors,
        }


class Load:
    """The process that asks, on a core of its own."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scripts.benchmark.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, streams: Iterable[Stream], seconds: float) -> list[dict[str, Any]]:
        """Run streams at the same time.

        Returns:
            What each met: `seconds`, `micros` and `errors`.

        Raises:
            RuntimeError: The load ended.
        """
        ask, answer = self._process.stdin, self._process.stdout
        if ask is None or answer is None:
            raise RuntimeError
        job = {"seconds": seconds, "streams": [stream.to_job() for stream in streams]}
        ask.write(json.dumps(job) + "\n")
        ask.flush()
        line = answer.readline()
        if not line:
            raise RuntimeError
        found: list[dict[str, Any]] = json.loads(line)
        return found

    def measure(
        self, figures: Figures, stream: Stream, seconds: float, beside: Sequence[Stream] = ()
    ) -> None:
        """Add one round to a case's figures, other streams running beside it."""
        before = stream.server.cpu_s
        met = self.run([stream, *beside], seconds)[0]
        spent = stream.server.cpu_s - before
        figures.errors += met["errors"]
        figures.micros += met["micros"]
        figures.rates.append(len(met["micros"]) / met["seconds"])
        figures.cpu_us.append(spent / len(met["micros"]) * 1e6)
