"""A small note read at once, on the event loop, or not at all."""

from app.bridge.callers import judge
from app.bridge.strongroom import Strongroom
from app.crypto.tokens import Token
from app.db.owner import statements as owner_sql
from app.db.registry import statements as registry_sql
from app.db.runtime.store import LATER
from app.owner.paths import SHARED_MEMORY, PathRef

SCOPE = "memory:read"


def find_note(room: Strongroom, token: Token, ref: PathRef) -> tuple[int, str] | None:
    """The version and text of a note whose caller, store and size allow an answer at once.

    Returns:
        None when any of them does not, for the ordinary way to decide or refuse.

    Raises:
        InvalidCredentialsError: The token does not hold.
        StoreLockedError: It was made without a way to the store.
    """
    row = room.stores.registry.try_one(registry_sql.FIND_CREDENTIAL, session_id=token.id)
    if row is LATER:
        return None
    now = room.clock()
    caller = judge(row, token, now, room.settings.cookie_idle_hours)
    if not caller.has_scope(SCOPE):
        return None
    if ref.root == SHARED_MEMORY:
        store = room.stores.group
    else:
        caller.require_key_way()
        account = caller.account
        found = room.stores.find(account.user_id, account.generation)
        if found is None or account.state != "open":
            return None
        store = found
    note = store.try_one(
        owner_sql.FIND_SMALL_NOTE,
        path=ref.key,
        inline_max=room.settings.inline_note_bytes_max,
    )
    if note is LATER or note is None or note.content is None:
        return None
    if now - caller.last_seen_at >= room.settings.last_seen_every_s * 1000:
        room.seen.note(caller.session_id)
    return note.version, note.content
