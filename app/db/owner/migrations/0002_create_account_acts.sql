-- What others did to the member's account: their own copy, taken at each unlock.

CREATE TABLE account_acts (
  seq INTEGER PRIMARY KEY,         -- of the row it copies in the registry's audit
  occurred_at INTEGER NOT NULL,    -- unix milliseconds UTC
  entity TEXT NOT NULL,
  kind TEXT NOT NULL,              -- insert, update or delete
  actor_sub TEXT NOT NULL,         -- bare: users are in the registry
  action TEXT NOT NULL,
  fields TEXT CHECK (fields IS NULL OR json_valid(fields))
) STRICT;
