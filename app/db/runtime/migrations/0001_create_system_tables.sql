-- The tables that go with every store: what must commit with a write lives in its file.

-- Which migrations made this file; a program that does not know one of them leaves it alone.
CREATE TABLE sys_migrations (
  bucket TEXT NOT NULL,        -- runtime, registry or owner
  number INTEGER NOT NULL,     -- of the migration; 0 for the declaration of tracked tables
  name TEXT NOT NULL,          -- of its file, without the number
  checksum TEXT NOT NULL,      -- SHA-256 of its text, hex
  applied_at INTEGER NOT NULL, -- unix milliseconds UTC
  PRIMARY KEY (bucket, number)
) STRICT, WITHOUT ROWID;

-- One row a tracked change, written by its trigger; rows are only added.
CREATE TABLE sys_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- writes are serialized, so this is commit order
  id TEXT NOT NULL UNIQUE,               -- UUIDv7
  occurred_at INTEGER NOT NULL,          -- unix milliseconds UTC
  project_id TEXT,                       -- bare: projects are in the registry
  entity_type TEXT NOT NULL,             -- as memory_doc
  entity_id TEXT NOT NULL,               -- bare: the row may be gone
  type TEXT NOT NULL,                    -- as memory_doc.updated
  actor_kind TEXT NOT NULL CHECK (actor_kind IN ('human', 'service', 'system')),
  actor_sub TEXT NOT NULL,               -- bare: users are in the registry
  acting_for TEXT,                       -- bare, as actor_sub
  request_id TEXT,                       -- of the HTTP request; NULL outside of one
  trace_id TEXT,                         -- W3C trace id; NULL when the caller sent none
  audience TEXT NOT NULL CHECK (audience IN ('members', 'admins', 'supervisors')), -- of the group's
  payload TEXT NOT NULL CHECK (json_valid(payload)), -- ids and numbers, never content
  encoding INTEGER                       -- form of the payload; NULL is the first
) STRICT;

-- What each tracked change did to its record, written by the same trigger.
CREATE TABLE sys_audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- commit order, as in sys_events
  entity TEXT NOT NULL,                  -- the name it was born with
  record_id TEXT NOT NULL,               -- bare: the row may be gone; parts of a key by `:`
  ordinal INTEGER NOT NULL,              -- place among this record's changes: 1, 2, 3
  occurred_at INTEGER NOT NULL,          -- unix milliseconds UTC
  kind TEXT NOT NULL CHECK (kind IN ('insert', 'update', 'delete')),
  actor_kind TEXT NOT NULL CHECK (actor_kind IN ('human', 'service', 'system')),
  actor_sub TEXT NOT NULL,               -- bare: users are in the registry
  acting_for TEXT,                       -- bare, as actor_sub
  action TEXT NOT NULL,                  -- route template or name of the program's part
  request_id TEXT,                       -- of the HTTP request; NULL outside of one
  trace_id TEXT,                         -- W3C trace id; NULL when the caller sent none
  fields TEXT CHECK (fields IS NULL OR json_valid(fields)), -- {field: [before, after]}
  encoding INTEGER,                      -- form of the fields; NULL is the first
  UNIQUE (entity, record_id, ordinal)
) STRICT;

-- Operations that span files; one that is not finished was left by a crash, or is under way.
CREATE TABLE sys_step_records (
  key TEXT NOT NULL PRIMARY KEY,  -- of one run of an operation
  action TEXT NOT NULL,           -- sign_up, erase, rotate, ...
  subject TEXT NOT NULL,          -- bare: the user it is about
  build TEXT NOT NULL,            -- version of the program that began it
  shape TEXT NOT NULL,            -- names of its steps, in order, by comma
  started_at INTEGER NOT NULL,    -- unix milliseconds UTC
  generation INTEGER NOT NULL DEFAULT 1, -- of the runner; one that lost it cannot write
  diverged INTEGER NOT NULL DEFAULT 0 CHECK (diverged IN (0, 1)), -- steps changed; a person decides
  alerted_at INTEGER,             -- unix milliseconds UTC; NULL until it is told once
  finished_at INTEGER,            -- unix milliseconds UTC; NULL while half-done
  outcome TEXT CHECK (outcome IN ('done', 'undone')) -- NULL while half-done
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_step_records_open ON sys_step_records (started_at) WHERE finished_at IS NULL;

-- What such an operation is about to do, and has done.
CREATE TABLE sys_steps (
  record_key TEXT NOT NULL REFERENCES sys_step_records (key) ON DELETE CASCADE,
  name TEXT NOT NULL,             -- one of the record's shape
  fingerprint TEXT NOT NULL,      -- SHA-256 of what the step was asked, hex
  sent_at INTEGER NOT NULL,       -- unix milliseconds UTC, before it acts
  answered_at INTEGER,            -- unix milliseconds UTC, after it acted
  answer TEXT CHECK (answer IS NULL OR json_valid(answer)), -- ids, counts, digests; never a secret
  PRIMARY KEY (record_key, name)
) STRICT, WITHOUT ROWID;
