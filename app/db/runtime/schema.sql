-- Made by scripts/schema from the migrations; a test holds the two equal.

CREATE TABLE sys_migrations (
  bucket TEXT NOT NULL,        -- runtime, registry or owner
  number INTEGER NOT NULL,     -- of the migration; 0 for the declaration of tracked tables
  name TEXT NOT NULL,          -- of its file, without the number
  checksum TEXT NOT NULL,      -- SHA-256 of its text, hex
  applied_at INTEGER NOT NULL, -- unix milliseconds UTC
  PRIMARY KEY (bucket, number)
) STRICT, WITHOUT ROWID;

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
  encoding INTEGER, salt BLOB, fields_digest BLOB, row_hash BLOB, done_to TEXT,                      -- form of the fields; NULL is the first
  UNIQUE (entity, record_id, ordinal)
) STRICT;

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

CREATE TABLE sys_steps (
  record_key TEXT NOT NULL REFERENCES sys_step_records (key) ON DELETE CASCADE,
  name TEXT NOT NULL,             -- one of the record's shape
  fingerprint TEXT NOT NULL,      -- SHA-256 of what the step was asked, hex
  sent_at INTEGER NOT NULL,       -- unix milliseconds UTC, before it acts
  answered_at INTEGER,            -- unix milliseconds UTC, after it acted
  answer TEXT CHECK (answer IS NULL OR json_valid(answer)), -- ids, counts, digests; never a secret
  PRIMARY KEY (record_key, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_audit_when ON sys_audit (occurred_at) WHERE fields IS NOT NULL;

CREATE TABLE sys_audit_checkpoints (
  through_seq INTEGER PRIMARY KEY, -- the last row removed
  row_hash BLOB NOT NULL,          -- its hash, on which the next row's builds
  removed INTEGER NOT NULL,        -- how many rows went with it
  created_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT;

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

CREATE TRIGGER sys_deliveries_line_up AFTER INSERT ON sys_deliveries WHEN EXISTS (
  SELECT 1 FROM sys_deliveries WHERE subscription_id = NEW.subscription_id
    AND entity = NEW.entity AND event_seq < NEW.event_seq AND finished_at IS NULL
) BEGIN
  UPDATE sys_deliveries SET is_waiting = 1 WHERE id = NEW.id;
END;

CREATE TRIGGER sys_deliveries_line_up_again AFTER UPDATE OF finished_at ON sys_deliveries
WHEN NEW.finished_at IS NULL AND OLD.finished_at IS NOT NULL BEGIN
  UPDATE sys_deliveries SET is_waiting = status <> 'running' AND EXISTS (
    SELECT 1 FROM sys_deliveries AS before WHERE before.subscription_id = NEW.subscription_id
      AND before.entity = NEW.entity AND before.finished_at IS NULL
      AND (before.event_seq < sys_deliveries.event_seq OR before.status = 'running'))
  WHERE subscription_id = NEW.subscription_id AND entity = NEW.entity AND finished_at IS NULL;
END;

CREATE TABLE sys_handled_deliveries (
  delivery_id TEXT NOT NULL PRIMARY KEY, -- bare: the delivery may be in another file
  subscriber TEXT NOT NULL,
  handled_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

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

CREATE TABLE sys_jobs (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  kind TEXT NOT NULL CHECK (kind <> ''),
  is_outside INTEGER NOT NULL CHECK (is_outside IN (0, 1)), -- 1: programs outside are its workers
  payload TEXT NOT NULL CHECK (json_valid(payload)),
  encoding INTEGER,                -- form of the payload; NULL is the first
  dedupe_key TEXT CHECK (dedupe_key <> ''), -- NULL: may be there any number of times
  status TEXT NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'running', 'done', 'dead', 'cancelled')),
  priority INTEGER NOT NULL DEFAULT 0, -- higher first among those that are due
  run_at INTEGER NOT NULL,         -- unix milliseconds UTC; not before
  attempts INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER CHECK (max_attempts > 0), -- NULL: as many as the setting says
  timeout_s INTEGER,               -- seconds of one attempt; NULL: no bound but the lease
  lease_owner TEXT,                -- of the runner; NULL while nobody runs it
  lease_until INTEGER,             -- unix milliseconds UTC
  claimed_at INTEGER,              -- unix milliseconds UTC; begin of the last attempt
  generation INTEGER NOT NULL DEFAULT 0, -- of the claim; who lost it can write nothing
  last_error TEXT,                 -- a code or the worker's own words; never a payload
  result TEXT CHECK (result IS NULL OR json_valid(result)),
  made_by TEXT NOT NULL,           -- bare: users are in the registry
  schedule_id TEXT,                -- bare: the schedule that ticked; NULL for any other
  depth INTEGER NOT NULL DEFAULT 0, -- in its chain of causes, as in sys_outbox
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  finished_at INTEGER,             -- unix milliseconds UTC; NULL until then
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX sys_jobs_dedupe ON sys_jobs (is_outside, dedupe_key)
  WHERE finished_at IS NULL AND dedupe_key IS NOT NULL;

CREATE INDEX sys_jobs_due ON sys_jobs (is_outside, run_at) WHERE status = 'pending';

CREATE INDEX sys_jobs_order ON sys_jobs (is_outside, priority DESC, run_at, id)
  WHERE status = 'pending';

CREATE INDEX sys_jobs_leased ON sys_jobs (lease_until) WHERE status = 'running';

CREATE INDEX sys_jobs_finished ON sys_jobs (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE sys_store_keys (
  name TEXT NOT NULL PRIMARY KEY,  -- what it is for
  key BLOB NOT NULL CHECK (octet_length(key) = 32) -- random bytes, made with the store
) STRICT, WITHOUT ROWID;

CREATE TABLE sys_idempotency_keys (
  caller TEXT NOT NULL,            -- bare: the user, and the agent after `/`
  key TEXT NOT NULL,               -- as the caller chose it
  route TEXT NOT NULL,             -- method and template
  body_mac BLOB NOT NULL,          -- HMAC-SHA-256 of the whole request, under `request_body`
  state TEXT NOT NULL CHECK (state IN ('in_progress', 'done')),
  operation TEXT,                  -- bare: what settles it while in progress; NULL for one write
  status INTEGER,                  -- HTTP status of the answer; NULL while it is not known
  headers TEXT CHECK (headers IS NULL OR json_valid(headers)), -- those that are part of it
  body BLOB,                       -- of the answer; NULL when it is not kept
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  expires_at INTEGER NOT NULL,     -- unix milliseconds UTC
  PRIMARY KEY (caller, key),
  CHECK (state = 'in_progress' OR status IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_idempotency_keys_expiry ON sys_idempotency_keys (expires_at);

CREATE INDEX sys_idempotency_keys_open ON sys_idempotency_keys (operation)
  WHERE state = 'in_progress';

CREATE TABLE sys_schedules (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  name TEXT NOT NULL,
  cron TEXT,                       -- five fields; NULL when it goes by an interval
  interval_s INTEGER CHECK (interval_s > 0), -- seconds; NULL when it goes by cron
  timezone TEXT NOT NULL DEFAULT 'UTC', -- IANA name, by which cron is read
  kind TEXT NOT NULL,              -- of the job
  is_outside INTEGER NOT NULL CHECK (is_outside IN (0, 1)), -- as in sys_jobs
  payload TEXT NOT NULL CHECK (json_valid(payload)), -- of the job; each tick adds which it is
  catch_up TEXT NOT NULL CHECK (catch_up IN ('skip', 'once', 'all')),
  enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  single_run INTEGER NOT NULL DEFAULT 0 CHECK (single_run IN (0, 1)), -- 1: over after its first run
  next_due_at INTEGER,             -- unix milliseconds UTC; NULL: never again
  last_due_at INTEGER,             -- unix milliseconds UTC; NULL before the first tick
  last_tick_at INTEGER,            -- unix milliseconds UTC; when that was settled
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC; of its definition, not of its ticks
  version INTEGER NOT NULL DEFAULT 1,
  CHECK (cron IS NOT NULL OR interval_s IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_schedules_due ON sys_schedules (next_due_at) WHERE next_due_at IS NOT NULL;

CREATE INDEX sys_schedules_enabled ON sys_schedules (next_due_at) WHERE enabled = 1;

CREATE TABLE sys_schedule_runs (
  schedule_id TEXT NOT NULL,       -- bare: its history outlives it
  due_at INTEGER NOT NULL,         -- unix milliseconds UTC
  by_hand INTEGER NOT NULL DEFAULT 0 CHECK (by_hand IN (0, 1)), -- 1: a person's, and no tick
  ticks INTEGER NOT NULL DEFAULT 1 CHECK (ticks > 0), -- those it stands for; of a run, one
  last_due_at INTEGER NOT NULL,    -- unix milliseconds UTC; the last of them
  outcome TEXT NOT NULL CHECK (outcome IN ('run', 'skip')),
  reason TEXT CHECK (reason IN ('overlap', 'down', 'disabled', 'locked')), -- of a skip
  job_id TEXT,                     -- of a run
  ticked_at INTEGER NOT NULL,      -- unix milliseconds UTC
  PRIMARY KEY (schedule_id, due_at, by_hand),
  CHECK (iif(outcome = 'run', job_id, reason) IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_schedule_runs_when ON sys_schedule_runs (ticked_at);

CREATE INDEX sys_jobs_of_schedule ON sys_jobs (schedule_id)
  WHERE finished_at IS NULL AND schedule_id IS NOT NULL;

CREATE TABLE sys_housekeeping (
  name TEXT NOT NULL PRIMARY KEY,  -- of the round
  lease_owner TEXT,                -- NULL while nobody is at it
  lease_until INTEGER,             -- unix milliseconds UTC
  generation INTEGER NOT NULL DEFAULT 0, -- of the round; who lost it can write nothing
  last_started_at INTEGER,         -- unix milliseconds UTC
  last_completed_at INTEGER,       -- unix milliseconds UTC; moves only at the end of a round
  removed INTEGER NOT NULL DEFAULT 0 -- rows and files of the last whole round
) STRICT, WITHOUT ROWID;

CREATE TABLE sys_operator_actions (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  acted_at INTEGER NOT NULL,       -- unix milliseconds UTC
  action TEXT NOT NULL,            -- as job.retry
  item TEXT NOT NULL,              -- bare: id of what was acted on
  item_state TEXT NOT NULL CHECK (json_valid(item_state)), -- as it was then; never a payload
  operator TEXT NOT NULL           -- bare: user id, or `box` for who is at the machine
) STRICT, WITHOUT ROWID;

CREATE TABLE sys_files (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  name TEXT NOT NULL UNIQUE,       -- of the file, random
  key BLOB NOT NULL CHECK (octet_length(key) = 32), -- of its content alone
  digest BLOB NOT NULL UNIQUE,     -- HMAC-SHA-256 of the content, under the store's `file_content`
  size_bytes INTEGER NOT NULL,     -- of the content
  refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0), -- fields that hold it, by triggers
  unreferenced_since INTEGER,      -- unix milliseconds UTC; NULL while some field holds it
  encoding INTEGER,                -- form of the file; NULL is the first
  created_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_files_unreferenced ON sys_files (unreferenced_since)
  WHERE unreferenced_since IS NOT NULL;

CREATE INDEX sys_audit_done_to ON sys_audit (done_to, seq) WHERE done_to IS NOT NULL;

CREATE TRIGGER sys_deliveries_move_up AFTER UPDATE OF finished_at ON sys_deliveries
WHEN NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND NOT EXISTS (
  SELECT 1 FROM sys_deliveries WHERE subscription_id = NEW.subscription_id
    AND entity = NEW.entity AND finished_at IS NULL AND is_waiting = 0
) BEGIN
  UPDATE sys_deliveries SET is_waiting = 0 WHERE id = (
    SELECT id FROM sys_deliveries WHERE subscription_id = NEW.subscription_id
      AND entity = NEW.entity AND finished_at IS NULL ORDER BY event_seq LIMIT 1);
END;

CREATE VIEW sys_changes (entity, record_id, kind, type, audience, payload, fields, at, salt, member) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE FALSE;

CREATE TRIGGER sys_track_record INSTEAD OF INSERT ON sys_changes BEGIN
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
    CASE WHEN NEW.member IS NOT NULL AND sys_actor_sub() NOT IN (NEW.member, 'anonymous', 'strongroom')
      AND sys_acting_for() IS NOT NEW.member THEN NEW.member END
  FROM (SELECT 1 + coalesce(max(ordinal), 0) AS value FROM sys_audit
    WHERE entity = NEW.entity AND record_id = NEW.record_id) AS o;
END;

CREATE TRIGGER sys_track_tell AFTER INSERT ON sys_events
WHEN EXISTS (SELECT 1 FROM sys_subscriptions WHERE enabled = 1) AND sys_depth() <= 8 BEGIN
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
END;

CREATE TRIGGER sys_track_sys_subscriptions_insert AFTER INSERT ON sys_subscriptions BEGIN INSERT INTO sys_changes VALUES ('subscription', NEW.id, 'insert', 'subscription.created', 'admins', json_object('kind', NEW.kind, 'enabled', NEW.enabled, 'made_by', NEW.made_by), sys_changed_fields('kind,name,event_types,include_content,enabled,disabled_reason,made_by', 'url,description,secret,old_secret', NULL, NEW.kind, NULL, NEW.name, NULL, NEW.event_types, NULL, NEW.include_content, NULL, NEW.enabled, NULL, NEW.disabled_reason, NULL, NEW.made_by, NULL, octet_length(NEW.url), NULL, octet_length(NEW.description), NULL, iif(NEW.secret IS NULL, NULL, '[redacted]'), NULL, iif(NEW.old_secret IS NULL, NULL, '[redacted]')), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_sys_subscriptions_update AFTER UPDATE ON sys_subscriptions WHEN OLD.kind IS NOT NEW.kind OR OLD.name IS NOT NEW.name OR OLD.event_types IS NOT NEW.event_types OR OLD.include_content IS NOT NEW.include_content OR OLD.enabled IS NOT NEW.enabled OR OLD.disabled_reason IS NOT NEW.disabled_reason OR OLD.made_by IS NOT NEW.made_by OR OLD.url IS NOT NEW.url OR OLD.description IS NOT NEW.description OR OLD.secret IS NOT NEW.secret OR OLD.old_secret IS NOT NEW.old_secret BEGIN INSERT INTO sys_changes VALUES ('subscription', NEW.id, 'update', 'subscription.updated', 'admins', json_object('kind', NEW.kind, 'enabled', NEW.enabled, 'made_by', NEW.made_by), sys_changed_fields('kind,name,event_types,include_content,enabled,disabled_reason,made_by', 'url,description,secret,old_secret', OLD.kind, NEW.kind, OLD.name, NEW.name, OLD.event_types, NEW.event_types, OLD.include_content, NEW.include_content, OLD.enabled, NEW.enabled, OLD.disabled_reason, NEW.disabled_reason, OLD.made_by, NEW.made_by, iif(OLD.url IS NEW.url, NULL, octet_length(OLD.url)), iif(OLD.url IS NEW.url, NULL, octet_length(NEW.url)), iif(OLD.description IS NEW.description, NULL, octet_length(OLD.description)), iif(OLD.description IS NEW.description, NULL, octet_length(NEW.description)), iif(OLD.secret IS NEW.secret, NULL, iif(OLD.secret IS NULL, NULL, '[redacted]')), iif(OLD.secret IS NEW.secret, NULL, iif(NEW.secret IS NULL, NULL, '[redacted]')), iif(OLD.old_secret IS NEW.old_secret, NULL, iif(OLD.old_secret IS NULL, NULL, '[redacted]')), iif(OLD.old_secret IS NEW.old_secret, NULL, iif(NEW.old_secret IS NULL, NULL, '[redacted]'))), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_sys_subscriptions_delete AFTER DELETE ON sys_subscriptions BEGIN INSERT INTO sys_changes VALUES ('subscription', OLD.id, 'delete', 'subscription.deleted', 'admins', json_object('kind', OLD.kind, 'enabled', OLD.enabled, 'made_by', OLD.made_by), sys_changed_fields('kind,name,event_types,include_content,enabled,disabled_reason,made_by', 'url,description,secret,old_secret', OLD.kind, NULL, OLD.name, NULL, OLD.event_types, NULL, OLD.include_content, NULL, OLD.enabled, NULL, OLD.disabled_reason, NULL, OLD.made_by, NULL, octet_length(OLD.url), NULL, octet_length(OLD.description), NULL, iif(OLD.secret IS NULL, NULL, '[redacted]'), NULL, iif(OLD.old_secret IS NULL, NULL, '[redacted]'), NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_sys_schedules_insert AFTER INSERT ON sys_schedules BEGIN INSERT INTO sys_changes VALUES ('schedule', NEW.id, 'insert', 'schedule.created', 'admins', json_object('enabled', NEW.enabled, 'version', NEW.version), sys_changed_fields('cron,interval_s,timezone,kind,catch_up,enabled,version', 'name', NULL, NEW.cron, NULL, NEW.interval_s, NULL, NEW.timezone, NULL, NEW.kind, NULL, NEW.catch_up, NULL, NEW.enabled, NULL, NEW.version, NULL, octet_length(NEW.name)), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_sys_schedules_update AFTER UPDATE ON sys_schedules WHEN OLD.cron IS NOT NEW.cron OR OLD.interval_s IS NOT NEW.interval_s OR OLD.timezone IS NOT NEW.timezone OR OLD.kind IS NOT NEW.kind OR OLD.catch_up IS NOT NEW.catch_up OR OLD.enabled IS NOT NEW.enabled OR OLD.version IS NOT NEW.version OR OLD.name IS NOT NEW.name BEGIN INSERT INTO sys_changes VALUES ('schedule', NEW.id, 'update', 'schedule.updated', 'admins', json_object('enabled', NEW.enabled, 'version', NEW.version), sys_changed_fields('cron,interval_s,timezone,kind,catch_up,enabled,version', 'name', OLD.cron, NEW.cron, OLD.interval_s, NEW.interval_s, OLD.timezone, NEW.timezone, OLD.kind, NEW.kind, OLD.catch_up, NEW.catch_up, OLD.enabled, NEW.enabled, OLD.version, NEW.version, iif(OLD.name IS NEW.name, NULL, octet_length(OLD.name)), iif(OLD.name IS NEW.name, NULL, octet_length(NEW.name))), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_sys_schedules_delete AFTER DELETE ON sys_schedules BEGIN INSERT INTO sys_changes VALUES ('schedule', OLD.id, 'delete', 'schedule.deleted', 'admins', json_object('enabled', OLD.enabled, 'version', OLD.version), sys_changed_fields('cron,interval_s,timezone,kind,catch_up,enabled,version', 'name', OLD.cron, NULL, OLD.interval_s, NULL, OLD.timezone, NULL, OLD.kind, NULL, OLD.catch_up, NULL, OLD.enabled, NULL, OLD.version, NULL, octet_length(OLD.name), NULL), sys_now_ms(), sys_new_salt(), NULL); END;
