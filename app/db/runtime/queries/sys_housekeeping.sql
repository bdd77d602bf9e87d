-- name: take_housekeeping
-- Begins a round, or goes on with one whose owner is gone, when it is due and nobody is at it.
-- A time of the future is one by a clock that was set back since.
INSERT INTO sys_housekeeping (name, lease_owner, lease_until, generation, last_started_at)
VALUES (:name, :owner, :until, 1, :now)
ON CONFLICT (name) DO UPDATE SET lease_owner = :owner, lease_until = :until,
  generation = generation + 1, last_started_at = :now
WHERE (last_completed_at IS NULL OR last_completed_at <= :completed_by
    OR last_completed_at > :now)
  AND (lease_owner IS NULL OR lease_owner = :owner OR lease_until <= :now OR lease_until > :until)
RETURNING generation AS value;

-- name: renew_housekeeping
-- Keeps the round, for whoever has it; nothing for who lost it.
UPDATE sys_housekeeping SET lease_until = :until
WHERE name = :name AND lease_owner = :owner AND generation = :generation
RETURNING generation AS value;

-- name: release_housekeeping
-- Lets an unfinished round go, for another to begin.
UPDATE sys_housekeeping SET lease_owner = NULL, lease_until = NULL
WHERE name = :name AND lease_owner = :owner AND generation = :generation
RETURNING generation AS value;

-- name: complete_housekeeping
-- Ends the round, for whoever has it.
UPDATE sys_housekeeping SET lease_owner = NULL, lease_until = NULL, last_completed_at = :now,
  removed = :removed
WHERE name = :name AND lease_owner = :owner AND generation = :generation
RETURNING generation AS value;

-- name: find_housekeeping
-- How the rounds of this name go.
SELECT lease_owner, lease_until, generation, last_started_at, last_completed_at, removed
FROM sys_housekeeping WHERE name = :name;

-- name: remove_finished_records
-- Takes away operations that are over for long enough, with their steps.
-- scan: one row for each operation that spanned files, and few of them
DELETE FROM sys_step_records WHERE key IN (
  SELECT key FROM sys_step_records WHERE finished_at < :before LIMIT +:limit)
RETURNING key AS value;
