-- One owner's content. The file is the owner and the audience: no table has a user_id.
-- Big columns stand last: SQLite walks a row's pages to reach what stands behind them.

CREATE TABLE store_identity (
  place INTEGER NOT NULL PRIMARY KEY CHECK (place = 1), -- one row
  owner_id TEXT NOT NULL,         -- bare: the user's id, or `instance`
  dek_id TEXT,                    -- name of the key the file is under; NULL for a plain file
  epoch TEXT NOT NULL,            -- random; new at restore and import
  format INTEGER NOT NULL,        -- of the file as a whole
  path_key BLOB NOT NULL,         -- random; keys the digests of memory_paths
  created_at INTEGER NOT NULL     -- unix milliseconds UTC
) STRICT;

CREATE TABLE memory_docs (
  rowid INTEGER PRIMARY KEY,      -- ties the search index
  id TEXT NOT NULL UNIQUE,        -- UUIDv7
  path TEXT NOT NULL UNIQUE,      -- canonical, relative to the root
  size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0), -- of content, UTF-8
  lines INTEGER NOT NULL CHECK (lines >= 0), -- of content; an unfinished last one counts
  version INTEGER NOT NULL,       -- goes on from the path's old ones after a delete
  author TEXT NOT NULL,           -- bare: user id, or user id/agent, of this version
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  content TEXT NOT NULL
) STRICT;

CREATE VIEW memory_docs_search (rowid, path, content) AS
SELECT rowid, fts_text(path), fts_text(content) FROM memory_docs;

CREATE VIRTUAL TABLE memory_docs_fts USING fts5 (
  path, content, content = 'memory_docs_search', content_rowid = 'rowid',
  tokenize = "unicode61 remove_diacritics 2"
);

CREATE TRIGGER memory_docs_fts_insert AFTER INSERT ON memory_docs BEGIN
  INSERT INTO memory_docs_fts (rowid, path, content)
  VALUES (NEW.rowid, fts_text(NEW.path), fts_text(NEW.content));
END;

CREATE TRIGGER memory_docs_fts_delete AFTER DELETE ON memory_docs BEGIN
  INSERT INTO memory_docs_fts (memory_docs_fts, rowid, path, content)
  VALUES ('delete', OLD.rowid, fts_text(OLD.path), fts_text(OLD.content));
END;

CREATE TRIGGER memory_docs_fts_update AFTER UPDATE OF path, content ON memory_docs BEGIN
  INSERT INTO memory_docs_fts (memory_docs_fts, rowid, path, content)
  VALUES ('delete', OLD.rowid, fts_text(OLD.path), fts_text(OLD.content));
  INSERT INTO memory_docs_fts (rowid, path, content)
  VALUES (NEW.rowid, fts_text(NEW.path), fts_text(NEW.content));
END;

CREATE TABLE memory_paths (
  path_digest BLOB NOT NULL PRIMARY KEY, -- HMAC-SHA-256 of the path under path_key
  last_version INTEGER NOT NULL,  -- outlives delete, move and purge: an old ETag never matches
  created_at INTEGER NOT NULL     -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_doc_versions (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,             -- where the note stood then
  version INTEGER NOT NULL,
  doc_id TEXT NOT NULL,           -- bare: the note may be gone
  size_bytes INTEGER NOT NULL,    -- of content, UTF-8; 0 for a deletion
  author TEXT NOT NULL,           -- bare, as in memory_docs
  via TEXT NOT NULL CHECK (via IN ('put', 'append', 'edit', 'move', 'restore', 'delete')),
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC; of the first of several appends
  content TEXT,                   -- the text this version made; NULL for a deletion
  UNIQUE (path, version)
) STRICT;

CREATE INDEX memory_doc_versions_doc ON memory_doc_versions (doc_id);

CREATE TABLE access_log (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,            -- unix milliseconds UTC
  session_id TEXT,                -- bare: session or token; NULL for recovery
  agent_id TEXT,                  -- bare; NULL for a person
  way TEXT NOT NULL CHECK (way IN ('sign_up', 'sign_in', 'session', 'token', 'unlock', 'recovery')),
  network TEXT NOT NULL           -- /24 or /64 it came from
) STRICT;

CREATE INDEX access_log_at ON access_log (at);

CREATE TABLE reports (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  summary TEXT,
  severity TEXT NOT NULL CHECK (severity IN ('info', 'notice', 'alert')),
  subject_user_id TEXT,           -- bare: users are in the registry
  audience TEXT NOT NULL CHECK (audience IN ('owner', 'admins', 'supervisors')),
  period_start INTEGER,           -- unix milliseconds UTC
  period_end INTEGER,             -- unix milliseconds UTC
  produced_by TEXT NOT NULL,
  producer_user_id TEXT NOT NULL, -- bare, as subject_user_id
  run_id TEXT,                    -- bare: the run may be in another store
  metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)), -- counters, never contents
  read_at INTEGER,                -- unix milliseconds UTC; the first reader's
  read_by TEXT,                   -- bare, as subject_user_id
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  body TEXT NOT NULL,
  CHECK (audience <> 'supervisors' OR subject_user_id IS NOT NULL)
) STRICT;

CREATE INDEX reports_created ON reports (created_at, id);

CREATE TABLE secrets (
  key TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL,            -- never in events, audit, logs or listings; sealed in system.db
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE TABLE user_config (
  key TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL CHECK (json_valid(value)),
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;
