"""What it costs to keep the record of every change, and how fast the feed tells it."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.bridge import layout
from app.clock import system_clock
from app.crypto.keys import Key
from app.db import files
from app.db.context import Actor
from app.db.files import Connection
from app.db.owner.store import OwnerTransactor
from app.owner import identity, notes
from scripts.benchmark.cases import MANY, TEXT, Bench
from scripts.benchmark.meter import Figures, Stream, request

_ACTOR: Final = Actor("human", "bench", "bench", None, "0" * 24)
_BATCH: Final = 64
_COST_MAX: Final = 1.5
_EVENTS: Final = 1_000
_EVENT: Final = b"\ndata: {"


def tracking(bench: Bench) -> None:
    """(t): a note replaced with its event and audit row, and without them."""
    folder = bench.room.settings.database
    with _store(folder / "tracked.bench") as tracked, _store(folder / "bare.bench") as bare:
        # The same schema but for the triggers, which the guard would not let go.
        bare.guard(lambda *_: 0)
        for kind in ("insert", "update", "delete"):
            bare.all(f"DROP TRIGGER sys_track_memory_docs_{kind}")
        for size in (1, _BATCH):
            ours, theirs = Figures("t: tracked", size), Figures("t: untracked", size)
            for turn in range(bench.effort.rounds):
                for figures, connection in ((ours, tracked), (theirs, bare)):
                    _replace(figures, connection, size, bench.effort.round_s, turn)
            bench.report.figures += [ours, theirs]
            cost = 1 / ours.ratio_to(theirs)
            bench.aim(f"tracked / untracked, {size} a commit", cost, _COST_MAX, at_least=False)


@contextlib.contextmanager
def _store(path: Path) -> Iterator[Connection]:
    key = Key(bytes(range(32)))
    files.create(path, key, layout.MEMBER_KIND, system_clock, _own)
    with contextlib.closing(
        files.open_handle(path, key, layout.MEMBER_KIND, system_clock, reader=False)
    ) as connection:
        connection.actor = _ACTOR
        yield connection
    files.remove(path)


def _own(connection: Connection) -> None:
    identity.set_identity(OwnerTransactor(connection), "bench", None)


def _replace(
    figures: Figures, connection: Connection, size: int, seconds: float, turn: int
) -> None:
    """Add a round of commits of so many replacements each; a figure is one replacement's."""
    began, spent = time.perf_counter(), time.process_time()
    count = 0
    while time.perf_counter() - began < seconds:
        then = time.perf_counter()
        connection.all("BEGIN IMMEDIATE")
        for _ in range(size):
            count += 1
            text = f"{turn} {count} {TEXT}"
            tx = OwnerTransactor(connection)
            notes.put_note(tx, "note.md", text, "bench", notes.Condition())
        connection.all("COMMIT")
        figures.micros.append(int((time.perf_counter() - then) / size * 1e6))
    figures.rates.append(count / (time.perf_counter() - began))
    figures.cpu_us.append((time.process_time() - spent) / count * 1e6)


def feed(bench: Bench) -> None:
    """(h): the events of a thousand notes, by pages and by stream."""
    token = bench.tokens[2]
    made = [
        request("PUT", f"/api/file?path=user-memory/feed/{n}.md", token, "x")
        for n in range(_EVENTS)
    ]
    [met] = bench.load.run([Stream(bench.room, made, MANY, once=True)], 600)
    if met["errors"]:
        raise RuntimeError(met["errors"])
    ask = [request("GET", f"/api/events?limit={_EVENTS}", token)]
    bench.side_by_side({"h: a page of 1,000 events": Stream(bench.room, ask, 1)})
    figures = Figures("h: an event by stream", 1)
    for _ in range(bench.effort.rounds):
        _follow(figures, bench, token)
    bench.report.figures.append(figures)


def _follow(figures: Figures, bench: Bench, token: str) -> None:
    """Add a round of taking a whole log from a stream; a figure is one event's."""
    before, began = bench.room.cpu_s, time.perf_counter()
    count = 0
    with socket.create_connection(("127.0.0.1", bench.room.port), timeout=60) as connection:
        connection.sendall(request("GET", "/api/events/stream", token).encode())
        rest = b""
        while count < _EVENTS:
            taken = connection.recv(1 << 16)
            if not taken:
                raise RuntimeError(count)
            rest += taken
            count += rest.count(_EVENT)
            rest = rest[-len(_EVENT) + 1 :]
    took = time.perf_counter() - began
    figures.micros.append(int(took / count * 1e6))
    figures.rates.append(count / took)
    figures.cpu_us.append((bench.room.cpu_s - before) / count * 1e6)
