"""Changes that depend on a version: the one that stands must be one of those asked for."""

from app.errors.conflicts import VersionConflictError

Match = frozenset[int] | None
"""The versions of which one must stand; None for any."""


def require_version(present: int, match: Match) -> None:
    """Refuse what was asked of another version than stands.

    Raises:
        VersionConflictError: It was.
    """
    if match is not None and present not in match:
        raise VersionConflictError(present)
