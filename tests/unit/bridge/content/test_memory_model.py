"""Several agents at the same notes at once: no update is lost, nothing acknowledged is missing.

In two processes of one root, by plain calls and by tools, in a member's own home and in the
group's, with conditions that hold and that do not. This is the kind of fault of a slow writer
whose file takes the place of what others wrote meanwhile, and of both sides being told that all
went well.
"""

import asyncio
import contextlib
import itertools
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.bridge.callers import Caller
from app.bridge.content import notes
from app.bridge.strongroom import Strongroom
from app.db import migrations
from app.db.owner.store import OwnerTransactor
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from tests.support.crowd import AGENTS, DEMANDS, KINDS, Crowd, Deed
from tests.support.matrix import chosen
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

EXAMPLES: Final = chosen([10], [600])[0]
HOMES: Final = (USER_MEMORY, SHARED_MEMORY)
KEYS: Final = st.sampled_from(["a", "b"])
DEEDS: Final = st.builds(
    Deed,
    kind=st.sampled_from(KINDS),
    key=KEYS,
    to=KEYS,
    demand=st.sampled_from(DEMANDS),
    agent=st.integers(1, AGENTS),
    process=st.integers(0, 1),
    by_tool=st.booleans(),
    back=st.integers(0, 5),
)
BATCHES: Final = st.lists(st.lists(DEEDS, min_size=1, max_size=8), min_size=1, max_size=8)
PURGES: Final = st.sets(st.integers(0, 7), max_size=2)
"""After which batches a path is purged."""


def require_sound(tx: OwnerTransactor) -> None:
    """The search index holds just the words of the notes."""
    assert migrations.drifted_indexes(tx._connection) == []


async def two_processes(
    rig: Rig, stack: contextlib.AsyncExitStack
) -> tuple[list[Strongroom], list[Caller]]:
    """Two of them on one root, and its one member signed in at each."""
    rooms = [await stack.enter_async_context(rig.open()) for _ in range(2)]
    await add(rooms[0], "ana", "admin", encrypted=False)
    return rooms, [await enter(room) for room in rooms]


def test_no_update_is_lost_whoever_writes_at_once(rig: Rig) -> None:
    """Every history of several agents has one order, and in it each did what it was told."""
    stack, numbers = contextlib.AsyncExitStack(), itertools.count()
    with asyncio.Runner() as runner:
        rooms, callers = runner.run(two_processes(rig, stack))

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
        @given(batches=BATCHES, purges=PURGES, root=st.sampled_from(HOMES))
        def run(batches: list[list[Deed]], purges: set[int], root: str) -> None:
            crowd = Crowd(root, f"of-{next(numbers)}", rooms, callers)
            for at, deeds in enumerate(batches):
                runner.run(crowd.do(deeds))
                if at in purges:
                    runner.run(crowd.purge(deeds[0].key, deeds[0].process))

        try:
            run()
            for root in HOMES:
                ref = PathRef(root, "")
                runner.run(notes.write(rooms[0], callers[0], CALL, ref, require_sound))
        finally:
            runner.run(stack.aclose())
