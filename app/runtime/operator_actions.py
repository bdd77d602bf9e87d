"""What operators did by hand: each act with the item's state as it was then."""

import json
from collections.abc import Mapping
from typing import Final

from app.db.runtime import statements as sql
from app.db.runtime.rows import OperatorActionRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor

BOX: Final = "box"
"""The operator who is at the machine, by way of the command line."""


def record(
    tx: RuntimeTransactor,
    action: str,
    item: str,
    state: Mapping[str, str | int | None],
    operator: str,
) -> None:
    """Record one act, in the transaction that does it.

    Args:
        tx: In the store that holds the item.
        action: A noun and a verb, as `job.retry`.
        item: Id of what is acted on.
        state: What it was just before: status, counts, times; never a payload.
        operator: Id of the user, or BOX.
    """
    tx.run(
        sql.ADD_OPERATOR_ACTION,
        id=tx.new_id(),
        action=action,
        item=item,
        item_state=json.dumps(state),
        operator=operator,
        now=tx.now_ms,
    )


def list_of(reader: RuntimeReader, item: str, limit: int) -> list[OperatorActionRow]:
    """The acts on one item, newest first."""
    return reader.all(sql.LIST_OPERATOR_ACTIONS, item=item, limit=limit)
