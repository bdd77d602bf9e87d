-- name: list_audit_by_others
-- What others did to a member after a place, oldest first. The later terms are for rows from before
-- `done_to` was kept: of the account, and of the edges that begin at it; sign-up, which nobody does
-- to another, and the program's own work are left out.
SELECT seq, occurred_at, entity, record_id, kind, actor_sub, action, fields,
  coalesce(hex(row_hash), 'seq ' || seq) AS source
FROM sys_audit
WHERE (done_to = :user_id
    OR (entity = :entity AND record_id = :user_id)
    OR (entity = :edge AND record_id > :edges_after AND record_id < :edges_before))
  AND actor_sub <> :user_id AND coalesce(acting_for, '') <> :user_id
  AND actor_sub NOT IN ('anonymous', 'strongroom') AND seq > :after
ORDER BY seq LIMIT +:limit;

-- name: find_audit_source
-- What tells the row at a place from every other, in any copy of the file.
SELECT coalesce(hex(row_hash), 'seq ' || seq) AS value FROM sys_audit WHERE seq = :seq;

-- name: forget_audit_of_user
-- An erased member's values leave the record; its skeleton stays.
UPDATE sys_audit SET fields = NULL, salt = NULL, done_to = NULL
WHERE (entity = 'user' AND record_id = :user_id) OR done_to = :user_id
  OR (entity IN ('session', 'key_slot')
    AND :user_id IN (fields ->> '$.user_id[0]', fields ->> '$.user_id[1]'))
  OR (entity = 'approval' AND :user_id IN (
    fields ->> '$.requester_user_id[0]', fields ->> '$.requester_user_id[1]'));

-- name: expire_audit_fields
-- The oldest fields go, each with its salt; the skeleton and the digest stay.
UPDATE sys_audit SET fields = NULL, salt = NULL WHERE seq IN (
  SELECT seq FROM sys_audit WHERE fields IS NOT NULL AND occurred_at < :before
  ORDER BY occurred_at LIMIT +:limit
) RETURNING seq AS value;

-- name: list_audit_chain
-- Whole rows after a place, as they are chained.
SELECT seq, entity, record_id, ordinal, occurred_at, kind, actor_kind, actor_sub, acting_for,
  action, request_id, trace_id, encoding, fields, salt, fields_digest, row_hash
FROM sys_audit WHERE seq > :after ORDER BY seq LIMIT +:limit;

-- name: find_audit_head
-- The last row and its hash; nothing while there is none.
-- scan: one step from the end
SELECT seq, row_hash FROM sys_audit ORDER BY seq DESC LIMIT 1;

-- name: find_last_audit_seq
-- The last place ever given; nothing while there is none.
-- scan: SQLite's own table of places has a row a counted table
SELECT seq AS value FROM sqlite_sequence WHERE name = 'sys_audit';

-- name: find_audit_checkpoint
-- What stands for the rows that were removed; nothing while none was.
-- scan: one step from the end
SELECT through_seq AS seq, row_hash, removed FROM sys_audit_checkpoints
ORDER BY through_seq DESC LIMIT 1;

-- name: add_audit_checkpoint
-- The rows through a place are about to go; nothing when it is none of theirs, or the last.
INSERT INTO sys_audit_checkpoints (through_seq, row_hash, removed, created_at)
SELECT seq, row_hash, (SELECT count(*) FROM sys_audit WHERE seq <= :through), :now
FROM sys_audit WHERE seq = :through AND row_hash IS NOT NULL
  AND seq < (SELECT max(seq) FROM sys_audit) RETURNING removed AS value;

-- name: remove_audit_through
-- And they go.
DELETE FROM sys_audit WHERE seq <= :through;

-- name: list_audit
-- Changes of the whole file, newest first; those of reports are for their readers alone.
SELECT seq, occurred_at, entity, record_id, ordinal, kind, actor_kind, actor_sub, acting_for,
  action, request_id, trace_id, fields
FROM sys_audit
WHERE seq < :before AND entity <> 'report'
  AND (:entity IS NULL OR entity = :entity) AND (:record_id IS NULL OR record_id = :record_id)
  AND (:actor IS NULL OR actor_sub = :actor) AND occurred_at >= :since
ORDER BY seq DESC LIMIT +:limit;
