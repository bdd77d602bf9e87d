-- name: add_invitation
-- An invitation, known by its verifier alone.
INSERT INTO invitations (id, verifier, role_id, invited_by, expires_at, created_at)
VALUES (:id, :verifier, :role_id, :invited_by, :expires_at, :now);

-- name: find_invitation
-- One invitation, used or not.
SELECT id, verifier, role_id, invited_by, expires_at, used_at, created_at
FROM invitations WHERE id = :invitation_id;

-- name: list_invitations
-- Those that are still good.
-- scan: a few rows, for administrators
SELECT id, verifier, role_id, invited_by, expires_at, used_at, created_at
FROM invitations WHERE used_at IS NULL AND expires_at > :now ORDER BY id DESC;

-- name: use_invitation
-- Takes it, once; nothing when it was taken or has ended.
UPDATE invitations SET used_at = :now
WHERE id = :invitation_id AND used_at IS NULL AND expires_at > :now RETURNING role_id AS value;

-- name: remove_invitation
-- Takes an unused one back.
DELETE FROM invitations WHERE id = :invitation_id AND used_at IS NULL RETURNING id AS value;

-- name: remove_old_invitations
-- Takes away those used, or at their end, long ago.
-- scan: a few rows, once an hour
DELETE FROM invitations WHERE id IN (
  SELECT id FROM invitations WHERE min(coalesce(used_at, expires_at), expires_at) < :before
  LIMIT +:limit)
RETURNING id AS value;
