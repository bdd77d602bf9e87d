-- name: add_slot
-- One more way to the member's data key.
INSERT INTO key_slots (id, user_id, kind, dek_id, wrapped_dek, label, expires_at, is_pending,
  created_at)
VALUES (:id, :user_id, :kind, :dek_id, :wrapped_dek, :label, :expires_at, :is_pending, :now);

-- name: find_recovery_slot
-- The member's recovery slot, at most one.
SELECT id, user_id, kind, dek_id, wrapped_dek, label, expires_at, last_used_at, created_at
FROM key_slots
WHERE user_id = :user_id AND kind = 'recovery' AND revoked_at IS NULL AND is_pending = 0
ORDER BY id DESC;

-- name: list_slots
-- Every slot that opens a member's store.
SELECT id, user_id, kind, dek_id, wrapped_dek, label, expires_at, last_used_at, created_at
FROM key_slots
WHERE user_id = :user_id AND revoked_at IS NULL AND is_pending = 0 ORDER BY id DESC;

-- name: remove_slot
-- Destroys the wrap itself, not just its use.
DELETE FROM key_slots WHERE id = :slot_id AND user_id = :user_id RETURNING id AS value;

-- name: remove_slots_of_kind
-- Destroys all of one kind.
DELETE FROM key_slots WHERE user_id = :user_id AND kind = :kind RETURNING id AS value;

-- name: remove_slots_of_old_key
-- Destroys every slot of another data key than this.
DELETE FROM key_slots WHERE user_id = :user_id AND dek_id <> :dek_id
RETURNING id AS value, label, kind;

-- name: remove_pending_slots
-- Destroys what a change of key that did not happen had prepared.
DELETE FROM key_slots WHERE user_id = :user_id AND is_pending = 1 RETURNING id AS value;

-- name: adopt_pending_slots
-- The change of key is done: its slots open the store.
UPDATE key_slots SET is_pending = 0 WHERE user_id = :user_id AND is_pending = 1
RETURNING id AS value, label, kind;

-- name: set_slot_label
-- Names it as its member knows it.
UPDATE key_slots SET label = :label WHERE id = :slot_id AND user_id = :user_id
RETURNING id AS value;

-- name: remove_lost_slots
-- Destroys the slots of sessions and tokens that have ended, or are gone.
-- scan: the janitor looks at every slot
DELETE FROM key_slots WHERE kind <> 'recovery' AND is_pending = 0 AND NOT EXISTS (
  SELECT 1 FROM sessions WHERE sessions.slot_id = key_slots.id
  AND sessions.revoked_at IS NULL AND sessions.ends_at > :now)
RETURNING id AS value;

-- name: find_slot
-- One of a member's slots.
SELECT id, user_id, kind, dek_id, wrapped_dek, label, expires_at, last_used_at, created_at
FROM key_slots WHERE id = :slot_id AND user_id = :user_id AND revoked_at IS NULL AND is_pending = 0;
