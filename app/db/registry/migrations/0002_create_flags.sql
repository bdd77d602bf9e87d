-- Switches of the whole instance; an absent row is the declared default.

CREATE TABLE flags (
  name TEXT NOT NULL PRIMARY KEY,  -- one that the program declares
  value TEXT NOT NULL CHECK (json_valid(value)), -- JSON
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1 -- guards every update
) STRICT, WITHOUT ROWID;

-- Every change of a flag.
CREATE TABLE flag_changes (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  name TEXT NOT NULL,              -- of the flag
  before TEXT,                     -- JSON; NULL: the default
  after TEXT,                      -- JSON; NULL: the default again
  changed_by TEXT NOT NULL,        -- user id, or `box` for who is at the machine
  changed_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX flag_changes_of ON flag_changes (name, changed_at);
