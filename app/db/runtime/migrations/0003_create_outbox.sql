-- What is owed to subscribers, written with the change that owes it.

-- Who is told of events: webhooks, and parts of the program itself.
CREATE TABLE sys_subscriptions (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  kind TEXT NOT NULL CHECK (kind IN ('webhook', 'internal')),
  name TEXT UNIQUE,                -- of a part of the program; NULL for a webhook
  url TEXT,                        -- of a webhook; NULL for a part of the program
  secret TEXT,                     -- signs what a webhook is sent; NULL for a part of the program
  event_types TEXT NOT NULL CHECK (json_valid(event_types)), -- array of names or GLOB patterns
  include_content INTEGER NOT NULL DEFAULT 0 CHECK (include_content IN (0, 1)),
  enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  disabled_reason TEXT,            -- a code; NULL while enabled, or when a person disabled it
  description TEXT,
  made_by TEXT NOT NULL,           -- bare: whose rights it has, in the group's store
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1,
  CHECK (iif(kind = 'webhook', url IS NOT NULL AND secret IS NOT NULL, name IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- One row an event that somebody subscribes to; what of it is told, as it was then.
CREATE TABLE sys_outbox (
  event_seq INTEGER PRIMARY KEY,   -- of sys_events
  event_id TEXT NOT NULL UNIQUE,   -- of sys_events, which may be pruned meanwhile
  occurred_at INTEGER NOT NULL,    -- unix milliseconds UTC
  type TEXT NOT NULL,              -- as memory_doc.updated
  entity_type TEXT NOT NULL,       -- as memory_doc
  entity_id TEXT NOT NULL,         -- bare: the row may be gone
  audience TEXT NOT NULL,          -- of the group's, as in sys_events
  payload TEXT NOT NULL CHECK (json_valid(payload)), -- as in sys_events
  encoding INTEGER,                -- form of the payload; NULL is the first
  trace_id TEXT,                   -- W3C trace id; NULL when the caller sent none
  depth INTEGER NOT NULL           -- 0 for a change by a caller, else one more than its cause
) STRICT;

-- One row an event and subscriber.
CREATE TABLE sys_deliveries (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7; the same at every try
  event_seq INTEGER NOT NULL REFERENCES sys_outbox (event_seq) ON DELETE CASCADE,
  subscription_id TEXT NOT NULL REFERENCES sys_subscriptions (id) ON DELETE CASCADE,
  entity TEXT NOT NULL,            -- type and id by `:`; a subscriber is told of it in order
  status TEXT NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'running', 'retry', 'held', 'succeeded', 'dead', 'cancelled')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL, -- unix milliseconds UTC
  last_failure TEXT,               -- a class of failure, never a body
  last_status INTEGER,             -- HTTP status of the last answer; NULL when there was none
  connection TEXT,                 -- scheme, host and port, while its breaker holds it
  held_since INTEGER,              -- unix milliseconds UTC; NULL while not held
  lease_owner TEXT,                -- of the runner; NULL while nobody runs it
  lease_until INTEGER,             -- unix milliseconds UTC
  generation INTEGER NOT NULL DEFAULT 0, -- of the claim; who lost it cannot finish
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  finished_at INTEGER,             -- unix milliseconds UTC; NULL until then
  version INTEGER NOT NULL DEFAULT 1,
  UNIQUE (event_seq, subscription_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_deliveries_open ON sys_deliveries (next_attempt_at, event_seq)
  WHERE finished_at IS NULL;
CREATE INDEX sys_deliveries_order ON sys_deliveries (subscription_id, entity, event_seq)
  WHERE finished_at IS NULL;
CREATE INDEX sys_deliveries_done ON sys_deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- Deliveries whose effect is in this store: written with it, so none has two.
CREATE TABLE sys_handled_deliveries (
  delivery_id TEXT NOT NULL PRIMARY KEY, -- bare: the delivery may be in another file
  subscriber TEXT NOT NULL,
  handled_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

-- One row a connection that failed of late; none is closed and well.
CREATE TABLE sys_circuit_breakers (
  connection TEXT NOT NULL PRIMARY KEY, -- scheme, host and port
  state TEXT NOT NULL CHECK (state IN ('closed', 'open', 'probing')),
  failures INTEGER NOT NULL,       -- in a row
  pauses INTEGER NOT NULL DEFAULT 0, -- since it opened; sets how long the next one is
  opened_at INTEGER,               -- unix milliseconds UTC; NULL while closed
  next_probe_at INTEGER,           -- unix milliseconds UTC; NULL while closed
  alerted_at INTEGER,              -- unix milliseconds UTC; NULL until it is told once
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;
