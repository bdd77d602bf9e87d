-- name: add_project
-- A member's project, with nobody in it.
INSERT INTO projects (id, owner_user_id, name, slug, description, run_context, created_at,
  updated_at)
VALUES (:id, :owner_user_id, :name, :slug, :description, :run_context, :now, :now);

-- name: is_slug_taken
-- Whether the member has a project of this slug.
SELECT count(*) AS value FROM projects WHERE owner_user_id = :owner_user_id AND slug = :slug;

-- name: count_projects
-- How many projects the member has.
SELECT count(*) AS value FROM projects WHERE owner_user_id = :owner_user_id;

-- name: find_project
-- A project, for somebody who is in it.
SELECT p.id, p.owner_user_id, u.username AS owner, u.username_key AS owner_key, p.name, p.slug,
  p.description, p.run_context, p.created_at, p.updated_at, p.version, m.can_write
FROM projects AS p JOIN project_members AS m ON m.project_id = p.id
  JOIN users AS u ON u.id = p.owner_user_id
WHERE p.id = :id AND m.user_id = :user_id;

-- name: list_projects
-- The projects that a member is in, in the order of their making, after a given one.
SELECT p.id, p.owner_user_id, u.username AS owner, u.username_key AS owner_key, p.name, p.slug,
  p.description, p.run_context, p.created_at, p.updated_at, p.version, m.can_write
FROM project_members AS m JOIN projects AS p ON p.id = m.project_id
  JOIN users AS u ON u.id = p.owner_user_id
WHERE m.user_id = :user_id AND m.project_id > :after ORDER BY m.project_id LIMIT +:limit;

-- name: set_project
-- Changes the version that was read, and no other.
UPDATE projects SET name = :name, description = :description, run_context = :run_context,
  updated_at = :now, version = version + 1
WHERE id = :id AND version = :read_version RETURNING version AS value;

-- name: remove_project
-- The project is gone for everybody; who was in it goes with the row.
DELETE FROM projects WHERE id = :id RETURNING id AS value;

-- name: list_project_members
-- Who is in a project, after a given one.
SELECT m.user_id, u.username, m.can_write, m.created_at
FROM project_members AS m JOIN users AS u ON u.id = m.user_id
WHERE m.project_id = :root_id AND m.user_id > :after ORDER BY m.user_id LIMIT +:limit;

-- name: set_project_member
-- Lets a member in, or changes what they may; nothing when it is so already.
INSERT INTO project_members (project_id, user_id, can_write, created_at)
VALUES (:root_id, :user_id, :can_write, :now)
ON CONFLICT (project_id, user_id) DO UPDATE SET can_write = :can_write
WHERE can_write <> :can_write;

-- name: remove_project_member
-- A member is in the project no more.
DELETE FROM project_members WHERE project_id = :root_id AND user_id = :user_id
RETURNING user_id AS value;

-- name: find_project_root
-- A project by its owner's name and its slug, for somebody who is in it.
SELECT p.id, 'projects' AS kind, u.username_key || '/' || p.slug AS place, p.owner_user_id,
  m.can_write
FROM users AS u JOIN projects AS p ON p.owner_user_id = u.id
  JOIN project_members AS m ON m.project_id = p.id
WHERE u.username_key = :owner_key AND p.slug = :slug AND m.user_id = :user_id;
