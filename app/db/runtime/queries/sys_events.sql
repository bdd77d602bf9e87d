-- name: forget_events_of_user
-- An erased member's values leave the log; what happened stays.
-- scan: an erasure is rare, and the log has no index by entity
UPDATE sys_events SET payload = '{}' WHERE entity_type = 'user' AND entity_id = :user_id;

-- name: forget_outbox_of_user
-- Nor are they told to anybody any more.
-- scan: an erasure is rare, and the outbox is emptied within days
UPDATE sys_outbox SET payload = '{}' WHERE entity_type = 'user' AND entity_id = :user_id;

-- name: find_event_bounds
-- The last place ever given, and the first event that is kept; each 0 when there is none.
-- scan: SQLite's own table of places has a row a counted table
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'sys_events'), 0) AS last_seq,
  coalesce((SELECT min(seq) FROM sys_events), 0) AS first_seq;

-- name: list_events_after
-- What came after a place, in the order of its commits.
SELECT seq, id, occurred_at, entity_type, entity_id, type, actor_kind, actor_sub, acting_for,
  audience, payload
FROM sys_events WHERE seq > :after ORDER BY seq LIMIT +:limit;

-- name: prune_events
-- The oldest go, as far as they are older than a time; none before which a newer one stands.
-- scan: from the oldest on, as many as may go at once
DELETE FROM sys_events WHERE seq IN (
  SELECT seq FROM sys_events ORDER BY seq LIMIT +:limit
) AND seq < coalesce((
  SELECT seq FROM (SELECT seq, occurred_at FROM sys_events ORDER BY seq LIMIT +:limit)
  WHERE occurred_at >= :before ORDER BY seq LIMIT 1
), 9223372036854775807) RETURNING seq AS value;
