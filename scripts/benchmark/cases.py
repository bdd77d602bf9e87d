"""The cases, each in rounds side by side with what it is held against."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from app.settings import Settings
from scripts.benchmark.meter import Figures, Load, Stream, request
from scripts.benchmark.servers import Server, Strongroom

MANY: Final = 16
"""Connections, and stores, of the crowded cases."""
NOTE: Final = "/api/file?path=user-memory/note.md"
TEXT: Final = " ".join(f"word{(n * n * 7 + n * 31) % 4_999}" for n in range(118))[:1024]
_BODIES: Final = 8
_SEARCHED: Final = 2_000


class Aim(NamedTuple):
    """One promise, and how it stands."""

    name: str
    measured: float
    bound: float
    at_least: bool
    unit: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is kept."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


@dataclass
class Report:
    """Everything that one run found."""

    figures: list[Figures] = field(default_factory=list)
    aims: list[Aim] = field(default_factory=list)


@dataclass(frozen=True)
class Effort:
    """How long is measured, and how much is made for it."""

    rounds: int
    round_s: float
    members: int
    derivations: int
    notes: int


FULL: Final = Effort(rounds=12, round_s=0.5, members=1_000, derivations=7, notes=10_000)
QUICK: Final = Effort(rounds=4, round_s=0.3, members=100, derivations=3, notes=1_000)


@dataclass(frozen=True)
class Bench:
    """What every case is given."""

    load: Load
    room: Strongroom
    reference: Server
    admin: str
    tokens: list[str]
    """A session each of sixteen members, each with the note."""
    effort: Effort
    report: Report

    def side_by_side(self, streams: dict[str, Stream]) -> list[Figures]:
        """Measure some streams in turn, round by round, so that what disturbs one disturbs all."""
        found = [Figures(name, stream.connections) for name, stream in streams.items()]
        for _ in range(self.effort.rounds):
            for figures, stream in zip(found, streams.values(), strict=True):
                self.load.measure(figures, stream, self.effort.round_s)
        self.report.figures += found
        return found

    def aim(
        self, name: str, measured: float, bound: float, *, at_least: bool, unit: str = ""
    ) -> None:
        """Put a promise on record."""
        self.report.aims.append(Aim(name, measured, bound, at_least, unit))


@contextlib.contextmanager
def furnished(
    root: Path, load: Load, reference: Server, effort: Effort, report: Report
) -> Iterator[Bench]:
    """A room at cheap key derivation, with sixteen members who each have the note.

    Yields:
        What the cases need.
    """
    with Strongroom(Settings.load(root=root, port=0)) as room:
        admin = room.set_up()
        tokens = add_members(room, admin, range(MANY))
        for token in tokens:
            room.call("PUT", NOTE, TEXT, token)
        yield Bench(load, room, reference, admin, tokens, effort, report)


def add_members(room: Strongroom, admin: str, numbers: range) -> list[str]:
    """Make members; the tokens of their sessions."""
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(lambda n: room.add_member(f"member-{n}", admin), numbers))


def puts(tokens: list[str]) -> list[str]:
    """Replacements of the note, no two alike, dealt out evenly to as many connections."""
    return [
        request("PUT", NOTE, token, f"{turn} {number} {TEXT}")
        for turn in range(_BODIES)
        for number, token in enumerate(tokens)
    ]


def read(bench: Bench) -> None:
    """(a) against (e)."""
    get = [request("GET", NOTE, bench.tokens[0])]
    plain = [request("GET", "/note")]
    for connections in (1, MANY):
        ours, theirs = bench.side_by_side(
            {
                "a: read a note": Stream(bench.room, get, connections),
                "e: the bare framework": Stream(bench.reference, plain, connections),
            }
        )
        where = f"a / e, {connections} connections"
        bench.aim(f"{where}, requests/s", ours.ratio_to(theirs), 0.9, at_least=True)
        bench.aim(f"{where}, processor time", ours.thrift_to(theirs), 0.9, at_least=True)


def write(bench: Bench) -> None:
    """(b), alone and crowded, and (a) while it runs."""
    tokens = bench.tokens
    own = tokens[:1]
    one, many, apart = bench.side_by_side(
        {
            "b: replace a note": Stream(bench.room, puts(own), 1),
            "b: of one store": Stream(bench.room, puts(own * MANY), MANY),
            "b: of 16 stores": Stream(bench.room, puts(tokens), MANY),
        }
    )
    bench.aim("b at 16 / b at 1, one store", many.ratio_to(one), 1.5, at_least=True)
    bench.aim("b at 16 / b at 1, 16 stores", apart.ratio_to(one), 0.9, at_least=True)
    beside = Figures("a: while b runs", 1)
    get = Stream(bench.room, [request("GET", NOTE, own[0])], 1)
    for _ in range(bench.effort.rounds):
        crowd = Stream(bench.room, puts(own * MANY), MANY)
        bench.load.measure(beside, get, bench.effort.round_s, [crowd])
    bench.report.figures.append(beside)


def search(bench: Bench) -> None:
    """(c): two words, in two thousand notes."""
    token = bench.tokens[1]
    made = [
        request(
            "PUT",
            f"/api/file?path=user-memory/{n % 50}/{n}.md",
            token,
            f"topic{n % 97} {n} {TEXT}",
        )
        for n in range(_SEARCHED)
    ]
    [met] = bench.load.run([Stream(bench.room, made, MANY, once=True)], 600)
    if met["errors"]:
        raise RuntimeError(met["errors"])
    asked = [
        request("GET", f"/api/search?q=topic{n}+word63&scope=own&limit=10", token)
        for n in range(97)
    ]
    bench.side_by_side({f"c: search at {n}": Stream(bench.room, asked, n) for n in (1, MANY)})
