"""Generated triggers: every tracked change leaves its event, its audit row, what it owes.

A declaration names a table, its entity, and how each field is recorded. From it come
one view, `sys_changes`, whose single INSTEAD OF trigger writes all of them, and three
short triggers a table that insert into it. (Full triggers a table cost three times the
schema text, and SQLite parses all of it on every connection.) What an event owes to subscribers
a trigger on the events writes, so that where nobody subscribes nothing more is asked.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

PREFIX: Final = "sys_track_"
"""Names of all generated triggers begin so; the migration runner drops and remakes them."""
VIEW: Final = "sys_changes"
"""What they insert into."""

DEPTH_MAX: Final = 8
"""Events that a subscriber's own writes cause, one by another; past it nobody is told."""

_NOBODY: Final = "'anonymous', 'strongroom'"
"""Who does nothing to another: whoever signs up, and the program itself."""

_VIEW: Final = f"""
CREATE VIEW {VIEW} (entity, record_id, kind, type, audience, payload, fields, at, salt, member) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE FALSE
"""

# The time and the salt come with the row, for each use of a function asks it anew.
_RECORD: Final = f"""
CREATE TRIGGER {PREFIX}record INSTEAD OF INSERT ON {VIEW} BEGIN
  INSERT INTO sys_events (id, occurred_at, entity_type, entity_id, type, actor_kind, actor_sub,
    acting_for, request_id, trace_id, audience, payload)
  VALUES (sys_new_id(), NEW.at, NEW.entity, NEW.record_id, NEW.type, sys_actor_kind(),
    sys_actor_sub(), sys_acting_for(), sys_request_id(), sys_trace_id(), NEW.audience,
    NEW.payload);
  INSERT INTO sys_audit (entity, record_id, ordinal, occurred_at, kind, actor_kind, actor_sub,
    acting_for, action, request_id, trace_id, fields, salt, fields_digest, row_hash, done_to)
  SELECT NEW.entity, NEW.record_id, o.value, NEW.at, NEW.kind, sys_actor_kind(), sys_actor_sub(),
    sys_acting_for(), sys_action(), sys_request_id(), sys_trace_id(), NEW.fields, NEW.salt,
    sys_fields_digest(NEW.salt, NEW.fields),
    sys_row_hash((SELECT row_hash FROM sys_audit ORDER BY seq DESC LIMIT 1), NEW.entity,
      NEW.record_id, o.value, NEW.at, NEW.kind, sys_actor_kind(), sys_actor_sub(),
      sys_acting_for(), sys_action(), sys_request_id(), sys_trace_id(), NULL,
      sys_fields_digest(NEW.salt, NEW.fields)),
    CASE WHEN NEW.member IS NOT NULL AND sys_actor_sub() NOT IN (NEW.member, {_NOBODY})
      AND sys_acting_for() IS NOT NEW.member THEN NEW.member END
  FROM (SELECT 1 + coalesce(max(ordinal), 0) AS value FROM sys_audit
    WHERE entity = NEW.entity AND record_id = NEW.record_id) AS o;
END
"""  # noqa: S608 - names of this module

_TELL: Final = f"""
CREATE TRIGGER {PREFIX}tell AFTER INSERT ON sys_events
WHEN EXISTS (SELECT 1 FROM sys_subscriptions WHERE enabled = 1) AND sys_depth() <= {DEPTH_MAX} BEGIN
  INSERT INTO sys_outbox (event_seq, event_id, occurred_at, type, entity_type, entity_id, audience,
    payload, trace_id, depth)
  SELECT NEW.seq, NEW.id, NEW.occurred_at, NEW.type, NEW.entity_type, NEW.entity_id, NEW.audience,
    NEW.payload, NEW.trace_id, sys_depth()
  WHERE EXISTS (SELECT 1 FROM sys_subscriptions AS s, json_each(s.event_types) AS t
    WHERE s.enabled = 1 AND NEW.type GLOB t.value);
  INSERT INTO sys_deliveries (id, event_seq, subscription_id, entity, next_attempt_at, created_at)
  SELECT sys_new_id(), NEW.seq, s.id, NEW.entity_type || ':' || NEW.entity_id,
    NEW.occurred_at, NEW.occurred_at FROM sys_subscriptions AS s
  WHERE s.enabled = 1 AND EXISTS (
    SELECT 1 FROM json_each(s.event_types) AS t WHERE NEW.type GLOB t.value);
END
"""  # noqa: S608 - names of this module


@dataclass(frozen=True, slots=True)
class Transition:
    """A change with a name of its own: this column, from NULL to a value."""

    column: str
    name: str


@dataclass(frozen=True, slots=True)
class Tracked:
    """How one table's changes are recorded."""

    table: str
    entity: str
    """The name it is known by for ever, in events and audit."""
    key: tuple[str, ...]
    """Columns of the record's id, joined by `:`."""
    fields: tuple[str, ...]
    """Columns recorded before and after, as they are."""
    content: tuple[str, ...] = ()
    """Columns of which the size alone is recorded."""
    secret: tuple[str, ...] = ()
    """Columns of which only the fact of a change is recorded."""
    payload: tuple[str, ...] = ()
    """Columns that the event carries, as they are after the change."""
    facts: tuple[tuple[str, str], ...] = ()
    """What it carries beside them: a name, and JSON by an SQL expression over `{row}.column`."""
    born: str | None = None
    """The name of the event of a new row, where it is not `created`."""
    transitions: tuple[Transition, ...] = ()
    audience: str = "'admins'"
    """Who may see the event in the group's store: an SQL expression over `{row}.column`."""
    member: str | None = None
    """Column of the member whose it is: what somebody else does to it they find out."""
    watched: tuple[str, ...] = field(init=False)
    """Every column whose change makes an event."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "watched", (*self.fields, *self.content, *self.secret))


def digest(tracked: Sequence[Tracked]) -> str:
    """SHA-256, as hex, of all that a declaration makes: part of the schema's version."""
    return hashlib.sha256("\n".join(statements(tracked)).encode()).hexdigest()


def statements(tracked: Sequence[Tracked]) -> list[str]:
    """All statements that make the triggers, to run in order."""
    made = [_VIEW.strip(), _RECORD.strip(), _TELL.strip()]
    for item in tracked:
        made += [_trigger(item, kind) for kind in _PAST]
    return made


def drop_statements(objects: Sequence[tuple[str, str]]) -> list[str]:
    """Statements that drop every generated object among these `(type, name)` pairs."""
    made = [name for kind, name in objects if kind == "trigger" and name.startswith(PREFIX)]
    views = [name for kind, name in objects if kind == "view" and name == VIEW]
    return [f"DROP TRIGGER {name}" for name in made] + [f"DROP VIEW {name}" for name in views]


_PAST: Final = {"insert": "created", "update": "updated", "delete": "deleted"}


def _trigger(item: Tracked, kind: str) -> str:
    row = "OLD" if kind == "delete" else "NEW"
    when = ""
    if kind == "update":
        when = " WHEN " + " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in item.watched)
    key = " || ':' || ".join(f"{row}.{name}" for name in item.key)
    carried = [f"'{name}', {row}.{name}" for name in item.payload]
    carried += [f"'{name}', json({form.format(row=row)})" for name, form in item.facts]
    pairs = ", ".join(carried)
    values = ", ".join(
        (
            f"'{item.entity}'",
            key,
            f"'{kind}'",
            _type(item, kind),
            item.audience.format(row=row),
            f"json_object({pairs})",
            _fields(item, kind),
            "sys_now_ms()",
            "sys_new_salt()",
            "NULL" if item.member is None else f"{row}.{item.member}",
        )
    )
    name = f"{PREFIX}{item.table}_{kind}"
    return (
        f"CREATE TRIGGER {name} AFTER {kind.upper()} ON {item.table}{when} "  # noqa: S608 - names of the declaration
        f"BEGIN INSERT INTO {VIEW} VALUES ({values}); END"
    )


def _type(item: Tracked, kind: str) -> str:
    plain = f"'{item.entity}.{_PAST[kind]}'"
    if kind == "insert" and item.born is not None:
        return f"'{item.born}'"
    if kind != "update" or not item.transitions:
        return plain
    cases = " ".join(
        f"WHEN OLD.{t.column} IS NULL AND NEW.{t.column} IS NOT NULL THEN '{t.name}'"
        for t in item.transitions
    )
    return f"CASE {cases} ELSE {plain} END"


def _fields(item: Tracked, kind: str) -> str:
    masked = {name: f"octet_length({{row}}.{name})" for name in item.content}
    masked |= {name: f"iif({{row}}.{name} IS NULL, NULL, '[redacted]')" for name in item.secret}
    values = [value for name in item.fields for value in _pair(kind, f"{{row}}.{name}")]
    for name, form in masked.items():
        guard = f"iif(OLD.{name} IS NEW.{name}, NULL, {form})"
        values += _pair(kind, guard if kind == "update" else form)
    names = f"'{','.join(item.fields)}', '{','.join(masked)}'"
    return f"sys_changed_fields({', '.join([names, *values])})"


def _pair(kind: str, form: str) -> tuple[str, str]:
    """The value before and the value after; a row that is made or goes has only one."""
    before = "NULL" if kind == "insert" else form.format(row="OLD")
    after = "NULL" if kind == "delete" else form.format(row="NEW")
    return before, after
