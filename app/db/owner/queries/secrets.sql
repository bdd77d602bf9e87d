-- name: set_secret
-- Sets one secret.
INSERT INTO secrets (key, value, created_at, updated_at) VALUES (:key, :sealed, :now, :now)
ON CONFLICT (key) DO UPDATE SET value = :sealed, updated_at = :now, version = version + 1;

-- name: find_secret
-- One secret's value.
SELECT value FROM secrets WHERE key = :key;

-- name: remove_secret
-- Destroys one secret.
DELETE FROM secrets WHERE key = :key RETURNING key AS value;
