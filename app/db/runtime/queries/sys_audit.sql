-- name: list_audit_by_others
-- What others did to one record, and to the edges that begin at it, newest first; sign-up,
-- which nobody does to another, and the program's own work are left out.
SELECT seq, occurred_at, entity, record_id, kind, actor_kind, actor_sub, action, fields
FROM sys_audit
WHERE ((entity = :entity AND record_id = :record_id)
    OR (entity = :edge AND record_id > :edges_after AND record_id < :edges_before))
  AND actor_sub <> :record_id AND coalesce(acting_for, '') <> :record_id
  AND actor_sub NOT IN ('anonymous', 'strongroom') AND seq < :before
ORDER BY seq DESC LIMIT :limit;

-- name: list_audit_of
-- One record's changes, newest first.
SELECT seq, occurred_at, entity, record_id, kind, actor_kind, actor_sub, action, fields
FROM sys_audit WHERE entity = :entity AND record_id = :record_id AND ordinal < :before
ORDER BY ordinal DESC LIMIT :limit;

-- name: forget_audit_of_user
-- An erased member's values leave the record; its skeleton stays.
UPDATE sys_audit SET fields = NULL
WHERE (entity = 'user' AND record_id = :user_id)
  OR (entity IN ('session', 'key_slot')
    AND :user_id IN (fields ->> '$.user_id[0]', fields ->> '$.user_id[1]'));
