-- Requests that may come twice and act once.

-- Random keys of this store, for what must be told again but not told to others.
CREATE TABLE sys_store_keys (
  name TEXT NOT NULL PRIMARY KEY,  -- what it is for
  key BLOB NOT NULL CHECK (octet_length(key) = 32) -- random bytes, made with the store
) STRICT, WITHOUT ROWID;

INSERT INTO sys_store_keys (name, key) VALUES
  ('request_body', randomblob(32)),
  ('file_content', randomblob(32));

CREATE TABLE sys_idempotency_keys (
  caller TEXT NOT NULL,            -- bare: the user, and the agent after `/`
  key TEXT NOT NULL,               -- as the caller chose it
  route TEXT NOT NULL,             -- method and template
  body_mac BLOB NOT NULL,          -- HMAC-SHA-256 of the whole request, under `request_body`
  state TEXT NOT NULL CHECK (state IN ('in_progress', 'done')),
  operation TEXT,                  -- bare: what settles it while in progress; NULL for one write
  status INTEGER,                  -- HTTP status of the answer; NULL while it is not known
  headers TEXT CHECK (headers IS NULL OR json_valid(headers)), -- those that are part of it
  body BLOB,                       -- of the answer; NULL when it is not kept
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  expires_at INTEGER NOT NULL,     -- unix milliseconds UTC
  PRIMARY KEY (caller, key),
  CHECK (state = 'in_progress' OR status IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX sys_idempotency_keys_expiry ON sys_idempotency_keys (expires_at);
CREATE INDEX sys_idempotency_keys_open ON sys_idempotency_keys (operation)
  WHERE state = 'in_progress';
