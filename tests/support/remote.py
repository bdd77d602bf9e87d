"""A mortal process that is a process: it dies by SIGKILL, of its own hand or another's.

python -m tests.support.remote ROOT LEDGER CHOSEN

is told by lines what to do, and answers each with a line. What is under way it writes into
the ledger's file, which survives it.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from typing_extensions import override

from app.db.owner.store import OwnerStore
from app.project import PROJECT_FOLDER
from app.settings import Settings
from tests.support.forecast import Watcher
from tests.support.mortal import HOMES, Home, Ledger, Mortal, Outside
from tests.support.rig import Rig
from tests.support.stores import MovedClock

_KEPT_BYTES: Final = 1 << 20


def ledger_file(root: Path) -> Path:
    """Where the processes of a root write what they have under way."""
    return root.with_name(f"{root.name}.ledger")


class LedgerFile(Ledger):
    """A process's own: one line for whatever begins and ends, in the order that all of them do."""

    def __init__(self, outside: Outside, path: Path) -> None:
        super().__init__(outside)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @override
    def begin(self, name: str, of: object) -> None:
        """Write that something begins."""
        os.write(self._fd, f"begin {name} {of}\n".encode())

    @override
    def end(self, name: str, of: object) -> None:
        """Write that it is over."""
        os.write(self._fd, f"end {name} {of}\n".encode())


class Reader:
    """Brings what stands in the file into the ledger of who tests."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def read(self, ledger: Ledger) -> None:
        """Whatever came since."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                self._at += len(line)
                act, name, of = line.decode().split()
                (ledger.begin if act == "begin" else ledger.end)(name, of)


_READERS: Final[WeakKeyDictionary[Ledger, Reader]] = WeakKeyDictionary()
"""One for all processes together."""


class Remote(Mortal):
    """One process, as it is known from outside."""

    def __init__(self, rig: Rig, outside: Outside, ledger: Ledger) -> None:
        super().__init__(rig, outside, ledger)
        self._reader = _READERS.setdefault(ledger, Reader(ledger_file(rig.settings.root)))
        self._homes: list[Home] = []
        self._watchers: dict[Home, tuple[int, int | None]] = {}
        self._began_at = rig.clock()

    @override
    async def begin(self) -> None:
        """Start it."""
        settings = self._rig.settings
        chosen = settings.model_dump_json(exclude={"root"})
        root = str(settings.root)
        self._process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "tests.support.remote", root, chosen],
            cwd=PROJECT_FOLDER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_KEPT_BYTES,
        )
        self.name = str(self._process.pid)
        await self._ask("begin")

    async def _ask(self, act: str) -> None:
        """Have it do something; it may die of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {
            "act": act,
            "now": self._rig.clock(),
            "gate_is_open": self._outside.gate_is_open,
            "modes": self._outside.modes,
            "fuse": self.fuse,
        }
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        line = await self._process.stdout.readline()
        self._reader.read(self._ledger)
        if not line:
            self.is_dead = True
            return
        found = json.loads(line)
        if act == "end":
            return
        self.owners = set(found["owners"])
        self.parked, self.trying = Counter(found["parked"]), Counter(found["trying"])
        self._homes, self._watchers = found["homes"], found["watchers"]

    @override
    def store(self, home: Home) -> OwnerStore | None:
        """None of it is here."""
        return None

    @override
    def has(self, home: Home) -> bool:
        """Whether it can work in a store, as far as known."""
        return home in self._homes

    @override
    def watcher(self, home: Home) -> Watcher | None:
        """Since when it looks for ticks in a store; None when it does not."""
        found = self._watchers.get(home)
        return None if found is None else Watcher(*found)

    @override
    async def unlock(self) -> None:
        """Have the member sign in."""
        await self._ask("unlock")

    @override
    async def lock(self) -> None:
        """Have the member's store locked there."""
        await self._ask("lock")

    @override
    async def tick(self) -> None:
        """Have it look for ticks, once."""
        for home in self._homes:
            # It may die before it says so itself.
            began_at = None if home == "group" else self._began_at
            self._watchers.setdefault(home, (self._rig.clock(), began_at))
        await self._ask("tick")

    @override
    async def refresh(self) -> None:
        """Tell it the time, and hear what it does."""
        await self._ask("look")

    @override
    def die(self) -> None:
        """Kill it."""
        self.is_dead = True
        self._process.kill()

    @override
    async def end(self) -> None:
        """Stop it in order, unless it is dead."""
        if not self.is_dead:
            await self._ask("end")
        await self._process.wait()


class _Told(Mortal):
    """The process itself."""

    @override
    def die(self) -> None:
        """Be killed."""
        os.kill(os.getpid(), signal.SIGKILL)

    def found(self) -> dict[str, Any]:
        """How it stands."""
        watchers = {home: self.watcher(home) for home in HOMES}
        return {
            "owners": sorted(self.owners),
            "parked": dict(+self.parked),
            "trying": dict(+self.trying),
            "homes": [home for home in HOMES if self.has(home)],
            "watchers": {home: one for home, one in watchers.items() if one is not None},
        }


class _Standing(Rig):
    """A root that stands already."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = MovedClock()


async def _serve(root: Path, chosen: str) -> None:
    rig = _Standing(Settings.model_validate({"root": root, **json.loads(chosen)}))
    outside = Outside()
    worker = _Told(rig, outside, LedgerFile(outside, ledger_file(root)))
    worker.name = str(os.getpid())
    acts = {
        "begin": worker.begin,
        "unlock": worker.unlock,
        "lock": worker.lock,
        "tick": worker.tick,
        "look": worker.refresh,
        "end": worker.end,
    }
    act = ""
    while act != "end":
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            return
        order = json.loads(line)
        act = order["act"]
        rig.clock.now_ms, worker.fuse = order["now"], order["fuse"]
        outside.gate_is_open, outside.modes = order["gate_is_open"], order["modes"]
        await acts[act]()
        print(json.dumps({} if act == "end" else worker.found()), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2]))
