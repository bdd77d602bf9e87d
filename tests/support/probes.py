"""A small bucket of its own, to try what every bucket goes through."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from app.clock import Clock, Millis
from app.crypto.keys import Key
from app.db import files
from app.db.context import Actor
from app.db.files import Kind
from app.db.migrations import Bucket, Migration
from app.db.runtime.store import RUNTIME
from app.db.sqlite import Connection, Params, RawKey
from app.db.triggers import Tracked, Transition

NOW: Final = Millis(1_700_000_000_000)
KEY: Final = Key(bytes(range(32)))
OTHER_KEY: Final = Key(bytes(32))
RAW: Final = RawKey(KEY.sqlcipher_raw())
OTHER_RAW: Final = RawKey(OTHER_KEY.sqlcipher_raw())
ACTOR: Final = Actor("human", "someone", "PUT /probe", None, "request", "trace")

_SQL: Final = """
-- What is tried.
CREATE TABLE probes (
  id TEXT NOT NULL PRIMARY KEY,
  parent TEXT REFERENCES probes (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  name TEXT,
  body TEXT,
  secret BLOB,
  done_at INTEGER,
  untracked TEXT
) STRICT;

-- What is not tracked.
CREATE TABLE counts (place INTEGER PRIMARY KEY, writer TEXT, number INTEGER) STRICT;
"""

TRACKED: Final = Tracked(
    table="probes",
    entity="probe",
    key=("id",),
    fields=("parent", "name", "done_at"),
    content=("body",),
    secret=("secret",),
    payload=("name",),
    transitions=(Transition("done_at", "probe.done"),),
    audience="CASE {row}.name WHEN 'open' THEN 'members' ELSE 'admins' END",
)

PROBE: Final = Bucket("probe", (Migration(1, "create_probes", _SQL),), (TRACKED,))
KIND: Final = Kind(0x50524F42, (RUNTIME, PROBE))


def clock() -> Millis:
    """A time that stands still."""
    return NOW


def make_store(path: Path, key: Key | None = KEY, kind: Kind = KIND) -> Path:
    """Make a store with nothing in it."""
    files.create(path, key, kind, clock, lambda _: None)
    return path


def open_store(
    path: Path, key: Key | None = KEY, *, reader: bool = False, at: Clock = clock
) -> Connection:
    """Open a guarded handle on a store of this kind."""
    return files.open_handle(path, key, KIND, at, reader=reader)


@contextmanager
def opened(path: Path, key: Key | None = KEY, *, reader: bool = False) -> Iterator[Connection]:
    """Have such a handle, as somebody, for a block."""
    with closing(open_store(path, key, reader=reader)) as connection:
        connection.actor = ACTOR
        yield connection


def changes(connection: Connection) -> int:
    """How many rows a handle has changed since it was opened."""
    return int(connection._raw.total_changes)


def columns(connection: Connection, sql: str, params: Params) -> tuple[str, ...]:
    """The names of a statement's result columns, which it runs; empty when it gives no rows."""
    connection.all(sql, params)
    return tuple(item[0] for item in connection._cursor.description or ())
