"""The SQL functions by which triggers know who writes, when, and what differs."""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Final

from app.db.context import Actor

Value = str | int | float | bytes | None
"""What a column, a parameter or a function's result can be."""
Function = tuple[str, int, Callable[..., Value]]
"""A deterministic SQL function: name, number of arguments (-1 any), body."""

_to_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

ACTOR_FUNCTIONS: Final[Mapping[str, Callable[[Actor], str | int | None]]] = {
    "sys_actor_kind": attrgetter("kind"),
    "sys_actor_sub": attrgetter("sub"),
    "sys_acting_for": attrgetter("acting_for"),
    "sys_action": attrgetter("action"),
    "sys_request_id": attrgetter("request_id"),
    "sys_trace_id": attrgetter("trace_id"),
    "sys_depth": attrgetter("depth"),
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
    changed = [
        f"{name}:[{_scalar(before)},{_scalar(after)}]"
        for (name, is_masked), (before, after) in zip(_names(plain, masked), pairs, strict=True)
        if (before is not None or after is not None if is_masked else before != after)
    ]
    return f"{{{','.join(changed)}}}"


@lru_cache
def _names(plain: str, masked: str) -> tuple[tuple[str, bool], ...]:
    """Each field as JSON, and whether it is masked; there are as many lists as declarations."""
    told = [(name, False) for name in plain.split(",")] + [
        (name, True) for name in masked.split(",")
    ]
    return tuple((_to_json(name), is_masked) for name, is_masked in told if name)


def _scalar(value: Value) -> str:
    """A value as JSON: what the encoder writes, but it makes itself anew for all but a text."""
    if value is None:
        return "null"
    return str(value) if type(value) is int else _to_json(value)


SALT_BYTES: Final = 16


def new_salt() -> bytes:
    """A salt of one audit row, so that who holds the row's digest cannot guess its fields."""
    return secrets.token_bytes(SALT_BYTES)


def fields_digest(salt: bytes | None, fields: str | None) -> bytes:
    """SHA-256 of a row's salt and fields: what stays of the fields when they are erased."""
    return hashlib.sha256((salt or b"") + (fields or "").encode()).digest()


def row_hash(previous: bytes | None, *skeleton: Value) -> bytes:
    """The hash by which an audit row is chained to the row before it.

    Args:
        previous: The hash of that row; None for the first of a chain.
        skeleton: What is never erased: entity, record_id, ordinal, occurred_at, kind,
            actor_kind, actor_sub, acting_for, action, request_id, trace_id, encoding, and
            the digest of the fields, as bytes.

    Returns:
        SHA-256 of the previous hash and the skeleton as compact JSON, bytes as hex.
    """
    parts = [_scalar(each.hex() if isinstance(each, bytes) else each) for each in skeleton]
    text = f"[{','.join(parts)}]"
    return hashlib.sha256((previous or b"") + text.encode("utf-8", "surrogatepass")).digest()


FOR_TRIGGERS: Final[tuple[Function, ...]] = (
    ("sys_changed_fields", -1, changed_fields),
    ("sys_fields_digest", 2, fields_digest),
    ("sys_row_hash", -1, row_hash),
)
"""What the generated triggers call on every handle."""
