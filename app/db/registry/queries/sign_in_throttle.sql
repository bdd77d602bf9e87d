-- name: find_throttle
-- One counter.
SELECT failures, window_started_at, next_allowed_at FROM sign_in_throttle WHERE key = :key;

-- name: set_throttle
-- Sets one counter.
INSERT INTO sign_in_throttle (key, kind, failures, window_started_at, next_allowed_at)
VALUES (:key, :kind, :failures, :window_started_at, :next_allowed_at)
ON CONFLICT (key) DO UPDATE SET failures = :failures, window_started_at = :window_started_at,
  next_allowed_at = :next_allowed_at;

-- name: remove_throttle
-- Forgets one counter.
DELETE FROM sign_in_throttle WHERE key = :key;

-- name: count_throttle
-- How many counters there are.
-- scan: counts an index
SELECT count(*) AS value FROM sign_in_throttle;

-- name: remove_oldest_throttle
-- Keeps the table bounded.
-- scan: walks the age index from its old end
DELETE FROM sign_in_throttle WHERE key IN (
  SELECT key FROM sign_in_throttle ORDER BY window_started_at LIMIT +:count);

-- name: remove_idle_throttle
-- Forgets counters whose window and delay are over, oldest first.
DELETE FROM sign_in_throttle WHERE key IN (
  SELECT key FROM sign_in_throttle WHERE window_started_at < :before AND next_allowed_at < :now
  ORDER BY window_started_at LIMIT +:limit)
RETURNING key AS value;
