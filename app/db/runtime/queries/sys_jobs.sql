-- name: find_live_job
-- The one pending or running job of a dedupe key.
SELECT id AS value FROM sys_jobs
WHERE is_outside = :is_outside AND dedupe_key = :dedupe_key AND finished_at IS NULL;

-- name: add_job
-- Enqueues a job; refused when a live one has its dedupe key.
INSERT INTO sys_jobs (id, kind, is_outside, payload, dedupe_key, priority, run_at, max_attempts,
  timeout_s, made_by, schedule_id, depth, created_at, updated_at)
VALUES (:id, :kind, :is_outside, :payload, :dedupe_key, :priority, :run_at, :max_attempts,
  :timeout_s, :made_by, :schedule_id, :depth, :now, :now);

-- name: find_job
-- Everything about one job.
SELECT id, kind, is_outside, payload, dedupe_key, status, priority, run_at, attempts, max_attempts,
  timeout_s, lease_until, generation, last_error, result, made_by, schedule_id, depth,
  created_at, updated_at, finished_at, version
FROM sys_jobs WHERE id = :id;

-- name: list_jobs
-- Jobs, newest first, without payloads; of one status, of one kind, or of programs outside alone.
SELECT id, kind, is_outside, dedupe_key, status, priority, run_at, attempts, max_attempts,
  timeout_s, lease_until, generation, last_error, made_by, schedule_id, created_at, updated_at,
  finished_at, version
FROM sys_jobs
WHERE id < :before AND is_outside >= :is_outside AND (:status IS NULL OR status = :status)
  AND (:kind IS NULL OR kind = :kind)
ORDER BY id DESC LIMIT +:limit;

-- name: find_last_result
-- What the last job of a schedule that had something to say said; nothing when none is kept.
SELECT result AS value FROM sys_jobs
WHERE finished_at > 0 AND schedule_id = :schedule_id AND result IS NOT NULL
ORDER BY finished_at DESC LIMIT 1;

-- name: find_next_job
-- When the program's next job is due, and when the first lease of any ends.
-- inline: the first entries of two partial indexes
SELECT
  (SELECT min(run_at) FROM sys_jobs WHERE status = 'pending' AND is_outside = 0) AS run_at,
  (SELECT min(lease_until) FROM sys_jobs WHERE status = 'running') AS lease_until;

-- name: find_next_work
-- When anything at all is next due: a job, a schedule, a delivery; NULL when nothing ever is.
SELECT min(due_at) AS value FROM (
  SELECT (SELECT min(run_at) FROM sys_jobs WHERE status = 'pending' AND is_outside = 0) AS due_at
  UNION ALL
  SELECT (SELECT min(run_at) FROM sys_jobs WHERE status = 'pending' AND is_outside = 1)
  UNION ALL
  SELECT (SELECT min(lease_until) FROM sys_jobs WHERE status = 'running')
  UNION ALL
  SELECT (SELECT min(next_due_at) FROM sys_schedules WHERE enabled = 1)
  UNION ALL
  SELECT (
    SELECT min(coalesce(d.lease_until, d.next_attempt_at)) FROM sys_deliveries AS d
    WHERE d.subscription_id = s.id AND d.finished_at IS NULL AND d.is_waiting = 0
      AND d.held_since IS NULL
  ) FROM sys_subscriptions AS s WHERE s.enabled = 1
  UNION ALL
  SELECT min(next_probe_at) FROM sys_circuit_breakers WHERE opened_at > 0
);

-- name: count_due_jobs
-- How many of the program's jobs are due, up to a bound.
-- scan: counts what the index gives, up to the bound
SELECT count(*) AS value FROM (
  SELECT 1 FROM sys_jobs WHERE status = 'pending' AND is_outside = 0 AND run_at <= :now
  LIMIT +:limit);

-- name: claim_job
-- Takes the first of the program's jobs that is due.
UPDATE sys_jobs SET status = 'running', attempts = attempts + 1, generation = generation + 1,
  lease_owner = :owner, claimed_at = :now, updated_at = :now, version = version + 1,
  lease_until = min(:until, coalesce(:now + timeout_s * 1000, :until))
WHERE id = (SELECT id FROM sys_jobs
  WHERE status = 'pending' AND is_outside = 0 AND run_at <= :now
  ORDER BY priority DESC, run_at, id LIMIT 1)
RETURNING id, kind, payload, attempts, timeout_s, lease_until, generation, depth, made_by,
  version;

-- name: claim_outside_job
-- Takes the first job that is due of the given kinds, a JSON list, for a program outside.
-- scan: json_each reads the list it is given
UPDATE sys_jobs SET status = 'running', attempts = attempts + 1, generation = generation + 1,
  lease_owner = :owner, claimed_at = :now, updated_at = :now, version = version + 1,
  lease_until = min(:until, coalesce(:now + timeout_s * 1000, :until))
WHERE id = (SELECT id FROM sys_jobs
  WHERE status = 'pending' AND is_outside = 1 AND run_at <= :now
    AND kind IN (SELECT value FROM json_each(:kinds))
  ORDER BY priority DESC, run_at, id LIMIT 1)
RETURNING id, kind, payload, attempts, timeout_s, lease_until, generation, depth, made_by,
  version;

-- name: find_next_outside_job
-- When the next job of the given kinds, a JSON list, is due for a program outside.
-- scan: json_each reads the list it is given
SELECT min(run_at) AS value FROM sys_jobs
WHERE status = 'pending' AND is_outside = 1 AND kind IN (SELECT value FROM json_each(:kinds));

-- name: renew_job
-- A longer lease for whoever holds the present claim, though not past the attempt's own time.
UPDATE sys_jobs SET updated_at = :now, version = version + 1,
  lease_until = min(:until, coalesce(claimed_at + timeout_s * 1000, :until))
WHERE id = :id AND status = 'running' AND generation = :generation
  AND coalesce(claimed_at + timeout_s * 1000 > :now, 1)
RETURNING lease_until AS value;

-- name: finish_job
-- Done, by whoever holds the present claim.
UPDATE sys_jobs SET status = 'done', result = :result, last_error = NULL, lease_owner = NULL,
  lease_until = NULL, finished_at = :now, updated_at = :now, version = version + 1
WHERE id = :id AND status = 'running' AND generation = :generation RETURNING id AS value;

-- name: fail_job
-- The attempt failed, says whoever holds the present claim: again later, or dead.
UPDATE sys_jobs SET last_error = :error, lease_owner = NULL, lease_until = NULL,
  status = iif(:is_permanent OR attempts >= coalesce(max_attempts, :attempts_max),
    'dead', 'pending'),
  finished_at = iif(:is_permanent OR attempts >= coalesce(max_attempts, :attempts_max),
    :now, NULL),
  run_at = :run_at, updated_at = :now, version = version + 1
WHERE id = :id AND status = 'running' AND generation = :generation RETURNING status AS value;

-- name: release_job
-- Given back by whoever holds the present claim, as if it had never been taken.
UPDATE sys_jobs SET status = 'pending', attempts = attempts - 1, lease_owner = NULL,
  lease_until = NULL, updated_at = :now, version = version + 1
WHERE id = :id AND status = 'running' AND generation = :generation RETURNING id AS value;

-- name: expire_jobs
-- Claims whose holder is silent for too long end, oldest first; the attempt counts.
UPDATE sys_jobs SET last_error = 'lease_expired', lease_owner = NULL, lease_until = NULL,
  status = iif(attempts >= coalesce(max_attempts, :attempts_max), 'dead', 'pending'),
  finished_at = iif(attempts >= coalesce(max_attempts, :attempts_max), :now, NULL),
  updated_at = :now, version = version + 1
WHERE id IN (SELECT id FROM sys_jobs WHERE status = 'running' AND lease_until <= :now
  ORDER BY lease_until LIMIT +:limit)
RETURNING kind, is_outside, status;

-- name: cancel_job
-- Ends a job that is pending or running; a runner loses its claim.
UPDATE sys_jobs SET status = 'cancelled', lease_owner = NULL, lease_until = NULL,
  finished_at = :now, updated_at = :now, version = version + 1
WHERE id = :id AND finished_at IS NULL AND generation = coalesce(:generation, generation)
RETURNING id AS value;

-- name: retry_job
-- From the start, and now, unless somebody runs it or it was done.
UPDATE sys_jobs SET status = 'pending', attempts = 0, run_at = :now, finished_at = NULL,
  updated_at = :now, version = version + 1
WHERE id = :id AND status IN ('pending', 'dead', 'cancelled') RETURNING id AS value;

-- name: remove_job
-- Takes away one that is over.
DELETE FROM sys_jobs WHERE id = :id AND finished_at IS NOT NULL RETURNING id AS value;

-- name: remove_finished_jobs
-- Takes away those over for long enough: dead ones are kept longer than the others.
DELETE FROM sys_jobs WHERE id IN (
  SELECT id FROM sys_jobs WHERE finished_at IS NOT NULL
    AND finished_at < iif(status = 'dead', :dead_before, :done_before)
    AND finished_at < max(:done_before, :dead_before)
  ORDER BY finished_at LIMIT +:limit)
RETURNING id AS value;

-- name: right_job_leases
-- A lease longer than any is one by a clock that was set back since: it ends now.
UPDATE sys_jobs SET lease_until = :now WHERE id IN (
  SELECT id FROM sys_jobs WHERE status = 'running' AND lease_until > :beyond LIMIT +:limit)
RETURNING id AS value;
