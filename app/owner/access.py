"""Who opened this store: the owner's to read."""

from typing import Literal

from app.clock import Millis
from app.db.owner import statements
from app.db.owner.rows import AccessRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.ids import SessionId
from app.owner.cursor import place_before

Way = Literal["sign_up", "sign_in", "session", "token", "unlock", "recovery"]
Opening = AccessRow
"""One opening of the store."""


def record_access(
    tx: OwnerTransactor,
    way: Way,
    session_id: SessionId | None,
    agent_id: str | None,
    network: str,
) -> None:
    """Record that the store was opened just now.

    Args:
        tx: The store's transaction.
        way: How.
        session_id: The session or token; None for a recovery.
        agent_id: The agent whose token it was; None for a person.
        network: Where from, as the throttle counts it: a /24 or /64.
    """
    tx.run(
        statements.ADD_ACCESS,
        now=tx.now_ms,
        session_id=session_id,
        agent_id=agent_id,
        way=way,
        network=network,
    )


def list_access(reader: OwnerReader, before: int | None, limit: int) -> list[AccessRow]:
    """Openings, newest first.

    Args:
        reader: The store.
        before: The id that ended the page before; None for the newest.
        limit: Most rows to give.

    Returns:
        The rows; fewer than the limit at the end.
    """
    return reader.all(statements.LIST_ACCESS, before=place_before(before), limit=limit)


def prune(tx: OwnerTransactor, before: Millis, limit: int) -> int:
    """Forget openings before a time, oldest first; how many."""
    return len(tx.run(statements.REMOVE_OLD_ACCESS, before=before, limit=limit))
