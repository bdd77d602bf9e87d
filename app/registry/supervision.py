"""Supervision: who may read what is reported on whom."""

from app.db.registry import statements as sql
from app.db.registry.rows import SupervisionRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError
from app.ids import UserId
from app.registry import accounts


def add(tx: RegistryTransactor, subject: str, supervisor: str) -> None:
    """Let one member read what is reported on another; twice is once.

    Raises:
        NotFoundError: One of them is nobody.
    """
    require_both(tx, subject, supervisor)
    tx.run(sql.ADD_SUPERVISION, subject=subject, supervisor=supervisor, now=tx.now_ms)


def require_both(reader: RegistryReader, subject: str, supervisor: str) -> None:
    """Refuse an edge at one of whose ends is nobody.

    Raises:
        NotFoundError: One of them is nobody.
    """
    accounts.get(reader, subject)
    accounts.get(reader, supervisor)


def remove(tx: RegistryTransactor, subject: str, supervisor: str) -> None:
    """Take that away.

    Raises:
        NotFoundError: There is no such edge.
    """
    if not tx.run(sql.REMOVE_SUPERVISION, subject=subject, supervisor=supervisor):
        raise NotFoundError


def list_page(
    reader: RegistryReader, after_subject: str, after_supervisor: str, limit: int
) -> list[SupervisionRow]:
    """Edges in order, after a given one; `""` is before the first."""
    return reader.all(
        sql.LIST_SUPERVISION,
        after_subject=after_subject,
        after_supervisor=after_supervisor,
        limit=limit,
    )


def subjects_of(reader: RegistryReader, supervisor: UserId) -> frozenset[UserId]:
    """Whom a member supervises now."""
    rows = reader.all(sql.LIST_SUBJECTS, supervisor=supervisor)
    return frozenset(UserId(row.value) for row in rows)
