-- What agents want to write where others read, until their member decides; nowhere else.

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
