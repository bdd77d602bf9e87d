"""What others did to a member's account, as the registry's audit has it."""

from app.db.registry.store import RegistryReader
from app.db.runtime import statements as sql
from app.db.runtime.record_rows import ActRow
from app.ids import UserId

RecordedAct = ActRow
"""One thing that an administrator, or the operator, did: to the account (`user`), its sessions and
tokens (`session`), its keys (`key_slot`), to who may read what is reported on it
(`supervision`), or to what it shares (`shared_folder_member`, `project`, `project_member`)."""


def list_after(reader: RegistryReader, user_id: UserId, seq: int, limit: int) -> list[RecordedAct]:
    """What others did to a member after a place in the record, oldest first.

    Args:
        reader: The registry.
        user_id: The member.
        seq: The place; 0 for the beginning.
        limit: Most to give.

    Returns:
        They; fewer than the limit at the end.
    """
    return reader.all(
        sql.LIST_AUDIT_BY_OTHERS,
        entity="user",
        user_id=user_id,
        edge="supervision",
        # The ids of edges are two users' ids with a colon between.
        edges_after=f"{user_id}:",
        edges_before=f"{user_id};",
        after=seq,
        limit=limit,
    )


def is_recorded(reader: RegistryReader, seq: int, source: str) -> bool:
    """Whether the record has this very row at this place: a restored one may have another."""
    found = reader.one(sql.FIND_AUDIT_SOURCE, seq=seq)
    return found is not None and found.value == source
