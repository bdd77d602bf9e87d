-- Made by scripts/schema from the migrations; a test holds the two equal.

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

CREATE TABLE account_acts (
  id INTEGER PRIMARY KEY,          -- in the order of the acts
  source TEXT NOT NULL UNIQUE,     -- tells the registry's row from every other: its hash, as hex
  seq INTEGER NOT NULL,            -- of that row
  occurred_at INTEGER NOT NULL,    -- unix milliseconds UTC
  entity TEXT NOT NULL,
  kind TEXT NOT NULL,              -- insert, update or delete
  actor_sub TEXT NOT NULL,         -- bare: users are in the registry
  action TEXT NOT NULL,
  fields TEXT CHECK (fields IS NULL OR json_valid(fields)) -- NULL: they were gone already
, record_id TEXT) STRICT;

CREATE TABLE scheduled_jobs (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  title TEXT NOT NULL,
  description TEXT,
  prompt TEXT,                     -- what the program that runs it is told
  agent_id TEXT,                   -- bare: who is to run it
  session_id TEXT,                 -- bare: the conversation it goes on with
  run_context TEXT CHECK (run_context IS NULL OR json_valid(run_context)),
  origin_ref TEXT,                 -- what it was made from
  parent_session_id TEXT,          -- bare
  running_session_id TEXT,         -- bare; NULL while it does not run
  running_since INTEGER,           -- unix milliseconds UTC; NULL while it does not run
  last_run_at INTEGER,             -- unix milliseconds UTC
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE TABLE job_runs (
  id TEXT NOT NULL PRIMARY KEY,    -- that of the job
  job_id TEXT NOT NULL,            -- of scheduled_jobs, which may be gone
  session_id TEXT,                 -- bare
  started_at INTEGER NOT NULL,     -- unix milliseconds UTC
  completed_at INTEGER,            -- unix milliseconds UTC; NULL while it runs
  duration_ms INTEGER,
  status TEXT CHECK (status IN ('completed', 'failed', 'cancelled')), -- NULL while it runs
  final_response TEXT,
  error TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX job_runs_of ON job_runs (job_id, started_at);

CREATE INDEX job_runs_completed ON job_runs (completed_at) WHERE completed_at IS NOT NULL;

CREATE TRIGGER job_runs_begin AFTER UPDATE OF status ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND NEW.status = 'running' BEGIN
  UPDATE scheduled_jobs SET running_since = NEW.updated_at, last_run_at = NEW.updated_at,
    running_session_id = session_id WHERE id = NEW.schedule_id;
  INSERT INTO job_runs (id, job_id, session_id, started_at)
  SELECT NEW.id, NEW.schedule_id,
    (SELECT session_id FROM scheduled_jobs WHERE id = NEW.schedule_id), NEW.updated_at
  WHERE NOT EXISTS (SELECT 1 FROM job_runs WHERE id = NEW.id);
END;

CREATE TRIGGER job_runs_pause AFTER UPDATE OF status ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND OLD.status = 'running' AND NEW.status <> 'running' BEGIN
  UPDATE scheduled_jobs SET running_since = NULL, running_session_id = NULL
  WHERE id = NEW.schedule_id AND NOT EXISTS (SELECT 1 FROM sys_jobs AS j
    WHERE j.schedule_id = NEW.schedule_id AND j.finished_at IS NULL AND j.status = 'running');
END;

CREATE TRIGGER job_runs_end AFTER UPDATE OF finished_at ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND NEW.finished_at IS NOT NULL BEGIN
  INSERT INTO job_runs (id, job_id, started_at)
  SELECT NEW.id, NEW.schedule_id, NEW.finished_at
  WHERE NOT EXISTS (SELECT 1 FROM job_runs WHERE id = NEW.id);
  UPDATE job_runs SET completed_at = NEW.finished_at,
    duration_ms = NEW.finished_at - started_at,
    status = CASE NEW.status WHEN 'done' THEN 'completed' WHEN 'dead' THEN 'failed'
      ELSE 'cancelled' END,
    final_response = iif(json_type(NEW.result) = 'object',
      coalesce(NEW.result ->> '$.final_response', NEW.result), NEW.result ->> '$'),
    session_id = coalesce(iif(json_type(NEW.result) = 'object',
      NEW.result ->> '$.session_id', NULL), session_id),
    error = iif(NEW.status = 'done', NULL, NEW.last_error)
  WHERE id = NEW.id;
END;

CREATE TRIGGER job_runs_again AFTER UPDATE OF finished_at ON sys_jobs
WHEN NEW.schedule_id IS NOT NULL AND NEW.finished_at IS NULL AND OLD.finished_at IS NOT NULL BEGIN
  UPDATE job_runs SET completed_at = NULL, duration_ms = NULL, status = NULL,
    final_response = NULL, error = NULL
  WHERE id = NEW.id;
END;

CREATE TABLE blobs (
  id TEXT NOT NULL PRIMARY KEY,    -- UUID that its maker chose
  file_id TEXT NOT NULL REFERENCES sys_files (id),
  name TEXT,                       -- as a person would call it
  media_type TEXT NOT NULL,
  doc_id TEXT,                     -- of the note it hangs on, which may be deleted and restored
  report_id TEXT REFERENCES reports (id) ON DELETE CASCADE,
  author TEXT NOT NULL,
  created_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX blobs_file ON blobs (file_id);

CREATE INDEX blobs_doc ON blobs (doc_id) WHERE doc_id IS NOT NULL;

CREATE INDEX blobs_report ON blobs (report_id) WHERE report_id IS NOT NULL;

CREATE TRIGGER blobs_counted_insert AFTER INSERT ON blobs BEGIN
  UPDATE sys_files SET refs = refs + 1, unreferenced_since = NULL WHERE id = NEW.file_id;
END;

CREATE TRIGGER blobs_counted_delete AFTER DELETE ON blobs BEGIN
  UPDATE sys_files SET refs = refs - 1,
    unreferenced_since = iif(refs = 1, sys_now_ms(), NULL) WHERE id = OLD.file_id;
END;

CREATE TRIGGER blobs_counted_update AFTER UPDATE OF file_id ON blobs
WHEN OLD.file_id IS NOT NEW.file_id BEGIN
  UPDATE sys_files SET refs = refs + 1, unreferenced_since = NULL WHERE id = NEW.file_id;
  UPDATE sys_files SET refs = refs - 1,
    unreferenced_since = iif(refs = 1, sys_now_ms(), NULL) WHERE id = OLD.file_id;
END;

CREATE TABLE pending_writes (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7, that of the approval
  tool TEXT NOT NULL,              -- as write_file
  path TEXT NOT NULL,              -- canonical, with its root
  content TEXT,                    -- the text; NULL where none is brought
  arguments TEXT NOT NULL CHECK (json_valid(arguments)), -- JSON: what else it was asked
  base_version TEXT,               -- what stood there when it was asked; NULL: nothing
  agent_id TEXT,                   -- bare: who asked; NULL: an agent without a name
  size_bytes INTEGER NOT NULL,     -- of the text and of the edits' texts
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  expires_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sys_track_memory_docs_insert AFTER INSERT ON memory_docs BEGIN INSERT INTO sys_changes VALUES ('memory_doc', NEW.id, 'insert', 'memory_doc.created', 'members', json_object('path', NEW.path, 'version', NEW.version, 'size_bytes', NEW.size_bytes, 'author', NEW.author), sys_changed_fields('path,version', 'content', NULL, NEW.path, NULL, NEW.version, NULL, octet_length(NEW.content)), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_memory_docs_update AFTER UPDATE ON memory_docs WHEN OLD.path IS NOT NEW.path OR OLD.version IS NOT NEW.version OR OLD.content IS NOT NEW.content BEGIN INSERT INTO sys_changes VALUES ('memory_doc', NEW.id, 'update', 'memory_doc.updated', 'members', json_object('path', NEW.path, 'version', NEW.version, 'size_bytes', NEW.size_bytes, 'author', NEW.author), sys_changed_fields('path,version', 'content', OLD.path, NEW.path, OLD.version, NEW.version, iif(OLD.content IS NEW.content, NULL, octet_length(OLD.content)), iif(OLD.content IS NEW.content, NULL, octet_length(NEW.content))), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_memory_docs_delete AFTER DELETE ON memory_docs BEGIN INSERT INTO sys_changes VALUES ('memory_doc', OLD.id, 'delete', 'memory_doc.deleted', 'members', json_object('path', OLD.path, 'version', OLD.version, 'size_bytes', OLD.size_bytes, 'author', OLD.author), sys_changed_fields('path,version', 'content', OLD.path, NULL, OLD.version, NULL, octet_length(OLD.content), NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_reports_insert AFTER INSERT ON reports BEGIN INSERT INTO sys_changes VALUES ('report', NEW.id, 'insert', 'report.created', CASE NEW.audience WHEN 'supervisors' THEN 'supervisors' ELSE 'admins' END, json_object('kind', NEW.kind, 'severity', NEW.severity, 'audience', NEW.audience, 'subject_user_id', NEW.subject_user_id, 'producer_user_id', NEW.producer_user_id), sys_changed_fields('kind,severity,subject_user_id,audience,produced_by,read_at', 'title,body', NULL, NEW.kind, NULL, NEW.severity, NULL, NEW.subject_user_id, NULL, NEW.audience, NULL, NEW.produced_by, NULL, NEW.read_at, NULL, octet_length(NEW.title), NULL, octet_length(NEW.body)), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_reports_update AFTER UPDATE ON reports WHEN OLD.kind IS NOT NEW.kind OR OLD.severity IS NOT NEW.severity OR OLD.subject_user_id IS NOT NEW.subject_user_id OR OLD.audience IS NOT NEW.audience OR OLD.produced_by IS NOT NEW.produced_by OR OLD.read_at IS NOT NEW.read_at OR OLD.title IS NOT NEW.title OR OLD.body IS NOT NEW.body BEGIN INSERT INTO sys_changes VALUES ('report', NEW.id, 'update', CASE WHEN OLD.read_at IS NULL AND NEW.read_at IS NOT NULL THEN 'report.read' ELSE 'report.updated' END, CASE NEW.audience WHEN 'supervisors' THEN 'supervisors' ELSE 'admins' END, json_object('kind', NEW.kind, 'severity', NEW.severity, 'audience', NEW.audience, 'subject_user_id', NEW.subject_user_id, 'producer_user_id', NEW.producer_user_id), sys_changed_fields('kind,severity,subject_user_id,audience,produced_by,read_at', 'title,body', OLD.kind, NEW.kind, OLD.severity, NEW.severity, OLD.subject_user_id, NEW.subject_user_id, OLD.audience, NEW.audience, OLD.produced_by, NEW.produced_by, OLD.read_at, NEW.read_at, iif(OLD.title IS NEW.title, NULL, octet_length(OLD.title)), iif(OLD.title IS NEW.title, NULL, octet_length(NEW.title)), iif(OLD.body IS NEW.body, NULL, octet_length(OLD.body)), iif(OLD.body IS NEW.body, NULL, octet_length(NEW.body))), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_reports_delete AFTER DELETE ON reports BEGIN INSERT INTO sys_changes VALUES ('report', OLD.id, 'delete', 'report.deleted', CASE OLD.audience WHEN 'supervisors' THEN 'supervisors' ELSE 'admins' END, json_object('kind', OLD.kind, 'severity', OLD.severity, 'audience', OLD.audience, 'subject_user_id', OLD.subject_user_id, 'producer_user_id', OLD.producer_user_id), sys_changed_fields('kind,severity,subject_user_id,audience,produced_by,read_at', 'title,body', OLD.kind, NULL, OLD.severity, NULL, OLD.subject_user_id, NULL, OLD.audience, NULL, OLD.produced_by, NULL, OLD.read_at, NULL, octet_length(OLD.title), NULL, octet_length(OLD.body), NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_secrets_insert AFTER INSERT ON secrets BEGIN INSERT INTO sys_changes VALUES ('secret', NEW.key, 'insert', 'secret.created', 'admins', json_object(), sys_changed_fields('version', 'value', NULL, NEW.version, NULL, iif(NEW.value IS NULL, NULL, '[redacted]')), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_secrets_update AFTER UPDATE ON secrets WHEN OLD.version IS NOT NEW.version OR OLD.value IS NOT NEW.value BEGIN INSERT INTO sys_changes VALUES ('secret', NEW.key, 'update', 'secret.updated', 'admins', json_object(), sys_changed_fields('version', 'value', OLD.version, NEW.version, iif(OLD.value IS NEW.value, NULL, iif(OLD.value IS NULL, NULL, '[redacted]')), iif(OLD.value IS NEW.value, NULL, iif(NEW.value IS NULL, NULL, '[redacted]'))), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_secrets_delete AFTER DELETE ON secrets BEGIN INSERT INTO sys_changes VALUES ('secret', OLD.key, 'delete', 'secret.deleted', 'admins', json_object(), sys_changed_fields('version', 'value', OLD.version, NULL, iif(OLD.value IS NULL, NULL, '[redacted]'), NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_user_config_insert AFTER INSERT ON user_config BEGIN INSERT INTO sys_changes VALUES ('user_config', NEW.key, 'insert', 'user_config.created', 'admins', json_object('key', NEW.key), sys_changed_fields('version', 'value', NULL, NEW.version, NULL, octet_length(NEW.value)), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_user_config_update AFTER UPDATE ON user_config WHEN OLD.version IS NOT NEW.version OR OLD.value IS NOT NEW.value BEGIN INSERT INTO sys_changes VALUES ('user_config', NEW.key, 'update', 'user_config.updated', 'admins', json_object('key', NEW.key), sys_changed_fields('version', 'value', OLD.version, NEW.version, iif(OLD.value IS NEW.value, NULL, octet_length(OLD.value)), iif(OLD.value IS NEW.value, NULL, octet_length(NEW.value))), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_user_config_delete AFTER DELETE ON user_config BEGIN INSERT INTO sys_changes VALUES ('user_config', OLD.key, 'delete', 'user_config.deleted', 'admins', json_object('key', OLD.key), sys_changed_fields('version', 'value', OLD.version, NULL, octet_length(OLD.value), NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_blobs_insert AFTER INSERT ON blobs BEGIN INSERT INTO sys_changes VALUES ('blob', NEW.id, 'insert', 'blob.created', iif(NEW.report_id IS NULL, 'members', 'supervisors'), json_object('doc_id', NEW.doc_id, 'report_id', NEW.report_id, 'author', NEW.author, 'report', json((SELECT json_object('audience', r.audience, 'subject_user_id', r.subject_user_id, 'producer_user_id', r.producer_user_id) FROM reports AS r WHERE r.id = NEW.report_id))), sys_changed_fields('media_type,doc_id,report_id', 'name', NULL, NEW.media_type, NULL, NEW.doc_id, NULL, NEW.report_id, NULL, octet_length(NEW.name)), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_blobs_update AFTER UPDATE ON blobs WHEN OLD.media_type IS NOT NEW.media_type OR OLD.doc_id IS NOT NEW.doc_id OR OLD.report_id IS NOT NEW.report_id OR OLD.name IS NOT NEW.name BEGIN INSERT INTO sys_changes VALUES ('blob', NEW.id, 'update', 'blob.updated', iif(NEW.report_id IS NULL, 'members', 'supervisors'), json_object('doc_id', NEW.doc_id, 'report_id', NEW.report_id, 'author', NEW.author, 'report', json((SELECT json_object('audience', r.audience, 'subject_user_id', r.subject_user_id, 'producer_user_id', r.producer_user_id) FROM reports AS r WHERE r.id = NEW.report_id))), sys_changed_fields('media_type,doc_id,report_id', 'name', OLD.media_type, NEW.media_type, OLD.doc_id, NEW.doc_id, OLD.report_id, NEW.report_id, iif(OLD.name IS NEW.name, NULL, octet_length(OLD.name)), iif(OLD.name IS NEW.name, NULL, octet_length(NEW.name))), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_blobs_delete AFTER DELETE ON blobs BEGIN INSERT INTO sys_changes VALUES ('blob', OLD.id, 'delete', 'blob.deleted', iif(OLD.report_id IS NULL, 'members', 'supervisors'), json_object('doc_id', OLD.doc_id, 'report_id', OLD.report_id, 'author', OLD.author, 'report', json((SELECT json_object('audience', r.audience, 'subject_user_id', r.subject_user_id, 'producer_user_id', r.producer_user_id) FROM reports AS r WHERE r.id = OLD.report_id))), sys_changed_fields('media_type,doc_id,report_id', 'name', OLD.media_type, NULL, OLD.doc_id, NULL, OLD.report_id, NULL, octet_length(OLD.name), NULL), sys_now_ms(), sys_new_salt(), NULL); END;
