-- name: forget_events_of_user
-- An erased member's values leave the log; what happened stays.
-- scan: an erasure is rare, and the log has no index by entity
UPDATE sys_events SET payload = '{}' WHERE entity_type = 'user' AND entity_id = :user_id;
