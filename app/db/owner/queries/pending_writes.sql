-- name: add_pending_write
-- A write that waits.
INSERT INTO pending_writes (id, tool, path, content, arguments, base_version, agent_id, size_bytes,
  created_at, expires_at)
VALUES (:id, :tool, :path, :content, :arguments, :base_version, :agent_id, :size_bytes, :now,
  :expires_at);

-- name: find_pending_write
-- One of them, with its text.
SELECT id, tool, path, content, arguments, base_version, agent_id, size_bytes, created_at,
  expires_at FROM pending_writes WHERE id = :id;

-- name: list_pending_writes
-- All of them, without path and text.
-- scan: there are a few hundred at most
SELECT id, tool, iif(instr(path, '/'), substr(path, 1, instr(path, '/') - 1), path) AS root,
  agent_id, size_bytes, created_at, expires_at FROM pending_writes ORDER BY id;

-- name: count_pending_writes
-- How many there are.
-- scan: there are a few hundred at most
SELECT count(*) AS value FROM pending_writes;

-- name: remove_pending_writes
-- These are decided, or their time is over.
-- scan: those that it is given
DELETE FROM pending_writes WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id AS value;
