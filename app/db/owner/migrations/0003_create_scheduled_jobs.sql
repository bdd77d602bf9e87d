-- A member's own schedules: when, in sys_schedules under the same id; what for, here.

CREATE TABLE scheduled_jobs (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  title TEXT NOT NULL,
  description TEXT,
  prompt TEXT,                     -- what the program that runs it is told
  agent_id TEXT,                   -- bare: who is to run it
  session_id TEXT,                 -- bare: the conversation it goes on with
  run_context TEXT CHECK (run_context IS NULL OR json_valid(run_context)),
  origin_ref TEXT,                 -- what it was made from
  parent_session_id TEXT,          -- bare
  running_session_id TEXT,         -- bare; NULL while it does not run
  running_since INTEGER,           -- unix milliseconds UTC; NULL while it does not run
  last_run_at INTEGER,             -- unix milliseconds UTC
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

-- How each run ended, as its worker told it.
CREATE TABLE job_runs (
  id TEXT NOT NULL PRIMARY KEY,    -- that of the job
  job_id TEXT NOT NULL,            -- of scheduled_jobs, which may be gone
  session_id TEXT,                 -- bare
  started_at INTEGER NOT NULL,     -- unix milliseconds UTC
  completed_at INTEGER,            -- unix milliseconds UTC; NULL while it runs
  duration_ms INTEGER,
  status TEXT CHECK (status IN ('completed', 'failed', 'cancelled')), -- NULL while it runs
  final_response TEXT,
  error TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX job_runs_of ON job_runs (job_id, started_at);
