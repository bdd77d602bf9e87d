-- name: begin_record
-- An operation that spans files is about to begin.
INSERT INTO sys_step_records (key, action, subject, build, shape, started_at)
VALUES (:key, :action, :subject, :build, :shape, :now);

-- name: finish_record
-- It is over; nothing when it was over already, or is somebody else's.
UPDATE sys_step_records SET finished_at = :now, outcome = :outcome
WHERE key = :key AND generation = :generation AND finished_at IS NULL AND diverged = 0
RETURNING key AS value;

-- name: find_open_record
-- One that is not over.
SELECT key, action, subject, shape, started_at, generation, diverged, alerted_at
FROM sys_step_records WHERE key = :key AND finished_at IS NULL;

-- name: list_open_records
-- Operations half-done: under way, left by a crash, or left to a person.
-- scan: walks the index of those alone
SELECT key, action, subject, shape, started_at, generation, diverged, alerted_at
FROM sys_step_records WHERE finished_at IS NULL ORDER BY started_at;

-- name: count_cut_records
-- How often this build was cut amid one operation on a subject, which was undone then; those
-- alone since it last succeeded.
-- scan: after a crash alone, and operations are few
SELECT count(*) AS value FROM sys_step_records
WHERE action = :action AND subject = :subject AND build = :build AND outcome = 'undone'
  AND generation > 1 AND started_at > coalesce((
    SELECT max(finished_at) FROM sys_step_records
    WHERE action = :action AND subject = :subject AND build = :build AND outcome = 'done'), 0);

-- name: take_record_over
-- From now on the runner before can write nothing.
UPDATE sys_step_records SET generation = generation + 1
WHERE key = :key AND finished_at IS NULL AND diverged = 0 RETURNING generation AS value;

-- name: mark_diverged
-- Its steps are not those that this program knows: a person decides.
UPDATE sys_step_records SET diverged = 1, generation = generation + 1
WHERE key = :key AND finished_at IS NULL RETURNING key AS value;

-- name: release_record
-- A person has decided: it goes on with these steps.
UPDATE sys_step_records SET diverged = 0, shape = :shape, alerted_at = NULL
WHERE key = :key AND finished_at IS NULL RETURNING key AS value;

-- name: release_steps
-- And what was sent may be sent otherwise.
UPDATE sys_steps SET fingerprint = :fingerprint WHERE record_key = :key;

-- name: mark_late_records
-- Those that have been open for long and were not told of.
UPDATE sys_step_records SET alerted_at = :now
WHERE finished_at IS NULL AND alerted_at IS NULL AND started_at <= :started_before
RETURNING key, action, subject, shape, started_at, generation, diverged, alerted_at;

-- name: begin_step
-- A step is recorded before it acts, by the present runner alone; again it must ask the same.
INSERT INTO sys_steps (record_key, name, fingerprint, sent_at)
SELECT key, :name, :fingerprint, :now FROM sys_step_records
WHERE key = :key AND generation = :generation AND finished_at IS NULL AND diverged = 0
ON CONFLICT (record_key, name) DO UPDATE SET sent_at = :now, fingerprint = :fingerprint
WHERE fingerprint IN (:fingerprint, :released)
RETURNING name AS value;

-- name: answer_step
-- And its outcome after.
UPDATE sys_steps SET answered_at = :now, answer = :answer
WHERE record_key = :key AND name = :name AND EXISTS (
  SELECT 1 FROM sys_step_records
  WHERE key = :key AND generation = :generation AND finished_at IS NULL AND diverged = 0)
RETURNING name AS value;

-- name: list_steps
-- What an operation has done so far.
SELECT name, fingerprint, sent_at, answered_at, answer
FROM sys_steps WHERE record_key = :key ORDER BY sent_at;
