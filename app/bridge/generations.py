"""Which of the stores unlocked in a process must be let go there."""

import json

from app.bridge.stores import OPEN, Stores
from app.db.registry import statements as sql
from app.ids import UserId


async def find_changed(stores: Stores) -> list[UserId]:
    """Find the stores unlocked here that were taken, changed or closed to their member since.

    Asks the registry one question, and none when nothing is unlocked.

    Returns:
        Members whose row is gone or inactive, has another generation, or is out of service.
    """
    unlocked = stores.unlocked()
    if not unlocked:
        return []
    wanted = json.dumps(list(unlocked))
    rows = await stores.registry.read(
        lambda reader: reader.all(sql.LIST_GENERATIONS, user_ids=wanted)
    )
    unchanged = {
        row.id
        for row in rows
        if row.active
        and row.store_state == OPEN
        and row.store_generation == unlocked[row.id].account.generation
    }
    return [user_id for user_id in unlocked if user_id not in unchanged]
