-- What is owed to subscribers, written with the change that owes it.

-- Who is told of events: webhooks, and parts of the program itself.
CREATE TABLE sys_subscriptions (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  kind TEXT NOT NULL CHECK (kind IN ('webhook', 'internal')),
  name TEXT UNIQUE,                -- of a part of the program; NULL for a webhook
  url TEXT,                        -- of a webhook; NULL for a part of the program
  secret BLOB,                     -- signs what a webhook is sent; sealed unless the file is under a key
  old_secret BLOB,                 -- signs as well until its time; NULL when there is none
  old_secret_until INTEGER,        -- unix milliseconds UTC
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

CREATE INDEX sys_subscriptions_enabled ON sys_subscriptions (enabled);

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
  is_waiting INTEGER NOT NULL DEFAULT 0 CHECK (is_waiting IN (0, 1)), -- 1: for one before it
  lease_owner TEXT,                -- of the runner; NULL while nobody runs it
  lease_until INTEGER,             -- unix milliseconds UTC
  generation INTEGER NOT NULL DEFAULT 0, -- of the claim; who lost it cannot finish
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  finished_at INTEGER,             -- unix milliseconds UTC; NULL until then
  version INTEGER NOT NULL DEFAULT 1,
  UNIQUE (event_seq, subscription_id)
) STRICT, WITHOUT ROWID;

-- What may be tried: when its time has come, or the lease of a try that nobody ended.
CREATE INDEX sys_deliveries_due
  ON sys_deliveries (subscription_id, coalesce(lease_until, next_attempt_at), event_seq)
  WHERE finished_at IS NULL AND is_waiting = 0 AND held_since IS NULL;
CREATE INDEX sys_deliveries_order ON sys_deliveries (subscription_id, entity, event_seq)
  WHERE finished_at IS NULL;
CREATE INDEX sys_deliveries_held
  ON sys_deliveries (connection, is_waiting, next_attempt_at, event_seq)
  WHERE finished_at IS NULL AND held_since IS NOT NULL;
CREATE INDEX sys_deliveries_of ON sys_deliveries (subscription_id, id);
CREATE INDEX sys_deliveries_done ON sys_deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- One of an entity at a time: kept here, so that no look ever passes over those that wait.
CREATE TRIGGER sys_deliveries_line_up AFTER INSERT ON sys_deliveries WHEN EXISTS (
  SELECT 1 FROM sys_deliveries WHERE subscription_id = NEW.subscription_id
    AND entity = NEW.entity AND event_seq < NEW.event_seq AND finished_at IS NULL
) BEGIN
  UPDATE sys_deliveries SET is_waiting = 1 WHERE id = NEW.id;
END;
CREATE TRIGGER sys_deliveries_move_up AFTER UPDATE OF finished_at ON sys_deliveries
WHEN NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL BEGIN
  UPDATE sys_deliveries SET is_waiting = 0 WHERE id = (
    SELECT id FROM sys_deliveries WHERE subscription_id = NEW.subscription_id
      AND entity = NEW.entity AND finished_at IS NULL ORDER BY event_seq LIMIT 1);
END;
CREATE TRIGGER sys_deliveries_line_up_again AFTER UPDATE OF finished_at ON sys_deliveries
WHEN NEW.finished_at IS NULL AND OLD.finished_at IS NOT NULL BEGIN
  UPDATE sys_deliveries SET is_waiting = status <> 'running' AND EXISTS (
    SELECT 1 FROM sys_deliveries AS before WHERE before.subscription_id = NEW.subscription_id
      AND before.entity = NEW.entity AND before.finished_at IS NULL
      AND (before.event_seq < sys_deliveries.event_seq OR before.status = 'running'))
  WHERE subscription_id = NEW.subscription_id AND entity = NEW.entity AND finished_at IS NULL;
END;

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

CREATE INDEX sys_circuit_breakers_open ON sys_circuit_breakers (opened_at);
