-- name: list_audit_of
-- One record's changes, newest first.
SELECT seq, occurred_at, entity, record_id, kind, actor_kind, actor_sub, action, fields
FROM sys_audit WHERE entity = :entity AND record_id = :record_id AND ordinal < :before
ORDER BY ordinal DESC LIMIT :limit;
