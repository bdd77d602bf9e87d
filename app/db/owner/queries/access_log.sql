-- name: add_access
-- One opening of this store.
INSERT INTO access_log (at, session_id, agent_id, way, network)
VALUES (:now, :session_id, :agent_id, :way, :network);

-- name: list_access
-- Openings before this one, newest first.
SELECT id, at, session_id, agent_id, way, network FROM access_log
WHERE id < :before ORDER BY id DESC LIMIT +:limit;

-- name: remove_old_access
-- Forgets openings of long ago, oldest first.
DELETE FROM access_log WHERE id IN (
  SELECT id FROM access_log WHERE at < :before ORDER BY at LIMIT +:limit)
RETURNING id AS value;
