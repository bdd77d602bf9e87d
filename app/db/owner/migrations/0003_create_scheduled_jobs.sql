-- What a schedule is for: when it is due stands in sys_schedules under the same id.

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
CREATE INDEX job_runs_completed ON job_runs (completed_at) WHERE completed_at IS NOT NULL;

-- Both follow the job by triggers: whichever way it begins or ends, no caller can forget them.
CREATE TRIGGER job_runs_begin AFTER UPDATE OF status ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND NEW.status = 'running' BEGIN
  UPDATE scheduled_jobs SET running_since = NEW.updated_at, last_run_at = NEW.updated_at,
    running_session_id = session_id WHERE id = NEW.schedule_id;
  INSERT INTO job_runs (id, job_id, session_id, started_at)
  SELECT NEW.id, NEW.schedule_id,
    (SELECT session_id FROM scheduled_jobs WHERE id = NEW.schedule_id), NEW.updated_at
  WHERE NOT EXISTS (SELECT 1 FROM job_runs WHERE id = NEW.id);
END;

CREATE TRIGGER job_runs_pause AFTER UPDATE OF status ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND OLD.status = 'running' AND NEW.status <> 'running' BEGIN
  UPDATE scheduled_jobs SET running_since = NULL, running_session_id = NULL
  WHERE id = NEW.schedule_id AND NOT EXISTS (SELECT 1 FROM sys_jobs AS j
    WHERE j.schedule_id = NEW.schedule_id AND j.finished_at IS NULL AND j.status = 'running');
END;

CREATE TRIGGER job_runs_end AFTER UPDATE OF finished_at ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND NEW.finished_at IS NOT NULL BEGIN
  INSERT INTO job_runs (id, job_id, started_at)
  SELECT NEW.id, NEW.schedule_id, NEW.finished_at
  WHERE NOT EXISTS (SELECT 1 FROM job_runs WHERE id = NEW.id);
  UPDATE job_runs SET completed_at = NEW.finished_at,
    duration_ms = NEW.finished_at - started_at,
    status = CASE NEW.status WHEN 'done' THEN 'completed' WHEN 'dead' THEN 'failed'
      ELSE 'cancelled' END,
    final_response = iif(json_type(NEW.result) = 'object',
      coalesce(NEW.result ->> '$.final_response', NEW.result), NEW.result ->> '$'),
    session_id = coalesce(iif(json_type(NEW.result) = 'object',
      NEW.result ->> '$.session_id', NULL), session_id),
    error = iif(NEW.status = 'done', NULL, NEW.last_error)
  WHERE id = NEW.id;
END;

CREATE TRIGGER job_runs_again AFTER UPDATE OF finished_at ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND NEW.finished_at IS NULL AND OLD.finished_at IS NOT NULL BEGIN
  UPDATE job_runs SET completed_at = NULL, duration_ms = NULL, status = NULL,
    final_response = NULL, error = NULL
  WHERE id = NEW.id;
END;
