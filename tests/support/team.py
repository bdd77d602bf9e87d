"""A shared folder with members of every kind, on a rig."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.bridge.callers import Caller
from app.bridge.content import files, shared_folders
from app.bridge.strongroom import Strongroom
from app.owner.notes import Condition, Written
from app.owner.paths import clean
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

ANY: Final = Condition()
NEW: Final = Condition(must_not_exist=True)


@dataclass
class Team:
    """A folder in which two write and one reads, and one who is not in it."""

    room: Strongroom
    folder: Path
    ana: Caller
    ben: Caller
    cyd: Caller
    eve: Caller

    async def put(self, path: str, text: str, condition: Condition = ANY) -> Written:
        """As one who may."""
        made = await files.put(self.room, self.ben, CALL, clean(path), text, condition)
        assert isinstance(made, Written)
        return made

    async def read(self, path: str) -> str:
        """As the other."""
        return (await files.get(self.room, self.ana, CALL, clean(path))).content

    async def keys(self, path: str = "shared/team", depth: int = 9) -> list[str]:
        """What is listed."""
        found = await files.list_folder(self.room, self.ana, CALL, clean(path), depth)
        return [entry.path for entry in found]

    async def delete(self, path: str, *, recursive: bool = False) -> object:
        """As one who may."""
        return await files.delete(self.room, self.ben, CALL, clean(path), ANY, recursive=recursive)

    async def move(self, path: str, to: str, *, recursive: bool = False) -> object:
        """Likewise."""
        return await files.move(
            self.room, self.ben, CALL, clean(path), clean(to), ANY, recursive=recursive
        )


@contextlib.asynccontextmanager
async def team_in(room: Strongroom) -> AsyncIterator[Team]:
    """Make them.

    Yields:
        The folder and all four.
    """
    for name in ("ana", "ben", "cyd", "eve"):
        await add(room, name, "admin" if name == "ana" else "member", encrypted=False)
    ana, ben, cyd, eve = [await enter(room, name) for name in ("ana", "ben", "cyd", "eve")]
    made = await shared_folders.add(room, ana, CALL, "Team", "of all")
    for member, can_write in ((ana, True), (ben, True), (cyd, False)):
        await shared_folders.set_member(
            room, ana, CALL, made.id, member.user_id, can_write=can_write
        )
    yield Team(room, room.settings.disk_root("shared", made.id), ana, ben, cyd, eve)


Work = Callable[[Team], Awaitable[None]]


def run_team(rig: Rig, work: Work) -> None:
    """Do something with them in one process, to its end."""

    async def main(room: Strongroom) -> None:
        async with team_in(room) as team:
            await work(team)

    rig.run(main)
