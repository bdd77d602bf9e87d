-- What keeps a store small, and what its operator did by hand.

CREATE TABLE sys_housekeeping (
  name TEXT NOT NULL PRIMARY KEY,  -- of the round
  lease_owner TEXT,                -- NULL while nobody is at it
  lease_until INTEGER,             -- unix milliseconds UTC
  generation INTEGER NOT NULL DEFAULT 0, -- of the round; who lost it can write nothing
  last_started_at INTEGER,         -- unix milliseconds UTC
  last_completed_at INTEGER,       -- unix milliseconds UTC; moves only at the end of a round
  removed INTEGER NOT NULL DEFAULT 0 -- rows and files of the last whole round
) STRICT, WITHOUT ROWID;

CREATE TABLE sys_operator_actions (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  acted_at INTEGER NOT NULL,       -- unix milliseconds UTC
  action TEXT NOT NULL,            -- as job.retry
  item TEXT NOT NULL,              -- bare: id of what was acted on
  item_state TEXT NOT NULL CHECK (json_valid(item_state)), -- as it was then; never a payload
  operator TEXT NOT NULL           -- bare: user id, or `box` for who is at the machine
) STRICT, WITHOUT ROWID;
