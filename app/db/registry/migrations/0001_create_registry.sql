-- What the group must know before anyone signs in. Readable without any member's key;
-- nothing here yields one.

-- Named sets of tools, which roles are given.
CREATE TABLE tool_permission_groups (
  id TEXT NOT NULL PRIMARY KEY,   -- a slug
  name TEXT NOT NULL,             -- shown to people
  description TEXT NOT NULL DEFAULT '', -- shown to people
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

-- What a member may see and do by default; `admin` may everything.
CREATE TABLE roles (
  id TEXT NOT NULL PRIMARY KEY,   -- a slug: admin, member, guest
  label TEXT NOT NULL,
  permission_group TEXT NOT NULL REFERENCES tool_permission_groups (id), -- its tools
  attrs TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(attrs)), -- read in one typed place
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

-- What a role may do beyond its members' own stores.
CREATE TABLE role_capabilities (
  role_id TEXT NOT NULL REFERENCES roles (id) ON DELETE CASCADE, -- who may
  capability TEXT NOT NULL -- what
    CHECK (capability IN ('users.read', 'users.manage',
    'supervision.manage', 'config.manage', 'roles.manage', 'grants.manage', 'reports.publish',
    'agents.manage', 'operate', 'audit.read')),
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (role_id, capability)
) STRICT, WITHOUT ROWID;

-- One row a member: who they are, where their key is wrapped, what state their store is in.
CREATE TABLE users (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7; also the name of the member's file
  username TEXT NOT NULL,         -- as its owner writes it
  username_key TEXT NOT NULL UNIQUE, -- NFKC and case-folded as of its making
  display_name TEXT,
  role_id TEXT NOT NULL REFERENCES roles (id), -- what the member may do
  encrypted INTEGER NOT NULL CHECK (encrypted IN (0, 1)), -- 0: the store is a plain file
  kdf_params TEXT CHECK (kdf_params IS NULL OR json_valid(kdf_params)), -- Argon2id cost
  kdf_salt BLOB,                  -- Argon2id salt, 16 bytes
  database_password BLOB,         -- the data key, wrapped under the password
  password_hash BLOB,             -- Argon2id, of a cleartext member; NULL: nobody signs in
  dek_id TEXT,                    -- random name of the data key
  file_salt BLOB,                 -- first 16 bytes of the encrypted file: tells a swapped one
  password_is_temporary INTEGER NOT NULL DEFAULT 0 -- another chose it, who knows it still
    CHECK (password_is_temporary IN (0, 1)),
  pending_database_password BLOB, -- during a change of key: the new key's wrap
  pending_kdf_params TEXT -- its cost
    CHECK (pending_kdf_params IS NULL OR json_valid(pending_kdf_params)),
  pending_kdf_salt BLOB,          -- its salt
  pending_dek_id TEXT,            -- the new key's name
  pending_file_salt BLOB,         -- the new file's first 16 bytes
  lock_number INTEGER NOT NULL UNIQUE, -- byte offset of the store's locks; never reused
  active INTEGER NOT NULL DEFAULT 1 CHECK (active IN (0, 1)), -- 0: nobody signs in
  store_state TEXT NOT NULL DEFAULT 'open' -- what has the store now
    CHECK (store_state IN ('open', 'closing', 'erasing',
    'rotating', 'restoring', 'migrating', 'converting', 'copying')),
  store_generation INTEGER NOT NULL DEFAULT 1, -- every process lets go when it rises
  quota_bytes INTEGER CHECK (quota_bytes IS NULL OR quota_bytes >= 0), -- NULL: no limit
  work_waiting_since INTEGER,     -- unix milliseconds UTC; NULL: no work waits for the unlock
  next_due_at INTEGER,            -- unix milliseconds UTC
  locale TEXT,                    -- BCP 47
  birthdate TEXT                  -- YYYY-MM-DD, a real day
    CHECK (birthdate IS NULL OR (
    birthdate GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'
    AND date(birthdate, '+0 days') IS birthdate)),
  sex TEXT,                       -- as an administrator typed it
  notes TEXT,                     -- an administrator's, about the member
  schema_version TEXT,            -- mirror of the file's, for the operator; refreshed at unlock
  schema_check TEXT,              -- ok or drift, as of the last unlock
  store_bytes INTEGER,            -- mirror of the file's size
  last_unlocked_at INTEGER,       -- unix milliseconds UTC
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1,
  CHECK ((encrypted = 1 AND database_password IS NOT NULL AND password_hash IS NULL)
    OR (encrypted = 0 AND database_password IS NULL))
) STRICT;

CREATE INDEX users_role ON users (role_id);

CREATE INDEX users_moving ON users (id) WHERE store_state <> 'open';

-- Gives each store the byte by which processes lock it.
CREATE TABLE lock_numbers (
  number INTEGER PRIMARY KEY AUTOINCREMENT -- given out once for ever; rows are taken away again
) STRICT;

-- One row a further way to a member's data key; the password's own is in `users`.
CREATE TABLE key_slots (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- whose it is
  kind TEXT NOT NULL CHECK (kind IN ('recovery', 'session', 'token')), -- its secret
  dek_id TEXT NOT NULL,           -- which data key it wraps
  wrapped_dek BLOB NOT NULL,      -- useless without the secret it is wrapped under
  params TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(params)), -- of the wrap; none so far
  label TEXT NOT NULL DEFAULT '',
  expires_at INTEGER,             -- unix milliseconds UTC; NULL: with its session
  last_used_at INTEGER,           -- unix milliseconds UTC
  revoked_at INTEGER,             -- unix milliseconds UTC
  is_pending INTEGER NOT NULL DEFAULT 0 CHECK (is_pending IN (0, 1)), -- of a key not yet the key
  created_at INTEGER NOT NULL     -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX key_slots_user ON key_slots (user_id);

-- Sign-ins and API tokens, known by their verifiers alone.
CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- whose it is
  kind TEXT NOT NULL CHECK (kind IN ('browser', 'token')), -- a person's or a program's
  is_cookie INTEGER NOT NULL DEFAULT 0 CHECK (is_cookie IN (0, 1)), -- also ends after idle hours
  agent_id TEXT,                  -- fixed at its making
  is_agent INTEGER NOT NULL DEFAULT 0 CHECK (is_agent IN (0, 1)), -- an AI agent has it
  verifier BLOB NOT NULL,         -- SHA-256 of the secret
  slot_id TEXT REFERENCES key_slots (id) ON DELETE SET NULL, -- NULL: opens no store by itself
  needs_store INTEGER NOT NULL DEFAULT 1 CHECK (needs_store IN (0, 1)), -- ends with its slot
  scopes TEXT NOT NULL CHECK (json_valid(scopes)), -- a list; ["*"] for a person's session
  label TEXT NOT NULL DEFAULT '',
  user_agent TEXT,                -- as the client called itself
  started_at INTEGER NOT NULL,    -- unix milliseconds UTC
  ends_at INTEGER NOT NULL,       -- unix milliseconds UTC
  last_seen_at INTEGER NOT NULL,  -- unix milliseconds UTC; written seldom
  password_checked_at INTEGER,    -- unix milliseconds UTC; NULL for tokens
  revoked_at INTEGER              -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_user ON sessions (user_id);

CREATE INDEX sessions_slot ON sessions (slot_id);

-- A place in the group that somebody may take once, choosing their own password.
CREATE TABLE invitations (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7
  verifier BLOB NOT NULL,         -- SHA-256 of the secret
  role_id TEXT NOT NULL REFERENCES roles (id), -- of the member-to-be
  invited_by TEXT NOT NULL,       -- bare: the inviter may be erased
  expires_at INTEGER NOT NULL,    -- unix milliseconds UTC
  used_at INTEGER,                -- unix milliseconds UTC
  created_at INTEGER NOT NULL     -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

-- Counters that slow guessing down; rows may go at any time.
CREATE TABLE sign_in_throttle (
  key BLOB NOT NULL PRIMARY KEY,  -- HMAC; never what was typed
  kind TEXT NOT NULL CHECK (kind IN ('account', 'network', 'success')), -- what it counts
  failures INTEGER NOT NULL,      -- in the window
  window_started_at INTEGER NOT NULL, -- unix milliseconds UTC
  next_allowed_at INTEGER NOT NULL -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_throttle_age ON sign_in_throttle (window_started_at);

-- A directed edge: the supervisor may read what is reported on the subject.
CREATE TABLE supervision (
  subject_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- on whom
  supervisor_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who reads
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (subject_user_id, supervisor_user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX supervision_supervisor ON supervision (supervisor_user_id);

-- How far an agent's completed passes over a member have come.
CREATE TABLE system_agent_coverage (
  agent_id TEXT NOT NULL,         -- bare: agents have no table
  subject_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- on whom
  covered_through INTEGER NOT NULL, -- unix milliseconds UTC; never moves back
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (agent_id, subject_user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX system_agent_coverage_subject ON system_agent_coverage (subject_user_id);

-- Settings of the instance. A member's own are `user_config`, in their store.
CREATE TABLE config (
  key TEXT NOT NULL PRIMARY KEY,  -- name of the setting
  value TEXT NOT NULL CHECK (json_valid(value)), -- its value; never a secret
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

INSERT INTO tool_permission_groups (id, name, description, created_at, updated_at)
VALUES ('default', 'Default', 'The tools every member may use', 0, 0);

INSERT INTO roles (id, label, permission_group, attrs, created_at, updated_at) VALUES
  ('admin', 'Administrator', 'default', '{}', 0, 0),
  ('member', 'Member', 'default', '{}', 0, 0),
  ('guest', 'Guest', 'default', '{"ui_mode": "simple", "auto_grant": false}', 0, 0);
