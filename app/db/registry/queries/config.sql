-- name: find_config
-- One setting of the instance.
-- inline: one small row by primary key
SELECT value FROM config WHERE key = :key;

-- name: set_config
-- Sets it.
INSERT INTO config (key, value, created_at, updated_at) VALUES (:key, :value, :now, :now)
ON CONFLICT (key) DO UPDATE SET value = :value, updated_at = :now, version = version + 1;
