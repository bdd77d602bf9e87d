-- Durable work: enqueued by the transaction that causes it, run by whoever holds its lease.

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

-- Programs outside cannot take a key that the program itself needs.
CREATE UNIQUE INDEX sys_jobs_dedupe ON sys_jobs (is_outside, dedupe_key)
  WHERE finished_at IS NULL AND dedupe_key IS NOT NULL;
CREATE INDEX sys_jobs_due ON sys_jobs (is_outside, run_at) WHERE status = 'pending';
CREATE INDEX sys_jobs_order ON sys_jobs (is_outside, priority DESC, run_at, id)
  WHERE status = 'pending';
CREATE INDEX sys_jobs_leased ON sys_jobs (lease_until) WHERE status = 'running';
CREATE INDEX sys_jobs_finished ON sys_jobs (finished_at) WHERE finished_at IS NOT NULL;
