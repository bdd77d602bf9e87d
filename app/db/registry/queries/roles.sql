-- name: list_roles
-- Every role.
-- scan: a handful of rows
SELECT id, label, permission_group, attrs, created_at, updated_at, version FROM roles ORDER BY id;

-- name: find_role
-- One role.
-- inline: one small row by primary key
SELECT id, label, permission_group, attrs, created_at, updated_at, version FROM roles
WHERE id = :role_id;

-- name: list_capabilities
-- What a role may do beyond its own store; `admin` may everything and has no rows.
-- inline: at most ten small rows by primary key
SELECT capability AS value FROM role_capabilities WHERE role_id = :role_id ORDER BY capability;

-- name: find_capability
-- Whether a role has a capability.
-- inline: one small row by primary key
SELECT capability AS value FROM role_capabilities
WHERE role_id = :role_id AND capability = :capability;

