"""Which of the stores unlocked in a process must be let go there."""

import json

from app.bridge.stores import OPEN, Stores, UnlockedStore
from app.db.registry import statements as sql
from app.ids import UserId


class Generations:
    """Looks at the registry for changes of the stores unlocked in a process, many times a second.

    Asks it nothing when nothing is unlocked, or when nobody committed since it last found
    every store of now unchanged.
    """

    def __init__(self, stores: Stores) -> None:
        """Have looked at none.

        Args:
            stores: Of this process.
        """
        self._stores = stores
        self._unchanged: set[UnlockedStore] = set()

    async def find_changed(self) -> list[UserId]:
        """Find the stores that were taken, changed or closed to their member.

        Returns:
            Members whose row is gone or inactive, has another generation, or is out of service;
            at each call, until their stores are let go.
        """
        unlocked = self._stores.unlocked()
        if not unlocked:
            return []
        # Asked in any case: what is committed from here on is news at the next call.
        has_news = self._stores.registry.has_news()
        if not has_news and self._unchanged.issuperset(unlocked.values()):
            return []
        self._unchanged.clear()  # until the answer is there
        wanted = json.dumps(list(unlocked))
        rows = await self._stores.registry.read(
            lambda reader: reader.all(sql.LIST_GENERATIONS, user_ids=wanted)
        )
        self._unchanged.update(
            unlocked[row.id]
            for row in rows
            if row.active
            and row.store_state == OPEN
            and row.store_generation == unlocked[row.id].account.generation
        )
        return [user_id for user_id, each in unlocked.items() if each not in self._unchanged]
