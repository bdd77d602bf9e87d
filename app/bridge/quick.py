"""A small note read at once, on the event loop, or not at all."""

from typing import Final, NamedTuple

from app.bridge.callers import covers, require_live, scopes_of
from app.bridge.stores import OPEN
from app.bridge.strongroom import Strongroom
from app.crypto.tokens import Token
from app.db.owner import statements as owner_sql
from app.db.registry import statements as registry_sql
from app.db.runtime.store import LATER
from app.ids import SessionId
from app.owner.paths import SHARED_MEMORY, PathRef

SCOPE: Final = "memory:read"
"""What a credential must have been made for; the rule of `GET /api/file` says the same."""
_LOOK_S: Final = 0.05
"""Seconds for which a store's file counts as still there."""


class QuickNote(NamedTuple):
    """A note that was at hand."""

    version: int
    content: str


def find_note(room: Strongroom, token: Token, ref: PathRef) -> QuickNote | None:
    """The note whose caller, store and size allow an answer at once.

    The credential is judged by the rule every call is judged by, on a row read anew.

    Returns:
        None when any of them does not, for the ordinary way to decide or refuse.

    Raises:
        InvalidCredentialsError: The token does not hold.
        StoreError: The file is no longer the one that is open.
    """
    stores, settings = room.stores, room.settings
    found = stores.registry.try_one(registry_sql.FIND_QUICK_CREDENTIAL, session_id=token.id)
    if found is LATER:
        return None
    now = room.clock()
    row = require_live(found, token, now, settings.cookie_idle_hours)
    if not covers(scopes_of(row.scopes), SCOPE):
        return None
    if ref.root == SHARED_MEMORY:
        store = stores.group
    else:
        # A credential without a slot is refused whether or not the store happens to be open.
        if (row.encrypted and row.wrapped_dek is None) or row.store_state != OPEN:
            return None
        own = stores.find_opened(row.user_id, row.store_generation)
        if own is None:
            return None
        store = own
    # As the ordinary way does, for whose file is gone or exchanged reads no note; but a look
    # costs as much as the read, so not a thousand times in a second.
    store.handles.require_in_place(_LOOK_S)
    note = store.try_one(
        owner_sql.FIND_SMALL_NOTE, path=ref.key, inline_max=settings.inline_note_bytes_max
    )
    if note is LATER or note is None or note.content is None:
        return None
    if now - row.last_seen_at >= settings.last_seen_every_s * 1000:
        room.seen.note(SessionId(token.id))
    return QuickNote(note.version, note.content)
