"""What of the system tables is tracked: nothing, they are the record itself."""

from app.db.triggers import Tracked

TRACKED: tuple[Tracked, ...] = ()
