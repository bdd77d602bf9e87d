"""What others did to the owner's account: a copy of their own, which nobody else lets go."""

from app.db.owner import statements
from app.db.owner.rows import ActRow, LastActRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.owner.cursor import place_before

Act = ActRow
"""One thing that an administrator, or the operator, did."""


def add_act(tx: OwnerTransactor, **act: str | int | None) -> None:
    """Copy an act; again is no harm.

    Args:
        tx: The store's transaction.
        act: The columns of `account_acts` by name, but for the id.
    """
    tx.run(statements.ADD_ACT, **act)


def find_last(reader: OwnerReader) -> LastActRow | None:
    """The act that was copied last; None while there is none."""
    return reader.one(statements.FIND_LAST_ACT)


def list_acts(reader: OwnerReader, before: int | None, limit: int) -> list[Act]:
    """Acts, newest first.

    Args:
        reader: The store.
        before: The id that ended the page before; None for the newest.
        limit: Most to give.

    Returns:
        They; fewer than the limit at the end.
    """
    return reader.all(statements.LIST_ACTS, before=place_before(before), limit=limit)
