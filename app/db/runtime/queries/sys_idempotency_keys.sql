-- name: find_idempotency_key
-- What a caller's key was used for, while that is remembered, and what was answered.
SELECT route, body_mac, state, operation, status, headers, body FROM sys_idempotency_keys
WHERE caller = :caller AND key = :key AND expires_at > :now;

-- name: find_idempotency_use
-- Whether a caller's key was used, while that is remembered.
-- inline: one row by primary key, no big column
SELECT route AS value FROM sys_idempotency_keys
WHERE caller = :caller AND key = :key AND expires_at > :now;

-- name: keep_idempotency_key
-- What a key was used for, and the answer; in the place of what expired or was in progress.
INSERT INTO sys_idempotency_keys
  (caller, key, route, body_mac, state, operation, status, headers, body, created_at, expires_at)
VALUES
  (:caller, :key, :route, :body_mac, :state, :operation, :status, :headers, :body, :now,
    :expires_at)
ON CONFLICT (caller, key) DO UPDATE SET
  route = excluded.route, body_mac = excluded.body_mac, state = excluded.state,
  operation = excluded.operation, status = excluded.status, headers = excluded.headers,
  body = excluded.body, created_at = excluded.created_at, expires_at = excluded.expires_at;

-- name: settle_idempotency_keys
-- The operation is done, so what it promised to answer is its answer.
UPDATE sys_idempotency_keys SET state = 'done'
WHERE operation = :operation AND state = 'in_progress' AND status IS NOT NULL;

-- name: remove_open_idempotency_keys
-- The operation is over and answered nothing: its key may be used again.
DELETE FROM sys_idempotency_keys WHERE operation = :operation AND state = 'in_progress';

-- name: prune_idempotency_keys
-- What expired, oldest first.
DELETE FROM sys_idempotency_keys WHERE (caller, key) IN (
  SELECT caller, key FROM sys_idempotency_keys WHERE expires_at <= :now
  ORDER BY expires_at LIMIT +:limit)
RETURNING key AS value;

-- name: forget_idempotency_keys_of
-- A caller who is gone, and every agent of theirs.
DELETE FROM sys_idempotency_keys
WHERE caller = :user_id OR (caller >= :user_id || '/' AND caller < :user_id || '0');

-- name: forget_answers_about
-- Of what others were answered about who is gone, only that it was answered is left.
-- scan: a day's keys, once an erasure
UPDATE sys_idempotency_keys SET body = NULL
WHERE state = 'done' AND body IS NOT NULL AND instr(body, CAST(:user_id AS BLOB)) > 0;

-- name: find_store_key
-- One of the store's own random keys.
SELECT key AS value FROM sys_store_keys WHERE name = :name;
