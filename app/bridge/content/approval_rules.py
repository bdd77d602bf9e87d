"""The rules by which agents write, as administrators make and change them."""

from collections.abc import Mapping
from typing import Any, Final

from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.db.registry.store import RegistryTransactor
from app.registry import approval_rules
from app.registry.approval_rules import NewRule, Rule
from app.runtime.versions import Match

_FIELDS: Final = tuple(NewRule.__dataclass_fields__)


async def add(room: Strongroom, caller: Caller, call: Call, new: NewRule) -> Rule:
    """Make a rule; it holds from the next write on.

    Returns:
        It.

    Raises:
        InvalidInputError: It names tools or a group that do not exist, or there are too many.
    """
    return await room.stores.registry.write(
        lambda tx: approval_rules.add(tx, new), caller.actor(call), once=call.once
    )


async def change(  # noqa: PLR0913, PLR0917 - who, which, what, if
    room: Strongroom,
    caller: Caller,
    call: Call,
    rule_id: str,
    changes: Mapping[str, Any],
    match: Match,
) -> Rule:
    """Have a rule say something else; what is left out stays.

    Returns:
        It.

    Raises:
        NotFoundError: There is none.
        VersionConflictError: It stands at another version than was asked for.
        InvalidInputError: It names tools or a group that do not exist.
    """

    def write(tx: RegistryTransactor) -> Rule:
        present = approval_rules.get(tx, rule_id)
        said = {name: getattr(present, name) for name in _FIELDS} | dict(changes)
        return approval_rules.change(tx, rule_id, NewRule(**said), match)

    return await room.stores.registry.write(write, caller.actor(call), once=call.once)


async def remove(room: Strongroom, caller: Caller, call: Call, rule_id: str, match: Match) -> None:
    """Take a rule away.

    Raises:
        NotFoundError: There is none.
        VersionConflictError: It stands at another version than was asked for.
    """
    await room.stores.registry.write(
        lambda tx: approval_rules.remove(tx, rule_id, match), caller.actor(call), once=call.once
    )
