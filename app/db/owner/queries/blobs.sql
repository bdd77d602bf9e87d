-- name: find_blob
-- A blob by its id, with what its file's row says.
SELECT b.id, b.file_id, b.name, b.media_type, b.doc_id, b.report_id, b.author, b.created_at,
  f.size_bytes, f.digest, d.path AS note_path
FROM blobs AS b JOIN sys_files AS f ON f.id = b.file_id
  LEFT JOIN memory_docs AS d ON d.id = b.doc_id
WHERE b.id = :id;

-- name: list_blobs
-- Blobs after an id, in the order of their ids.
SELECT b.id, b.file_id, b.name, b.media_type, b.doc_id, b.report_id, b.author, b.created_at,
  f.size_bytes, f.digest, d.path AS note_path
FROM blobs AS b JOIN sys_files AS f ON f.id = b.file_id
  LEFT JOIN memory_docs AS d ON d.id = b.doc_id
WHERE b.id > :after ORDER BY b.id LIMIT +:limit;

-- name: list_blobs_of_note
-- Those that hang on one note.
SELECT b.id, b.file_id, b.name, b.media_type, b.doc_id, b.report_id, b.author, b.created_at,
  f.size_bytes, f.digest, d.path AS note_path
FROM blobs AS b JOIN sys_files AS f ON f.id = b.file_id
  LEFT JOIN memory_docs AS d ON d.id = b.doc_id
WHERE b.doc_id = :doc_id AND b.id > :after ORDER BY b.id LIMIT +:limit;

-- name: list_blobs_of_report
-- Those that hang on one report.
SELECT b.id, b.file_id, b.name, b.media_type, b.doc_id, b.report_id, b.author, b.created_at,
  f.size_bytes, f.digest, d.path AS note_path
FROM blobs AS b JOIN sys_files AS f ON f.id = b.file_id
  LEFT JOIN memory_docs AS d ON d.id = b.doc_id
WHERE b.report_id = :report_id AND b.id > :after ORDER BY b.id LIMIT +:limit;

-- name: add_blob
-- A blob holds its file from now on.
INSERT INTO blobs (id, file_id, name, media_type, doc_id, report_id, author, created_at)
VALUES (:id, :file_id, :name, :media_type, :doc_id, :report_id, :author, :now)
RETURNING id AS value;

-- name: place_blob
-- What a blob is called and hangs on from now on.
UPDATE blobs SET name = :name, doc_id = :doc_id, report_id = :report_id WHERE id = :id
RETURNING id AS value;

-- name: remove_blob
-- It lets go of its file.
DELETE FROM blobs WHERE id = :id RETURNING id AS value;

-- name: remove_blobs_of_report
-- Those that hang on a report, before it goes: afterwards nothing would say who may be told.
DELETE FROM blobs WHERE report_id = :report_id RETURNING id AS value;

-- name: remove_blobs_of_forgotten_notes
-- Those of notes that are gone with every version of theirs.
DELETE FROM blobs WHERE doc_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM memory_docs AS d WHERE d.id = blobs.doc_id)
  AND NOT EXISTS (SELECT 1 FROM memory_doc_versions AS v WHERE v.doc_id = blobs.doc_id)
RETURNING id AS value;

-- name: find_doc_of_path
-- The note at a path, or the one that stood there last and stands nowhere now.
SELECT coalesce(
  (SELECT d.id FROM memory_docs AS d WHERE d.path = :path),
  (SELECT v.doc_id FROM memory_doc_versions AS v WHERE v.path = :path
    AND NOT EXISTS (SELECT 1 FROM memory_docs AS e WHERE e.id = v.doc_id)
    ORDER BY v.version DESC LIMIT 1)) AS value;

-- name: is_note_there
-- Whether a note of this id stands somewhere.
SELECT EXISTS (SELECT 1 FROM memory_docs WHERE id = :id) AS value;

-- name: find_report_rights
-- What decides who may read a report.
SELECT subject_user_id, producer_user_id, audience FROM reports WHERE id = :id;
