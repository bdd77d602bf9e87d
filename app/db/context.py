"""Who writes, through what: read by the generated triggers through SQL functions."""

from dataclasses import dataclass
from typing import Literal

ActorKind = Literal["human", "service", "system"]


@dataclass(frozen=True, slots=True)
class Actor:
    """The cause of a write, as every event and audit row records it."""

    kind: ActorKind
    """`human`: a session made with a password; `service`: a token; `system`: the program."""
    sub: str
    """User id, `user/agent` of an agent's token, or the name of the program's own part."""
    action: str
    """The operation, as a route template or a name: `PUT /api/file`, `janitor`."""
    acting_for: str | None = None
    """The member on whose behalf a service acts; None for itself."""
    request_id: str | None = None
    """Correlation id of the HTTP request; None outside of one."""
    trace_id: str | None = None
    """W3C trace id; None when the caller sent none."""
    depth: int = 0
    """In a chain of events, each written by a subscriber of the one before; 0 for any other."""


def system_actor(action: str) -> Actor:
    """The program itself, doing the named thing."""
    return Actor(kind="system", sub="strongroom", action=action)
