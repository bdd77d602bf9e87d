-- Bytes that belong to the store, each named by its maker; some are held by a note or report.

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
