-- name: find_user_config
-- One of the owner's own settings.
-- inline: one small row by primary key
SELECT value FROM user_config WHERE key = :key;

-- name: list_user_config
-- All of the owner's own settings.
-- scan: one owner's few settings
SELECT key, value, updated_at, version FROM user_config ORDER BY key;

-- name: set_user_config
-- Sets one.
INSERT INTO user_config (key, value, created_at, updated_at) VALUES (:key, :value, :now, :now)
ON CONFLICT (key) DO UPDATE SET value = :value, updated_at = :now, version = version + 1;

-- name: remove_user_config
-- Takes one back to what the instance says.
DELETE FROM user_config WHERE key = :key RETURNING key AS value;
