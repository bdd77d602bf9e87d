-- name: add_version
-- Keeps the note's present text as the version it has.
INSERT INTO memory_doc_versions (path, version, doc_id, size_bytes, author, via, created_at,
  content)
SELECT path, version, id, size_bytes, author, :via, updated_at, content
FROM memory_docs WHERE path = :path;

-- name: add_deletion
-- Keeps that a note left this path.
INSERT INTO memory_doc_versions (path, version, doc_id, size_bytes, author, via, created_at)
VALUES (:path, :version, :doc_id, 0, :author, :via, :now);

-- name: extend_version
-- Makes a recent version of a note's appends the present one; nothing when the newest is older,
-- by another author or no append.
UPDATE memory_doc_versions SET version = d.version, size_bytes = d.size_bytes, content = d.content
FROM memory_docs AS d
WHERE d.path = :path AND memory_doc_versions.path = :path
  AND memory_doc_versions.version = :read_version AND memory_doc_versions.author = d.author
  AND memory_doc_versions.via = 'append' AND memory_doc_versions.created_at > :since
RETURNING memory_doc_versions.version AS value;

-- name: count_versions
-- How many versions are kept at a path.
SELECT count(*) AS value FROM memory_doc_versions WHERE path = :path;

-- name: list_versions_to_spare
-- The oldest versions at a path that a later one makes up for: deletions, and texts that the
-- same author wrote over. It reads no further than it must.
SELECT v.version AS value FROM memory_doc_versions AS v
WHERE v.path = :path AND (
  SELECT v.content IS NULL OR (n.content IS NOT NULL AND n.author = v.author)
  FROM memory_doc_versions AS n WHERE n.path = :path AND n.version > v.version
  ORDER BY n.version LIMIT 1)
ORDER BY v.version LIMIT +:limit;

-- name: list_versions
-- The versions at a path before this one, newest first, without their text.
SELECT version, doc_id, size_bytes, author, via, created_at, content IS NULL AS is_deletion
FROM memory_doc_versions WHERE path = :path AND version < :before
ORDER BY version DESC LIMIT +:limit;

-- name: find_version
-- One version with its text.
SELECT version, doc_id, size_bytes, author, via, created_at, content
FROM memory_doc_versions WHERE path = :path AND version = :version;

-- name: remove_version
-- Forgets one version.
DELETE FROM memory_doc_versions WHERE path = :path AND version = :version;

-- name: remove_versions_of_gone_notes
-- Forgets every version, at whatever path, of notes that stood in a range and are gone.
DELETE FROM memory_doc_versions
WHERE doc_id IN (SELECT doc_id FROM memory_doc_versions WHERE path >= :low AND path < :high)
  AND NOT EXISTS (SELECT 1 FROM memory_docs AS d WHERE d.id = memory_doc_versions.doc_id)
RETURNING version AS value;

-- name: remove_versions
-- Forgets every version in a range of paths.
DELETE FROM memory_doc_versions WHERE path >= :low AND path < :high RETURNING version AS value;

-- name: list_versioned_paths
-- Paths after this one that have versions, in order.
SELECT DISTINCT path AS value FROM memory_doc_versions WHERE path > :after ORDER BY path
LIMIT +:limit;

-- name: sum_versions
-- Bytes of every version of the store.
-- scan: once an hour; the texts stand in pages that it does not read
SELECT coalesce(sum(size_bytes), 0) AS value FROM memory_doc_versions;

-- name: list_expendable_versions
-- Versions that may go when there are too many, oldest first: neither the newest of a path, nor
-- a deletion, nor the last before a deletion or another author's overwrite.
-- scan: once an hour, in a store that has too much
SELECT path, version, size_bytes FROM (
  SELECT path, version, size_bytes, author, created_at, content IS NULL AS is_deletion,
    lead(author) OVER next AS next_author, lead(content IS NULL) OVER next AS next_is_deletion
  FROM memory_doc_versions WINDOW next AS (PARTITION BY path ORDER BY version))
WHERE NOT is_deletion AND NOT next_is_deletion AND next_author = author
ORDER BY created_at, path, version LIMIT +:limit;
