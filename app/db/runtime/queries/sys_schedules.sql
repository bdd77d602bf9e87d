-- name: add_schedule
-- A schedule, due for the first time at `next_due_at`.
INSERT INTO sys_schedules (id, name, cron, interval_s, timezone, kind, is_outside, payload,
  catch_up, enabled, single_run, next_due_at, created_at, updated_at)
VALUES (:id, :name, :cron, :interval_s, :timezone, :kind, :is_outside, :payload, :catch_up,
  :enabled, :single_run, :next_due_at, :now, :now);

-- name: find_schedule
-- One schedule.
SELECT id, name, cron, interval_s, timezone, kind, is_outside, payload, catch_up, enabled,
  single_run, next_due_at, last_due_at, last_tick_at, created_at, updated_at, version
FROM sys_schedules WHERE id = :id;

-- name: list_schedules
-- Schedules after this one, in the order of their making.
SELECT id, name, cron, interval_s, timezone, kind, is_outside, payload, catch_up, enabled,
  single_run, next_due_at, last_due_at, last_tick_at, created_at, updated_at, version
FROM sys_schedules WHERE id > :after ORDER BY id LIMIT +:limit;

-- name: find_next_tick
-- When the next tick of any schedule is due; NULL for never.
-- inline: the first entry of an index
SELECT min(next_due_at) AS value FROM sys_schedules WHERE next_due_at IS NOT NULL;

-- name: list_due_schedules
-- Those with a tick that is due, the longest due first.
SELECT id AS value FROM sys_schedules WHERE next_due_at <= :now ORDER BY next_due_at LIMIT +:limit;

-- name: set_schedule
-- A new definition, of the version that was read; nothing when it is another by now.
UPDATE sys_schedules SET name = :name, cron = :cron, interval_s = :interval_s,
  timezone = :timezone, kind = :kind, payload = :payload, catch_up = :catch_up,
  enabled = :enabled, single_run = :single_run, next_due_at = :next_due_at, updated_at = :now,
  version = version + 1
WHERE id = :id AND version = :version RETURNING version AS value;

-- name: move_schedule
-- Settled through `last_due_at`, from where it stood; nothing when another did it.
UPDATE sys_schedules SET next_due_at = :next_due_at, last_due_at = :last_due_at,
  last_tick_at = :now, version = version + (enabled <> :enabled), enabled = :enabled
WHERE id = :id AND next_due_at = :seen RETURNING id AS value;

-- name: remove_schedule
-- Takes it away; what it did stays.
DELETE FROM sys_schedules WHERE id = :id RETURNING id AS value;

-- name: add_schedule_run
-- What became of a tick, or of a row of skips.
INSERT INTO sys_schedule_runs (schedule_id, due_at, by_hand, ticks, last_due_at, outcome, reason,
  job_id, ticked_at)
VALUES (:schedule_id, :due_at, 0, :ticks, :last_due_at, :outcome, :reason, :job_id, :now);

-- name: add_run_by_hand
-- A run that is no tick; of two in one millisecond the second is told a little later.
INSERT INTO sys_schedule_runs (schedule_id, due_at, by_hand, last_due_at, outcome, job_id,
  ticked_at)
VALUES (:schedule_id,
  coalesce((SELECT max(due_at) + 1 FROM sys_schedule_runs
    WHERE schedule_id = :schedule_id AND due_at >= :now AND by_hand = 1), :now),
  1, :now, 'run', :job_id, :now);

-- name: list_schedule_runs
-- Runs and skips of one schedule before this place, newest first, with what became of their jobs.
SELECT r.due_at, r.by_hand, r.ticks, r.last_due_at, r.outcome, r.reason, r.job_id, r.ticked_at,
  j.status AS job_status, j.attempts, j.finished_at, j.last_error
FROM sys_schedule_runs AS r LEFT JOIN sys_jobs AS j ON j.id = r.job_id
WHERE r.schedule_id = :schedule_id AND (r.due_at, r.by_hand) < (:before, :before_by_hand)
ORDER BY r.due_at DESC, r.by_hand DESC LIMIT +:limit;

-- name: find_unfinished_job_of
-- A job of this schedule that is not over.
SELECT id AS value FROM sys_jobs
WHERE schedule_id = :schedule_id AND finished_at IS NULL LIMIT 1;

-- name: list_pending_jobs_of
-- Jobs of this schedule that nobody runs yet.
SELECT id AS value FROM sys_jobs
WHERE schedule_id = :schedule_id AND finished_at IS NULL AND status = 'pending';

-- name: remove_schedule_runs
-- Takes away those settled before, oldest first.
DELETE FROM sys_schedule_runs WHERE (schedule_id, due_at, by_hand) IN (
  SELECT schedule_id, due_at, by_hand FROM sys_schedule_runs WHERE ticked_at < :before
  ORDER BY ticked_at LIMIT +:limit)
RETURNING due_at AS value;
