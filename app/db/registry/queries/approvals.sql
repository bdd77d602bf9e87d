-- name: add_approval
-- The notice of a write that waits; told twice it is there once.
INSERT INTO approvals (id, requester_user_id, agent_id, tool, target_root, size_bytes, expires_at,
  created_at, updated_at)
VALUES (:id, :user_id, :agent_id, :tool, :target_root, :size_bytes, :expires_at, :created_at,
  :created_at)
ON CONFLICT (id) DO NOTHING;

-- name: find_approval
-- A notice, if it is this member's.
SELECT id, requester_user_id, agent_id, tool, target_root, size_bytes, status, decided_by,
  decided_at, expires_at, created_at, version FROM approvals
WHERE id = :id AND requester_user_id = :user_id;

-- name: list_approvals_of
-- A member's notices before this one, newest first; of one status, or NULL for any.
SELECT id, requester_user_id, agent_id, tool, target_root, size_bytes, status, decided_by,
  decided_at, expires_at, created_at, version FROM approvals
WHERE requester_user_id = :user_id AND id < :before_id AND (:status IS NULL OR status = :status)
ORDER BY id DESC LIMIT +:limit;

-- name: list_approvals
-- Everybody's notices before this one, newest first; of one status, or NULL for any.
SELECT id, requester_user_id, agent_id, tool, target_root, size_bytes, status, decided_by,
  decided_at, expires_at, created_at, version FROM approvals
WHERE id < :before_id AND (:status IS NULL OR status = :status)
ORDER BY id DESC LIMIT +:limit;

-- name: list_approval_states
-- How each of these stands; those that are not there are left out.
-- scan: those that it is given
SELECT id, status FROM approvals
WHERE requester_user_id = :user_id AND id IN (SELECT value FROM json_each(:ids));

-- name: begin_decision
-- The member says what is to be done; nothing when it is said already, or its time is over.
UPDATE approvals SET status = :status, decided_by = :user_id, decided_at = :decided_at,
  updated_at = :now, version = version + 1
WHERE id = :id AND requester_user_id = :user_id AND status = 'pending' AND expires_at > :now
RETURNING status AS value;

-- name: end_decision
-- What became of an approved one; `pending` when nothing did, and the member decides again.
UPDATE approvals SET status = :status, decided_by = iif(:decided_at IS NULL, NULL, decided_by),
  decided_at = :decided_at, updated_at = :now, version = version + 1
WHERE id = :id AND status = 'approved' RETURNING status AS value;

-- name: expire_approvals
-- Those whose time is over without a decision.
UPDATE approvals SET status = 'expired', decided_at = :now, updated_at = :now,
  version = version + 1
WHERE id IN (
  SELECT id FROM approvals WHERE status = 'pending' AND expires_at <= :now
  ORDER BY expires_at LIMIT +:limit
) RETURNING id AS value;

-- name: expire_approvals_of
-- Those of one member.
UPDATE approvals SET status = 'expired', decided_at = :now, updated_at = :now,
  version = version + 1
WHERE requester_user_id = :user_id AND status = 'pending' AND expires_at <= :now
RETURNING id AS value;

-- name: prune_approvals
-- Notices that were over before this moment.
DELETE FROM approvals WHERE id IN (
  SELECT id FROM approvals WHERE decided_at IS NOT NULL AND decided_at < :before
  ORDER BY decided_at LIMIT +:limit
) RETURNING id AS value;
