"""What each kind of file holds, and where it lies."""

from functools import cache
from pathlib import Path
from typing import Final

from app.clock import system_clock
from app.db import files
from app.db.files import Kind
from app.db.owner.store import MEMBER_BUCKETS, OWNER, OWNER_FILE, OWNER_FUNCTIONS
from app.db.registry.store import REGISTRY
from app.db.runtime.store import RUNTIME
from app.ids import UserId, is_uuid

SYSTEM_FILE: Final = 0x53527379
"""`application_id` of system.db: SRsy."""

SYSTEM_LOCK: Final = 0
"""Lock number of system.db; members' begin at 1."""

GROUP: Final = UserId("instance")
"""Owner of the group's own store."""

MEMBER_KIND: Final = Kind(OWNER_FILE, MEMBER_BUCKETS, OWNER_FUNCTIONS)
SYSTEM_KIND: Final = Kind(SYSTEM_FILE, (RUNTIME, REGISTRY, OWNER), OWNER_FUNCTIONS)

LOST_REGISTRY: Final = (
    "{} is missing, and members' stores are beside it: put it back from a backup."
)
"""Of the file's path: without their registry none of them opens."""


def has_members(database: Path) -> bool:
    """Whether there is a member's store in the folder."""
    return any(is_uuid(path.stem) for path in database.glob("*.db"))


@cache
def registry_tables() -> frozenset[str]:
    """Tables that a handle of the group's store must not touch."""
    runtime = files.table_names(SYSTEM_KIND, (RUNTIME,), system_clock)
    return files.table_names(SYSTEM_KIND, (RUNTIME, REGISTRY), system_clock) - runtime


@cache
def owner_tables() -> frozenset[str]:
    """Tables that a handle of the registry must not touch."""
    runtime = files.table_names(SYSTEM_KIND, (RUNTIME,), system_clock)
    return files.table_names(SYSTEM_KIND, (RUNTIME, OWNER), system_clock) - runtime
