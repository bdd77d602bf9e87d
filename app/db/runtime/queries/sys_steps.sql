-- name: begin_record
-- An operation that spans files is about to begin.
INSERT INTO sys_step_records (key, action, subject, build, shape, started_at)
VALUES (:key, :action, :subject, :build, :shape, :now);

-- name: finish_record
-- It is over; nothing when it was over already.
UPDATE sys_step_records SET finished_at = :now, outcome = :outcome
WHERE key = :key AND finished_at IS NULL RETURNING key AS value;

-- name: list_open_records
-- Operations half-done: under way, or left by a crash.
-- scan: walks the index of those alone
SELECT key, action, subject, shape, started_at FROM sys_step_records
WHERE finished_at IS NULL ORDER BY started_at;

-- name: begin_step
-- A step is recorded before it acts.
INSERT INTO sys_steps (record_key, name, fingerprint, sent_at)
VALUES (:key, :name, :fingerprint, :now)
ON CONFLICT (record_key, name) DO UPDATE SET fingerprint = :fingerprint, sent_at = :now;

-- name: answer_step
-- And its outcome after.
UPDATE sys_steps SET answered_at = :now, answer = :answer
WHERE record_key = :key AND name = :name RETURNING name AS value;

-- name: list_steps
-- What an operation has done so far.
SELECT name, sent_at, answered_at, answer FROM sys_steps WHERE record_key = :key ORDER BY sent_at;
