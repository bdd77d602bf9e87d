-- name: set_disk_file
-- The last write to a path, and what of it is still to be done on the disk.
INSERT INTO disk_files (root_id, path_digest, action, size_bytes, content_version, author, pending,
  created_at, updated_at)
VALUES (:root_id, :path_digest, :action, :size_bytes, :content_version, :author, :pending, :now,
  :now)
ON CONFLICT (root_id, path_digest) DO UPDATE SET action = :action, size_bytes = :size_bytes,
  content_version = :content_version, author = :author, pending = :pending,
  updated_at = max(:now, updated_at + 1),
  created_at = iif(content_version IS NULL, :now, created_at);

-- name: find_disk_file
-- The last write to a path.
SELECT content_version, author, created_at, updated_at FROM disk_files
WHERE root_id = :root_id AND path_digest = :path_digest;

-- name: list_pending_disk_files
-- What of a folder's writes is still to be done on the disk.
SELECT root_id, path_digest, pending FROM disk_files
WHERE root_id = :root_id AND pending IS NOT NULL;

-- name: list_pending_roots
-- Folders in which something is still to be done, and where they lie.
-- scan: an index of what is under way, or was left by a crash
SELECT DISTINCT d.root_id AS id,
  iif(EXISTS (SELECT 1 FROM projects AS p WHERE p.id = d.root_id), 'projects', 'shared') AS kind
FROM disk_files AS d INDEXED BY disk_files_pending WHERE d.pending IS NOT NULL;

-- name: settle_disk_file
-- It is done.
UPDATE disk_files SET pending = NULL WHERE root_id = :root_id AND path_digest = :path_digest;

-- name: abandon_disk_file
-- It could not be done, for the folder is no more as it was.
UPDATE disk_files SET pending = NULL, size_bytes = NULL, content_version = NULL,
  updated_at = max(:now, updated_at + 1)
WHERE root_id = :root_id AND path_digest = :path_digest;

-- name: sum_project_bytes
-- Bytes of all files in a member's own projects, as far as they were written through the service.
SELECT coalesce(sum(d.size_bytes), 0) AS value
FROM projects AS p JOIN disk_files AS d ON d.root_id = p.id
WHERE p.owner_user_id = :owner_user_id;

-- name: sum_shared_bytes
-- Bytes of all files in shared folders, as far as they were written through the service.
-- scan: every text of every folder counts
SELECT coalesce(sum(d.size_bytes), 0) AS value
FROM shared_folders AS f JOIN disk_files AS d ON d.root_id = f.id;

-- name: list_removed_roots
-- Folders that were removed and may still be on the disk.
-- scan: what a crash, or a removal of just now, left
SELECT root_id AS id, kind FROM removed_roots ORDER BY root_id;

-- name: forget_removed_root
-- Nothing of it is on the disk.
DELETE FROM removed_roots WHERE root_id = :id;

-- name: list_disk_roots
-- Every folder that there is, and where it lies.
-- scan: for whoever compares rows with folders
SELECT id, 'shared' AS kind FROM shared_folders
UNION ALL SELECT id, 'projects' AS kind FROM projects;

-- name: list_written_roots
-- Folders in which a text stands, by what was written through the service, and where they lie.
-- scan: for whoever compares rows with folders
SELECT id, 'shared' AS kind FROM shared_folders AS f
WHERE EXISTS (SELECT 1 FROM disk_files AS d WHERE d.root_id = f.id AND d.size_bytes IS NOT NULL)
UNION ALL SELECT id, 'projects' AS kind FROM projects AS p
WHERE EXISTS (SELECT 1 FROM disk_files AS d WHERE d.root_id = p.id AND d.size_bytes IS NOT NULL);
