-- Audit rows are chained: each holds a digest of its own fields and of the row before it.

ALTER TABLE sys_audit ADD COLUMN salt BLOB;
ALTER TABLE sys_audit ADD COLUMN fields_digest BLOB;
ALTER TABLE sys_audit ADD COLUMN row_hash BLOB;

CREATE INDEX sys_audit_when ON sys_audit (occurred_at) WHERE fields IS NOT NULL;

-- What stands for the oldest rows, once they are removed.
CREATE TABLE sys_audit_checkpoints (
  through_seq INTEGER PRIMARY KEY, -- the last row removed
  row_hash BLOB NOT NULL,          -- its hash, on which the next row's builds
  removed INTEGER NOT NULL,        -- how many rows went with it
  created_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT;
