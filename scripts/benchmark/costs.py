"""What the service is held against beside the framework: the driver, memory, one derivation."""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

from app.bridge import layout, start
from app.clock import system_clock
from app.crypto import kdf
from app.crypto.kdf import KdfParams
from app.crypto.keys import Key
from app.db import files
from app.db.context import Actor
from app.db.files import Connection
from app.db.owner import statements
from app.db.owner.store import MEMBER_BUCKETS, OwnerReader, OwnerTransactor
from app.owner import identity, notes
from app.settings import Settings
from scripts.benchmark.cases import MANY, NOTE, TEXT, Aim, Bench, Effort, Report, add_members, puts
from scripts.benchmark.meter import Figures, Stream, request
from scripts.benchmark.servers import Strongroom
from tests.support.schema_files import made_by

_ACTOR: Final = Actor("human", "bench", "bench")
_DESCRIPTORS: Final = 256
_NICENESS: Final = 10


def driver(bench: Bench) -> None:
    """(f): the read and the commit of (a) and (b), in a loop."""
    path = bench.room.settings.database / "driver.bench"
    key = Key(bytes(range(32)))
    files.create(path, key, layout.MEMBER_KIND, system_clock, _own)
    ask = request("GET", NOTE, bench.tokens[0])
    with (
        closing(
            files.open_handle(path, key, layout.MEMBER_KIND, system_clock, reader=False)
        ) as writer,
        closing(
            files.open_handle(path, key, layout.MEMBER_KIND, system_clock, reader=True)
        ) as reader,
    ):
        turns = iter(range(1_000_000))

        def put() -> None:
            writer.all("BEGIN IMMEDIATE")
            writer.actor = _ACTOR
            text = f"{next(turns)} {TEXT}"
            notes.put_note(OwnerTransactor(writer), "note.md", text, "bench", notes.Condition())
            writer.all("COMMIT")

        def get() -> None:
            OwnerReader(reader).one(statements.FIND_SMALL_NOTE, path="note.md", inline_max=65536)

        put()
        figures = [Figures("f: the read alone", 1), Figures("f: the commit alone", 1)]
        over = [Figures("a: beside f", 1), Figures("b: beside f", 1)]
        streams = [Stream(bench.room, [ask], 1), Stream(bench.room, puts(bench.tokens[:1]), 1)]
        for _ in range(bench.effort.rounds):
            for alone, work, served, stream in zip(figures, (get, put), over, streams, strict=True):
                loop(alone, work, bench.effort.round_s)
                bench.load.measure(served, stream, bench.effort.round_s)
    files.remove(path)
    bench.report.figures += [figures[0], over[0], figures[1], over[1]]


def _own(connection: Connection) -> None:
    identity.set_identity(OwnerTransactor(connection), "bench", None)


def loop(figures: Figures, work: Callable[[], object], seconds: float) -> None:
    """Add a round of doing something again and again, in this process."""
    began, spent = time.perf_counter(), time.process_time()
    count = 0
    now = began
    while now - began < seconds:
        work()
        then, now = now, time.perf_counter()
        figures.micros.append(int((now - then) * 1e6))
        count += 1
    figures.rates.append(count / (now - began))
    figures.cpu_us.append((time.process_time() - spent) / count * 1e6)


def memory(bench: Bench) -> None:
    """A thousand members read once under few handles; what an open store weighs."""
    settings = bench.room.settings
    tokens = bench.tokens + add_members(bench.room, bench.admin, range(MANY, bench.effort.members))
    made = [request("PUT", NOTE, token, TEXT) for token in tokens[MANY:]]
    [met] = bench.load.run([Stream(bench.room, made, MANY, once=True)], 600)
    bench.room.end()
    asked = [request("GET", NOTE, token) for token in tokens]
    with Strongroom(settings, descriptors=_DESCRIPTORS) as room:
        [met] = bench.load.run([Stream(room, asked, MANY, once=True)], 600)
        name = f"errors of {len(tokens)} members read once under {_DESCRIPTORS} handles"
        bench.aim(name, met["errors"] + len(tokens) - len(met["micros"]), 0, at_least=False)
        before = room.resident_kib
        for _ in range(3):
            bench.load.run([Stream(room, asked, MANY, once=True)], 600)
        grown = room.resident_kib - before
        bench.aim("growth after three more times", grown / 1024, 16, at_least=False, unit="MiB")
        bench.aim("handles then open", room.descriptors, _DESCRIPTORS, at_least=False)
    with Strongroom(settings) as room:
        first, rest = asked[:20], asked[20:]
        bench.load.run([Stream(room, first, 1, once=True)], 600)
        before = room.resident_kib
        bench.load.run([Stream(room, rest, 1, once=True)], 600)
        weight = (room.resident_kib - before) / len(rest) / 1024
        bench.aim("an open store", weight, 1.0, at_least=False, unit="MiB")


def sign_in(root: Path, report: Report, effort: Effort) -> None:
    """(d) against (g), at the root's own cost; and how soon a second start answers."""
    settings = Settings.load(root=root, port=0)
    start.prepare(settings)
    params = asyncio.run(_cost(settings))
    ours, alone = Figures("d: sign in", 1), Figures("g: one Argon2id", 1)

    def derive() -> None:
        kdf.derive("bench", bytes(kdf.SALT_BYTES), params).zero()

    # As nice as the server's own derivations, or whatever else runs would count for it.
    with (
        Strongroom(settings, is_cheap=False) as room,
        ThreadPoolExecutor(1, initializer=lambda: os.nice(_NICENESS)) as thread,
    ):
        room.set_up()
        for _ in range(effort.derivations):
            once(alone, lambda: thread.submit(derive).result())
            once(ours, lambda: room.sign_in("admin"))
    report.figures += [ours, alone]
    longer = 1 / ours.ratio_to(alone)
    report.aims.append(Aim("d / g", longer, 1.1, at_least=False))
    # The parent and its worker load beside each other, as they do where people start it.
    began = time.perf_counter()
    with Strongroom(settings, is_cheap=False, is_pinned=False):
        took = time.perf_counter() - began
    report.aims.append(Aim("ready at the second start", took, 2.0, at_least=False, unit="s"))


def once(figures: Figures, work: Callable[[], object]) -> None:
    """Add a round of doing something one time."""
    began = time.perf_counter()
    work()
    took = time.perf_counter() - began
    figures.micros.append(int(took * 1e6))
    figures.rates.append(1 / took)
    figures.cpu_us.append(took * 1e6)


async def _cost(settings: Settings) -> KdfParams:
    async with start.running(settings) as room:
        return room.kdf_params


def schema(report: Report) -> None:
    """How much SQL every opening of a member's store parses."""
    size = sum(len(sql) for sql in made_by(*MEMBER_BUCKETS).values())
    report.aims.append(
        Aim("schema of a member's store", size / 1024, 80, at_least=False, unit="KiB")
    )
