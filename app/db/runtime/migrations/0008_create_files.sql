-- Bytes too big for a row: one encrypted file each, known by its row alone.

CREATE TABLE sys_files (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  name TEXT NOT NULL UNIQUE,       -- of the file, random
  key BLOB NOT NULL CHECK (octet_length(key) = 32), -- of its content alone
  digest BLOB NOT NULL UNIQUE,     -- HMAC-SHA-256 of the content, under the store's `file_content`
  size_bytes INTEGER NOT NULL,     -- of the content
  refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0), -- fields that hold it, by triggers
  unreferenced_since INTEGER,      -- unix milliseconds UTC; NULL while some field holds it
  encoding INTEGER,                -- form of the file; NULL is the first
  created_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_files_unreferenced ON sys_files (unreferenced_since)
  WHERE unreferenced_since IS NOT NULL;
