-- name: find_small_note
-- A note for the event loop: its content is NULL when it has more bytes than `inline_max`.
-- inline: one row by unique key, its content bounded
SELECT version, CASE WHEN size_bytes <= :inline_max THEN content END AS content
FROM memory_docs WHERE path = :path;

-- name: find_note
-- A note with its content.
SELECT id, path, size_bytes, lines, version, author, created_at, updated_at, content
FROM memory_docs WHERE path = :path;

-- name: find_note_meta
-- A note without its content.
-- inline: one small row by unique key
SELECT id, path, size_bytes, lines, version, author, created_at, updated_at
FROM memory_docs WHERE path = :path;

-- name: find_note_beginning
-- The first characters of a note.
SELECT substr(content, 1, :length) AS value FROM memory_docs WHERE path = :path;

-- name: find_line_start
-- Whether text added to the note would begin a line of its own: 1 or 0.
-- As bytes, since to count characters from the end means to read all.
SELECT content = '' OR substr(CAST(content AS BLOB), -1) = x'0a' AS value FROM memory_docs
WHERE path = :path;

-- name: find_note_below
-- The first path of a range, to tell whether there is any.
-- inline: one small value by unique key
SELECT path AS value FROM memory_docs WHERE path >= :low AND path < :high ORDER BY path LIMIT 1;

-- name: list_notes
-- The notes of a range of paths, in the order of their bytes; a limit of -1 is none.
SELECT id, path, size_bytes, lines, version, author, created_at, updated_at
FROM memory_docs WHERE path >= :low AND path < :high ORDER BY path LIMIT +:limit;

-- name: count_notes
-- How many notes there are.
-- scan: the index of ids alone; asked when a note is made
SELECT count(*) AS value FROM memory_docs;

-- name: sum_pages
-- Bytes of the file's pages that hold something, as they are in this transaction.
-- scan: numbers of the file's head; SQLite calls every use of a virtual table a scan
SELECT ((SELECT page_count FROM pragma_page_count)
  - (SELECT freelist_count FROM pragma_freelist_count))
  * (SELECT page_size FROM pragma_page_size) AS value;

-- name: add_note
-- A note where none is.
INSERT INTO memory_docs (id, path, size_bytes, lines, version, author, created_at, updated_at,
  content)
VALUES (:id, :path, :size_bytes, :lines, :version, :author, :now, :now, :content)
RETURNING id, path, size_bytes, lines, version, author, created_at, updated_at;

-- name: set_note_content
-- Replaces the text of the version that was read; nothing when another stands there by now.
UPDATE memory_docs SET content = :content, size_bytes = :size_bytes, lines = :lines,
  version = :version, author = :author, updated_at = :now
WHERE id = :id AND version = :read_version
RETURNING id, path, size_bytes, lines, version, author, created_at, updated_at;

-- name: append_to_note
-- Adds text to the version that was read; nothing when another stands there by now.
UPDATE memory_docs SET content = content || :added, size_bytes = :size_bytes, lines = :lines,
  version = :version, author = :author, updated_at = :now
WHERE id = :id AND version = :read_version
RETURNING id, path, size_bytes, lines, version, author, created_at, updated_at;

-- name: set_note_path
-- Moves the version that was read; nothing when another stands there by now.
UPDATE memory_docs SET path = :path, version = :version, author = :author, updated_at = :now
WHERE id = :id AND version = :read_version
RETURNING id, path, size_bytes, lines, version, author, created_at, updated_at;

-- name: remove_note
-- Removes the version that was read; nothing when another stands there by now.
DELETE FROM memory_docs WHERE id = :id AND version = :read_version
RETURNING id, path, size_bytes, lines, version, author, created_at, updated_at;

-- name: search_notes
-- The best notes for a MATCH expression, each with its first characters; a word in the path
-- counts four times.
-- scan: the index answers; SQLite calls every use of a virtual table a scan
SELECT d.path, -h.rank AS score, d.updated_at, substr(d.content, 1, :length) AS beginning
FROM (
  SELECT rowid, rank FROM memory_docs_fts
  WHERE memory_docs_fts MATCH :match AND rank MATCH 'bm25(4.0, 1.0)' ORDER BY rank LIMIT +:limit
) AS h
JOIN memory_docs AS d ON d.rowid = h.rowid
ORDER BY h.rank, d.path;

-- name: optimize_search_index
-- Merges the index into one piece, so that the words of removed text leave it for good.
INSERT INTO memory_docs_fts (memory_docs_fts) VALUES ('optimize');
