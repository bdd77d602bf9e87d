"""The SQL functions by which triggers know who writes, when, and what differs."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final

from app.db.context import Actor

Value = str | int | float | bytes | None
"""What a column, a parameter or a function's result can be."""
Function = tuple[str, int, Callable[..., Value]]
"""A deterministic SQL function: name, number of arguments (-1 any), body."""

ACTOR_FUNCTIONS: Final[Mapping[str, Callable[[Actor], str | None]]] = {
    "sys_actor_kind": lambda actor: actor.kind,
    "sys_actor_sub": lambda actor: actor.sub,
    "sys_acting_for": lambda actor: actor.acting_for,
    "sys_action": lambda actor: actor.action,
    "sys_request_id": lambda actor: actor.request_id,
    "sys_trace_id": lambda actor: actor.trace_id,
}
"""Each answers from the actor of the write under way."""


def changed_fields(plain: str, masked: str, *values: Value) -> str:
    """Write which fields a change touched, as JSON `{field: [before, after]}`.

    Args:
        plain: Names of the fields recorded as they are, by comma.
        masked: Names of those recorded by their size or as redacted, by comma. Two sizes
            can be equal although the text is not, so the trigger gives NULL twice for
            those that did not change.
        values: Before and after of each, in that order.

    Returns:
        An object with the fields that differ; `{}` when none does.
    """
    pairs = zip(values[::2], values[1::2], strict=True)
    fields = chain(_names(plain, masked=False), _names(masked, masked=True))
    return json.dumps(
        {
            name: pair
            for (name, is_masked), pair in zip(fields, pairs, strict=True)
            if (pair != (None, None) if is_masked else pair[0] != pair[1])
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _names(text: str, *, masked: bool) -> Iterator[tuple[str, bool]]:
    return ((name, masked) for name in text.split(",") if name)
