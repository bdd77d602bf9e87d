"""An owner's store: a member's file, or the group's face of system.db."""

from app.db.migrations import Bucket, load
from app.db.owner.search_text import fts_text
from app.db.owner.tracking import TRACKED
from app.db.runtime.store import RUNTIME, RuntimeReader, RuntimeStore, RuntimeTransactor
from app.db.sqlite import Function

OWNER = Bucket("owner", load("app.db.owner"), TRACKED)
"""The bucket of one owner's content."""

MEMBER_BUCKETS = (RUNTIME, OWNER)
"""What a member's file holds."""

OWNER_FUNCTIONS: tuple[Function, ...] = (("fts_text", 1, fts_text),)
"""What the search index needs on every handle, checks included."""

FORMAT = 1
"""Of a store's file as a whole, in its identity row."""

OWNER_FILE = 0x53526F77
"""`application_id` of a member's file: SRow."""


class OwnerReader(RuntimeReader):
    """Reads one owner's store."""

    __slots__ = ()


class OwnerTransactor(RuntimeTransactor, OwnerReader):
    """Reads and writes one owner's store, in one transaction."""

    __slots__ = ()


OwnerStore = RuntimeStore[OwnerReader, OwnerTransactor]
"""One owner's store, asynchronously."""
