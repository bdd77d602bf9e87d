-- name: find_credential
-- A session with its member, store state and slot: all an authorization needs, in one row.
-- inline: three rows by primary key, no big column
SELECT s.id, s.user_id, s.kind, s.is_cookie, s.agent_id, s.is_agent, s.verifier, s.slot_id,
  s.needs_store, s.scopes, s.ends_at, s.last_seen_at, s.password_checked_at, s.revoked_at,
  u.active, u.role_id, u.encrypted, u.dek_id, u.file_salt, u.lock_number, u.store_state,
  u.store_generation, u.quota_bytes, k.wrapped_dek, k.kind AS slot_kind
FROM sessions AS s JOIN users AS u ON u.id = s.user_id
LEFT JOIN key_slots AS k ON k.id = s.slot_id AND k.revoked_at IS NULL AND k.is_pending = 0
WHERE s.id = :session_id;

-- name: find_quick_credential
-- Of find_credential's row what judging a read needs: a third less work for the commonest call.
-- inline: three rows by primary key, no big column
SELECT s.user_id, s.kind, s.is_cookie, s.verifier, s.needs_store, s.scopes, s.ends_at,
  s.last_seen_at, s.revoked_at, u.active, u.encrypted, u.store_state, u.store_generation,
  k.wrapped_dek
FROM sessions AS s JOIN users AS u ON u.id = s.user_id
LEFT JOIN key_slots AS k ON k.id = s.slot_id AND k.revoked_at IS NULL AND k.is_pending = 0
WHERE s.id = :session_id;

-- name: add_session
-- A session or API token, known by its verifier alone.
INSERT INTO sessions (id, user_id, kind, is_cookie, agent_id, is_agent, verifier, slot_id,
  needs_store, scopes, label, user_agent, started_at, ends_at, last_seen_at, password_checked_at)
VALUES (:id, :user_id, :kind, :is_cookie, :agent_id, :is_agent, :verifier, :slot_id,
  :needs_store, :scopes, :label, :user_agent, :now, :ends_at, :now, :password_checked_at);

-- name: list_sessions
-- A member's live sessions or tokens, newest first.
SELECT id, kind, agent_id, is_agent, scopes, label, user_agent, started_at, ends_at, last_seen_at,
  slot_id
FROM sessions
WHERE user_id = :user_id AND kind = :kind AND revoked_at IS NULL AND ends_at > :now
ORDER BY id DESC;

-- name: find_session
-- One of a member's live sessions.
SELECT id, kind, agent_id, is_agent, scopes, label, user_agent, started_at, ends_at, last_seen_at,
  slot_id
FROM sessions
WHERE user_id = :user_id AND id = :session_id AND revoked_at IS NULL;

-- name: revoke_session
-- Ends one; its slot is destroyed by remove_slot in the same transaction.
UPDATE sessions SET revoked_at = :now
WHERE id = :session_id AND user_id = :user_id AND revoked_at IS NULL RETURNING slot_id AS value;

-- name: revoke_sessions
-- Ends all of a member's of one kind but one.
UPDATE sessions SET revoked_at = :now
WHERE user_id = :user_id AND kind = :kind AND id <> :except_id AND revoked_at IS NULL
RETURNING slot_id AS value;

-- name: revoke_all_sessions
-- Ends every session and token of a member.
UPDATE sessions SET revoked_at = :now
WHERE user_id = :user_id AND revoked_at IS NULL RETURNING id AS value;

-- name: revoke_session_of_slot
-- Ends the session whose slot is being destroyed.
UPDATE sessions SET revoked_at = :now
WHERE user_id = :user_id AND slot_id = :slot_id AND revoked_at IS NULL RETURNING id AS value;

-- name: set_session_slot
-- The session can open its member's store by itself from now on.
UPDATE sessions SET slot_id = :slot_id WHERE id = :session_id AND revoked_at IS NULL
RETURNING id AS value;

-- name: set_session_seen
-- Now and then, off the request's path.
UPDATE sessions SET last_seen_at = :now WHERE id = :session_id AND last_seen_at < :now;

-- name: set_password_checked
-- The person behind the session has just given the password.
UPDATE sessions SET password_checked_at = :now WHERE id = :session_id AND revoked_at IS NULL;

-- name: count_live_slots
-- Sessions that can still open a member's store.
SELECT count(*) AS value FROM sessions
WHERE user_id = :user_id AND revoked_at IS NULL AND ends_at > :now AND slot_id IS NOT NULL;

-- name: remove_ended_sessions
-- Takes away sessions and tokens that ended long ago.
-- scan: once an hour
DELETE FROM sessions WHERE id IN (
  SELECT id FROM sessions WHERE min(coalesce(revoked_at, ends_at), ends_at) < :before LIMIT +:limit)
RETURNING id AS value;
