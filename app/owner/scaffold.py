"""What a new store begins with: an index that says how notes are kept, and an empty log.

They are notes like any other: whoever deletes them does not get them again, and a store that
was there before them is left as it is.
"""

from typing import Final

from app.db.owner.store import OwnerTransactor
from app.owner.notes import Condition, put_note

INDEX: Final = "index.md"
"""Where people and agents begin to read."""
LOG: Final = "log.md"
"""To which they append, a line for each thing; empty, so that it holds nothing but those."""

_NEW: Final = Condition(must_not_exist=True)

OWN_INDEX: Final = """\
# Index

Your own notes; nobody else can read them. Keep this page short: what there is, and where.

- `log.md`: what happened, one line for each thing, the newest last. Append to it.

Give each subject a note of its own, such as `people/ana.md`, and name it here.
"""

GROUP_INDEX: Final = """\
# Index

The group's notes: every member can read them. Keep this page short: what there is, and where.

- `log.md`: what happened, one line for each thing, the newest last. Append to it.

Give each subject a note of its own, such as `house/heating.md`, and name it here.
"""


def lay_out(tx: OwnerTransactor, author: str, index: str) -> None:
    """Make the first notes of a store that is being made.

    Args:
        tx: The transaction that makes it.
        author: Whose they are: the member's id, or the group's.
        index: The text of the index.
    """
    put_note(tx, INDEX, index, author, _NEW)
    put_note(tx, LOG, "", author, _NEW)
