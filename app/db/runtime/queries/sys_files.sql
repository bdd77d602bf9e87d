-- name: find_file
-- A file by its id.
SELECT id, name, key, size_bytes, digest FROM sys_files WHERE id = :id;

-- name: find_file_of_digest
-- The file that holds this content already.
SELECT id, name, key, size_bytes, digest FROM sys_files WHERE digest = :digest;

-- name: add_file
-- A file that no field holds yet: whoever makes one hold it does so in the same transaction.
INSERT INTO sys_files (id, name, key, digest, size_bytes, unreferenced_since, created_at)
VALUES (:id, :name, :file_key, :file_digest, :size_bytes, :now, :now)
RETURNING id, name, key, size_bytes, digest;

-- name: remove_unreferenced_files
-- Files that no field has held since the grace time began; the row goes, then the bytes.
DELETE FROM sys_files WHERE id IN (
  SELECT id FROM sys_files
  WHERE unreferenced_since IS NOT NULL AND unreferenced_since <= :before AND refs = 0
  ORDER BY unreferenced_since LIMIT +:limit)
RETURNING name, size_bytes;

-- name: list_files
-- Every file that should be there, by name.
-- scan: compares all of them with what is on the disk
SELECT name, size_bytes FROM sys_files ORDER BY name;
