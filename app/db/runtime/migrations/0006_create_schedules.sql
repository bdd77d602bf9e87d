-- What is due again and again: a tick and the job it causes commit together.

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

-- A disabled one is due as well, and skips.
CREATE INDEX sys_schedules_due ON sys_schedules (next_due_at) WHERE next_due_at IS NOT NULL;
CREATE INDEX sys_schedules_enabled ON sys_schedules (next_due_at) WHERE enabled = 1;

-- Every due tick, as one run or one skip. What is missed for very long is told together: then
-- the first of a row of skips stands for all of them.
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

-- Whether the job of the tick before is over.
CREATE INDEX sys_jobs_of_schedule ON sys_jobs (schedule_id)
  WHERE finished_at IS NULL AND schedule_id IS NOT NULL;
