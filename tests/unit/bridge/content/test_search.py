"""Search over the caller's own notes and the group's at once."""

from typing import Final

from app.bridge.callers import Caller
from app.bridge.content import files, notes
from app.bridge.content.notes import SearchScope
from app.bridge.strongroom import Strongroom
from app.owner.notes import Condition
from app.owner.paths import clean
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

_ANY: Final = Condition()
_ALL: Final[SearchScope] = "all"


async def _put(room: Strongroom, caller: Caller, path: str, text: str) -> None:
    await files.put(room, caller, CALL, clean(path), text, _ANY)


def test_neither_store_hides_the_other(rig: Rig) -> None:
    """A word that is rare in one store and in every note of the other counts in both alike.

    By what BM25 alone says of the two the best of one would stand behind the last of the other.
    """

    async def work(room: Strongroom) -> None:
        await add(room, "ana", "admin", encrypted=False)
        ana = await enter(room)
        await _put(room, ana, "user-memory/mine.md", "budget budget budget")
        await _put(room, ana, "user-memory/less.md", f"budget {'of other words ' * 9}")
        for number in range(4):
            await _put(room, ana, f"shared-memory/{number}.md", "budget")
            await _put(room, ana, f"shared-memory/{number}-without.md", "nothing of that")
        found = await notes.search(room, ana, CALL, "budget", _ALL, 3)
        assert found[0].path == "user-memory/mine.md"
        assert {hit.path.split("/")[0] for hit in found} == {"user-memory", "shared-memory"}
        scores = [hit.score for hit in await notes.search(room, ana, CALL, "budget", _ALL, 9)]
        assert scores == sorted(scores, reverse=True)

    rig.run(work)
