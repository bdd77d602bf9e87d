-- What others did to the member's account: their own copy, which outlives the registry's record.

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
) STRICT;
