-- name: find_flag
-- One switch's value; nothing while it is the default.
-- inline: one short row by primary key
SELECT value, version, updated_at FROM flags WHERE name = :name;

-- name: list_flags
-- Every switch that is not the default.
-- scan: at most a row for each declared one
SELECT name, value, version, updated_at FROM flags ORDER BY name;

-- name: set_flag
-- Sets a switch; nothing when it has this value already.
INSERT INTO flags (name, value, created_at, updated_at) VALUES (:name, :value, :now, :now)
ON CONFLICT (name) DO UPDATE SET value = :value, updated_at = :now, version = version + 1
WHERE value <> :value RETURNING version AS value;

-- name: remove_flag
-- Back to the default.
DELETE FROM flags WHERE name = :name RETURNING name AS value;

-- name: add_flag_change
-- What a switch was and is, who changed it and when.
INSERT INTO flag_changes (id, name, before, after, changed_by, changed_at)
VALUES (:id, :name, :before, :after, :changed_by, :now);

-- name: count_flag_changes
-- How often a switch was changed.
SELECT count(*) AS value FROM flag_changes WHERE name = :name;

-- name: list_flag_changes
-- Changes of one switch before this one, newest first.
SELECT id, name, before, after, changed_by, changed_at FROM flag_changes
WHERE name = :name AND id < :before_id ORDER BY id DESC LIMIT +:limit;
