-- What is due again and again: a tick and the job it causes commit together.

CREATE TABLE sys_schedules (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7, or the name of one that the program has itself
  name TEXT NOT NULL,
  cron TEXT,                       -- five fields; NULL when it goes by an interval
  interval_s INTEGER CHECK (interval_s > 0), -- seconds; NULL when it goes by cron
  timezone TEXT NOT NULL DEFAULT 'UTC', -- IANA name, by which cron is read
  kind TEXT NOT NULL,              -- of the job
  is_outside INTEGER NOT NULL CHECK (is_outside IN (0, 1)), -- as in sys_jobs
  payload TEXT NOT NULL CHECK (json_valid(payload)), -- of the job
  catch_up TEXT NOT NULL CHECK (catch_up IN ('skip', 'once', 'all')),
  enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  single_run INTEGER NOT NULL DEFAULT 0 CHECK (single_run IN (0, 1)), -- 1: off after its first run
  next_due_at INTEGER,             -- unix milliseconds UTC; NULL: never again
  last_due_at INTEGER,             -- unix milliseconds UTC; NULL before the first tick
  last_tick_at INTEGER,            -- unix milliseconds UTC; when that was settled
  lease_owner TEXT,
  lease_until INTEGER,             -- unix milliseconds UTC
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1,
  CHECK (cron IS NOT NULL OR interval_s IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_schedules_due ON sys_schedules (next_due_at) WHERE enabled = 1;

-- Every due tick, as exactly one run or one skip.
CREATE TABLE sys_schedule_runs (
  schedule_id TEXT NOT NULL,       -- bare: its history outlives it
  due_at INTEGER NOT NULL,         -- unix milliseconds UTC
  outcome TEXT NOT NULL CHECK (outcome IN ('run', 'skip')),
  reason TEXT CHECK (reason IN ('overlap', 'down', 'disabled', 'locked')), -- of a skip
  job_id TEXT,                     -- of a run
  ticked_at INTEGER NOT NULL,      -- unix milliseconds UTC
  PRIMARY KEY (schedule_id, due_at),
  CHECK (iif(outcome = 'run', job_id, reason) IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_schedule_runs_when ON sys_schedule_runs (ticked_at);
