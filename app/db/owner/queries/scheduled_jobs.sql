-- name: add_scheduled_job
-- What a schedule is for; when it is due stands in sys_schedules.
INSERT INTO scheduled_jobs (id, title, description, prompt, agent_id, session_id, run_context,
  created_at, updated_at)
VALUES (:id, :title, :description, :prompt, :agent_id, :session_id, :run_context, :now, :now);

-- name: find_scheduled_job
-- One of them.
SELECT id, title, description, prompt, agent_id, session_id, run_context, running_session_id,
  running_since, last_run_at
FROM scheduled_jobs WHERE id = :id;

-- name: set_scheduled_job
-- A new definition; the version that guards it is that of its schedule.
UPDATE scheduled_jobs SET title = :title, description = :description, prompt = :prompt,
  agent_id = :agent_id, session_id = :session_id, run_context = :run_context,
  updated_at = :now, version = version + 1
WHERE id = :id RETURNING version AS value;

-- name: remove_scheduled_job
-- Takes it away; how its runs ended stays.
DELETE FROM scheduled_jobs WHERE id = :id RETURNING id AS value;

-- name: find_job_run
-- How a run ended, or that it has begun.
SELECT id, job_id, session_id, started_at, completed_at, duration_ms, status, final_response, error
FROM job_runs WHERE id = :id;

-- name: remove_job_runs
-- Forgets runs that ended before a time, oldest first.
DELETE FROM job_runs WHERE id IN (
  SELECT id FROM job_runs WHERE completed_at < :before ORDER BY completed_at LIMIT +:limit)
RETURNING id AS value;
