"""Deliveries as people see and move them: without what they tell."""

from typing import Final

from app.db.runtime import statements as sql
from app.db.runtime.rows import DeliveryRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError
from app.runtime import breakers

Delivery = DeliveryRow
"""One delivery, without what it tells."""

LAST_ID: Final = "~"
"""A text above every id: where a list that is newest first begins."""


def list_all(
    reader: RuntimeReader, before: str, limit: int, status: str | None = None
) -> list[Delivery]:
    """Deliveries of a store, newest first.

    Args:
        reader: Of their store.
        before: Id of the last one seen; LAST_ID begins the list.
        limit: How many.
        status: Only of this status; None for any.

    Returns:
        They.
    """
    return reader.all(sql.LIST_DELIVERIES, before=before, limit=limit, status=status)


def list_of(reader: RuntimeReader, subscription_id: str, before: str, limit: int) -> list[Delivery]:
    """One subscriber's, newest first; as `list_all`."""
    return reader.all(
        sql.LIST_DELIVERIES_OF, subscription_id=subscription_id, before=before, limit=limit
    )


def get(reader: RuntimeReader, delivery_id: str) -> Delivery:
    """One delivery.

    Returns:
        It.

    Raises:
        NotFoundError: There is none.
    """
    row = reader.one(sql.FIND_DELIVERY, id=delivery_id)
    if row is None:
        raise NotFoundError
    return row


def retry(tx: RuntimeTransactor, delivery_id: str) -> None:
    """Try one again at once, from the beginning.

    Raises:
        NotFoundError: There is none.
        ConflictError: It is under way, was taken, or waits for its first try.
    """
    get(tx, delivery_id)
    if not tx.run(sql.RETRY_DELIVERY, id=delivery_id, now=tx.now_ms):
        raise ConflictError


def cancel(tx: RuntimeTransactor, delivery_id: str) -> None:
    """Never try one again. A try under way is not called back.

    Raises:
        NotFoundError: There is none.
        ConflictError: It has ended.
    """
    get(tx, delivery_id)
    if not tx.run(sql.CANCEL_DELIVERY, id=delivery_id, now=tx.now_ms):
        raise ConflictError


def release_held(tx: RuntimeTransactor, delivery_id: str) -> None:
    """Let a held one go at once, as the probe of its connection.

    Raises:
        NotFoundError: There is none.
        ConflictError: Nothing holds it.
    """
    row = get(tx, delivery_id)
    if row.connection is None or not tx.run(sql.RELEASE_PROBE, id=delivery_id, now=tx.now_ms):
        raise ConflictError
    breakers.hurry(tx, row.connection)
