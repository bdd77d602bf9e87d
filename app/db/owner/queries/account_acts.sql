-- name: add_act
-- Copies an act of others; nothing when it is there already.
INSERT INTO account_acts (source, seq, occurred_at, entity, record_id, kind, actor_sub, action,
  fields)
VALUES (:source, :seq, :occurred_at, :entity, :record_id, :kind, :actor_sub, :action, :fields)
ON CONFLICT (source) DO NOTHING;

-- name: find_last_act
-- The last act that was copied; nothing while there is none.
-- scan: one step from the end
SELECT source, seq FROM account_acts ORDER BY id DESC LIMIT 1;

-- name: list_acts
-- Acts of others, newest first.
SELECT id, occurred_at, entity, record_id, kind, actor_sub, action, fields
FROM account_acts WHERE id < :before ORDER BY id DESC LIMIT +:limit;
