-- name: add_shared_folder
-- A folder of the group, with nobody in it.
INSERT INTO shared_folders (id, folder_name, folder_key, description, created_at, updated_at)
VALUES (:id, :folder_name, :folder_key, :description, :now, :now);

-- name: find_shared_folder
-- One folder.
SELECT id, folder_name, folder_key, description, created_at, updated_at, version
FROM shared_folders WHERE id = :id;

-- name: find_shared_folder_by_key
-- The folder of this name in any spelling.
SELECT id, folder_name, folder_key, description, created_at, updated_at, version
FROM shared_folders WHERE folder_key = :folder_key;

-- name: list_shared_folders
-- Folders in the order of their making, after a given one.
SELECT id, folder_name, folder_key, description, created_at, updated_at, version
FROM shared_folders WHERE id > :after ORDER BY id LIMIT +:limit;

-- name: list_shared_folders_of
-- The folders that a member is in, by name.
SELECT f.id, f.folder_name, f.folder_key, f.description, m.can_write
FROM shared_folder_members AS m JOIN shared_folders AS f ON f.id = m.folder_id
WHERE m.user_id = :user_id ORDER BY f.folder_key;

-- name: set_shared_folder
-- Changes the version that was read, and no other.
UPDATE shared_folders SET folder_name = :folder_name, folder_key = :folder_key,
  description = :description, updated_at = :now, version = version + 1
WHERE id = :id AND version = :read_version
RETURNING id, folder_name, folder_key, description, created_at, updated_at, version;

-- name: remove_shared_folder
-- The folder is gone for everybody; who was in it goes with the row.
DELETE FROM shared_folders WHERE id = :id RETURNING id AS value;

-- name: list_shared_folder_members
-- Who is in a folder, after a given one.
SELECT m.user_id, u.username, m.can_write, m.created_at
FROM shared_folder_members AS m JOIN users AS u ON u.id = m.user_id
WHERE m.folder_id = :root_id AND m.user_id > :after ORDER BY m.user_id LIMIT +:limit;

-- name: set_shared_folder_member
-- Lets a member in, or changes what they may; nothing when it is so already.
INSERT INTO shared_folder_members (folder_id, user_id, can_write, created_at)
VALUES (:root_id, :user_id, :can_write, :now)
ON CONFLICT (folder_id, user_id) DO UPDATE SET can_write = :can_write
WHERE can_write <> :can_write;

-- name: remove_shared_folder_member
-- A member is in the folder no more.
DELETE FROM shared_folder_members WHERE folder_id = :root_id AND user_id = :user_id
RETURNING user_id AS value;

-- name: find_shared_root
-- A folder by its name, for somebody who is in it.
SELECT f.id, 'shared' AS kind, f.folder_key AS place, NULL AS owner_user_id, m.can_write
FROM shared_folders AS f JOIN shared_folder_members AS m ON m.folder_id = f.id
WHERE f.folder_key = :folder_key AND m.user_id = :user_id;
