-- Made by scripts/schema from the migrations; a test holds the two equal.

CREATE TABLE tool_permission_groups (
  id TEXT NOT NULL PRIMARY KEY,   -- a slug
  name TEXT NOT NULL,             -- shown to people
  description TEXT NOT NULL DEFAULT '', -- shown to people
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE TABLE roles (
  id TEXT NOT NULL PRIMARY KEY,   -- a slug: admin, member, guest
  label TEXT NOT NULL,
  permission_group TEXT NOT NULL REFERENCES tool_permission_groups (id), -- its tools
  attrs TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(attrs)), -- read in one typed place
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE TABLE role_capabilities (
  role_id TEXT NOT NULL REFERENCES roles (id) ON DELETE CASCADE, -- who may
  capability TEXT NOT NULL -- what
    CHECK (capability IN ('users.read', 'users.manage',
    'supervision.manage', 'config.manage', 'roles.manage', 'grants.manage', 'reports.publish',
    'agents.manage', 'operate', 'audit.read')),
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (role_id, capability)
) STRICT, WITHOUT ROWID;

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
  version INTEGER NOT NULL DEFAULT 1, migration_failed TEXT,
  CHECK ((encrypted = 1 AND database_password IS NOT NULL AND password_hash IS NULL)
    OR (encrypted = 0 AND database_password IS NULL))
) STRICT;

CREATE INDEX users_role ON users (role_id);

CREATE INDEX users_moving ON users (id) WHERE store_state <> 'open';

CREATE TABLE lock_numbers (
  number INTEGER PRIMARY KEY AUTOINCREMENT -- given out once for ever; rows are taken away again
) STRICT;

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

CREATE TABLE invitations (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7
  verifier BLOB NOT NULL,         -- SHA-256 of the secret
  role_id TEXT NOT NULL REFERENCES roles (id), -- of the member-to-be
  invited_by TEXT NOT NULL,       -- bare: the inviter may be erased
  expires_at INTEGER NOT NULL,    -- unix milliseconds UTC
  used_at INTEGER,                -- unix milliseconds UTC
  created_at INTEGER NOT NULL     -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE TABLE sign_in_throttle (
  key BLOB NOT NULL PRIMARY KEY,  -- HMAC; never what was typed
  kind TEXT NOT NULL CHECK (kind IN ('account', 'network', 'success')), -- what it counts
  failures INTEGER NOT NULL,      -- in the window
  window_started_at INTEGER NOT NULL, -- unix milliseconds UTC
  next_allowed_at INTEGER NOT NULL -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_throttle_age ON sign_in_throttle (window_started_at);

CREATE TABLE supervision (
  subject_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- on whom
  supervisor_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who reads
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (subject_user_id, supervisor_user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX supervision_supervisor ON supervision (supervisor_user_id);

CREATE TABLE system_agent_coverage (
  agent_id TEXT NOT NULL,         -- bare: agents have no table
  subject_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- on whom
  covered_through INTEGER NOT NULL, -- unix milliseconds UTC; never moves back
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (agent_id, subject_user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX system_agent_coverage_subject ON system_agent_coverage (subject_user_id);

CREATE TABLE config (
  key TEXT NOT NULL PRIMARY KEY,  -- name of the setting
  value TEXT NOT NULL CHECK (json_valid(value)), -- its value; never a secret
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE TABLE flags (
  name TEXT NOT NULL PRIMARY KEY,  -- one that the program declares
  value TEXT NOT NULL CHECK (json_valid(value)), -- JSON
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1 -- guards every update
) STRICT, WITHOUT ROWID;

CREATE TABLE flag_changes (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  name TEXT NOT NULL,              -- of the flag
  before TEXT,                     -- JSON; NULL: the default
  after TEXT,                      -- JSON; NULL: the default again
  changed_by TEXT NOT NULL,        -- user id, or `box` for who is at the machine
  changed_at INTEGER NOT NULL      -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX flag_changes_of ON flag_changes (name, changed_at);

CREATE TABLE shared_folders (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7; also the name of its folder on the disk
  folder_name TEXT NOT NULL,      -- as its maker writes it; the second part of its paths
  folder_key TEXT NOT NULL UNIQUE, -- NFKC and case-folded as of its making
  description TEXT NOT NULL DEFAULT '', -- shown to people and agents
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1 -- guards every update
) STRICT, WITHOUT ROWID;

CREATE TABLE shared_folder_members (
  folder_id TEXT NOT NULL REFERENCES shared_folders (id) ON DELETE CASCADE, -- where
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who
  can_write INTEGER NOT NULL CHECK (can_write IN (0, 1)), -- 0: reads alone
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (folder_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX shared_folder_members_user ON shared_folder_members (user_id);

CREATE TABLE projects (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7; also the name of its folder on the disk
  owner_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who alone deletes it
  name TEXT NOT NULL,             -- shown to people and agents
  slug TEXT NOT NULL,             -- the third part of its paths; never changes
  description TEXT NOT NULL DEFAULT '', -- shown to people and agents
  run_context TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(run_context)), -- for agents' runs
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1, -- guards every update
  UNIQUE (owner_user_id, slug)
) STRICT, WITHOUT ROWID;

CREATE TABLE project_members (
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE, -- where
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who
  can_write INTEGER NOT NULL CHECK (can_write IN (0, 1)), -- 0: reads alone
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (project_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX project_members_user ON project_members (user_id);

CREATE TABLE disk_files (
  root_id TEXT NOT NULL,          -- bare: of a shared folder or of a project
  path_digest TEXT NOT NULL,      -- SHA-256, hex, of the path inside the folder
  action TEXT NOT NULL CHECK (action IN ('put', 'append', 'edit', 'move', 'delete')), -- what it was
  size_bytes INTEGER,             -- UTF-8; NULL: nothing stands there, or a folder
  content_version INTEGER,        -- 53 bits of the text's SHA-256; NULL: likewise
  author TEXT NOT NULL,           -- bare: user id, or user id/agent id
  pending TEXT CHECK (pending IS NULL OR json_valid(pending)), -- NULL: it is done on the disk
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (root_id, path_digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX disk_files_pending ON disk_files (root_id) WHERE pending IS NOT NULL;

CREATE TABLE removed_roots (
  root_id TEXT NOT NULL PRIMARY KEY, -- bare: of what is there no more
  kind TEXT NOT NULL CHECK (kind IN ('shared', 'projects')), -- where its folder lies
  removed_at INTEGER NOT NULL     -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

CREATE TRIGGER shared_folders_removed AFTER DELETE ON shared_folders BEGIN
  DELETE FROM disk_files WHERE root_id = OLD.id;
  INSERT INTO removed_roots (root_id, kind, removed_at) VALUES (OLD.id, 'shared', sys_now_ms());
END;

CREATE TRIGGER projects_removed AFTER DELETE ON projects BEGIN
  DELETE FROM disk_files WHERE root_id = OLD.id;
  INSERT INTO removed_roots (root_id, kind, removed_at) VALUES (OLD.id, 'projects', sys_now_ms());
END;

CREATE TABLE approval_rules (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7
  agent_id TEXT,                   -- bare: whom it is about; NULL: every agent
  source TEXT CHECK (source IN ('files', 'tools', 'mcp')), -- the surface; NULL: every one
  tool_pattern TEXT NOT NULL,      -- a tool, a glob of tools, or @fs_any, @fs_read, @fs_write
  path_pattern TEXT,               -- a glob on the path with its root; NULL: every path
  action TEXT NOT NULL CHECK (action IN ('require', 'allow', 'deny')), -- what becomes of a write
  note TEXT NOT NULL DEFAULT '',   -- why, for people
  priority INTEGER NOT NULL,       -- the lowest comes first, and the first that fits decides
  group_id TEXT REFERENCES tool_permission_groups (id), -- whose role has it; NULL: everybody
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1 -- guards every update
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_rules_in_order ON approval_rules (priority, id);

CREATE TABLE approvals (
  id TEXT NOT NULL PRIMARY KEY,    -- UUIDv7, that of the pending write
  requester_user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who decides
  agent_id TEXT,                   -- bare: who asked; NULL: an agent without a name
  tool TEXT NOT NULL,              -- what it is to do
  target_root TEXT NOT NULL,       -- the first name of the path, never more of it
  size_bytes INTEGER NOT NULL,     -- of the text
  status TEXT NOT NULL DEFAULT 'pending' -- how it stands
    CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'done', 'conflict')),
  decided_by TEXT,                 -- user id; NULL: nobody yet, or its time was over
  decided_at INTEGER,              -- unix milliseconds UTC; NULL until it is over
  expires_at INTEGER NOT NULL,     -- unix milliseconds UTC
  created_at INTEGER NOT NULL,     -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,     -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1, -- guards every update
  CHECK ((decided_at IS NULL) = (status IN ('pending', 'approved')))
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_of ON approvals (requester_user_id, id);

CREATE INDEX approvals_waiting ON approvals (expires_at) WHERE status = 'pending';

CREATE INDEX approvals_over ON approvals (decided_at) WHERE decided_at IS NOT NULL;

CREATE TRIGGER sys_track_users_insert AFTER INSERT ON users BEGIN INSERT INTO sys_changes VALUES ('user', NEW.id, 'insert', 'user.created', 'admins', json_object('username', NEW.username, 'role_id', NEW.role_id, 'active', NEW.active), sys_changed_fields('username,display_name,role_id,encrypted,kdf_params,dek_id,password_is_temporary,active,quota_bytes,locale,birthdate,sex', 'notes,database_password,password_hash', NULL, NEW.username, NULL, NEW.display_name, NULL, NEW.role_id, NULL, NEW.encrypted, NULL, NEW.kdf_params, NULL, NEW.dek_id, NULL, NEW.password_is_temporary, NULL, NEW.active, NULL, NEW.quota_bytes, NULL, NEW.locale, NULL, NEW.birthdate, NULL, NEW.sex, NULL, octet_length(NEW.notes), NULL, iif(NEW.database_password IS NULL, NULL, '[redacted]'), NULL, iif(NEW.password_hash IS NULL, NULL, '[redacted]')), sys_now_ms(), sys_new_salt(), NEW.id); END;

CREATE TRIGGER sys_track_users_update AFTER UPDATE ON users WHEN OLD.username IS NOT NEW.username OR OLD.display_name IS NOT NEW.display_name OR OLD.role_id IS NOT NEW.role_id OR OLD.encrypted IS NOT NEW.encrypted OR OLD.kdf_params IS NOT NEW.kdf_params OR OLD.dek_id IS NOT NEW.dek_id OR OLD.password_is_temporary IS NOT NEW.password_is_temporary OR OLD.active IS NOT NEW.active OR OLD.quota_bytes IS NOT NEW.quota_bytes OR OLD.locale IS NOT NEW.locale OR OLD.birthdate IS NOT NEW.birthdate OR OLD.sex IS NOT NEW.sex OR OLD.notes IS NOT NEW.notes OR OLD.database_password IS NOT NEW.database_password OR OLD.password_hash IS NOT NEW.password_hash BEGIN INSERT INTO sys_changes VALUES ('user', NEW.id, 'update', 'user.updated', 'admins', json_object('username', NEW.username, 'role_id', NEW.role_id, 'active', NEW.active), sys_changed_fields('username,display_name,role_id,encrypted,kdf_params,dek_id,password_is_temporary,active,quota_bytes,locale,birthdate,sex', 'notes,database_password,password_hash', OLD.username, NEW.username, OLD.display_name, NEW.display_name, OLD.role_id, NEW.role_id, OLD.encrypted, NEW.encrypted, OLD.kdf_params, NEW.kdf_params, OLD.dek_id, NEW.dek_id, OLD.password_is_temporary, NEW.password_is_temporary, OLD.active, NEW.active, OLD.quota_bytes, NEW.quota_bytes, OLD.locale, NEW.locale, OLD.birthdate, NEW.birthdate, OLD.sex, NEW.sex, iif(OLD.notes IS NEW.notes, NULL, octet_length(OLD.notes)), iif(OLD.notes IS NEW.notes, NULL, octet_length(NEW.notes)), iif(OLD.database_password IS NEW.database_password, NULL, iif(OLD.database_password IS NULL, NULL, '[redacted]')), iif(OLD.database_password IS NEW.database_password, NULL, iif(NEW.database_password IS NULL, NULL, '[redacted]')), iif(OLD.password_hash IS NEW.password_hash, NULL, iif(OLD.password_hash IS NULL, NULL, '[redacted]')), iif(OLD.password_hash IS NEW.password_hash, NULL, iif(NEW.password_hash IS NULL, NULL, '[redacted]'))), sys_now_ms(), sys_new_salt(), NEW.id); END;

CREATE TRIGGER sys_track_users_delete AFTER DELETE ON users BEGIN INSERT INTO sys_changes VALUES ('user', OLD.id, 'delete', 'user.deleted', 'admins', json_object('username', OLD.username, 'role_id', OLD.role_id, 'active', OLD.active), sys_changed_fields('username,display_name,role_id,encrypted,kdf_params,dek_id,password_is_temporary,active,quota_bytes,locale,birthdate,sex', 'notes,database_password,password_hash', OLD.username, NULL, OLD.display_name, NULL, OLD.role_id, NULL, OLD.encrypted, NULL, OLD.kdf_params, NULL, OLD.dek_id, NULL, OLD.password_is_temporary, NULL, OLD.active, NULL, OLD.quota_bytes, NULL, OLD.locale, NULL, OLD.birthdate, NULL, OLD.sex, NULL, octet_length(OLD.notes), NULL, iif(OLD.database_password IS NULL, NULL, '[redacted]'), NULL, iif(OLD.password_hash IS NULL, NULL, '[redacted]'), NULL), sys_now_ms(), sys_new_salt(), OLD.id); END;

CREATE TRIGGER sys_track_roles_insert AFTER INSERT ON roles BEGIN INSERT INTO sys_changes VALUES ('role', NEW.id, 'insert', 'role.created', 'admins', json_object('label', NEW.label), sys_changed_fields('label,permission_group,attrs', '', NULL, NEW.label, NULL, NEW.permission_group, NULL, NEW.attrs), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_roles_update AFTER UPDATE ON roles WHEN OLD.label IS NOT NEW.label OR OLD.permission_group IS NOT NEW.permission_group OR OLD.attrs IS NOT NEW.attrs BEGIN INSERT INTO sys_changes VALUES ('role', NEW.id, 'update', 'role.updated', 'admins', json_object('label', NEW.label), sys_changed_fields('label,permission_group,attrs', '', OLD.label, NEW.label, OLD.permission_group, NEW.permission_group, OLD.attrs, NEW.attrs), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_roles_delete AFTER DELETE ON roles BEGIN INSERT INTO sys_changes VALUES ('role', OLD.id, 'delete', 'role.deleted', 'admins', json_object('label', OLD.label), sys_changed_fields('label,permission_group,attrs', '', OLD.label, NULL, OLD.permission_group, NULL, OLD.attrs, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_role_capabilities_insert AFTER INSERT ON role_capabilities BEGIN INSERT INTO sys_changes VALUES ('role_capability', NEW.role_id || ':' || NEW.capability, 'insert', 'role_capability.created', 'admins', json_object(), sys_changed_fields('role_id,capability', '', NULL, NEW.role_id, NULL, NEW.capability), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_role_capabilities_update AFTER UPDATE ON role_capabilities WHEN OLD.role_id IS NOT NEW.role_id OR OLD.capability IS NOT NEW.capability BEGIN INSERT INTO sys_changes VALUES ('role_capability', NEW.role_id || ':' || NEW.capability, 'update', 'role_capability.updated', 'admins', json_object(), sys_changed_fields('role_id,capability', '', OLD.role_id, NEW.role_id, OLD.capability, NEW.capability), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_role_capabilities_delete AFTER DELETE ON role_capabilities BEGIN INSERT INTO sys_changes VALUES ('role_capability', OLD.role_id || ':' || OLD.capability, 'delete', 'role_capability.deleted', 'admins', json_object(), sys_changed_fields('role_id,capability', '', OLD.role_id, NULL, OLD.capability, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_tool_permission_groups_insert AFTER INSERT ON tool_permission_groups BEGIN INSERT INTO sys_changes VALUES ('tool_permission_group', NEW.id, 'insert', 'tool_permission_group.created', 'admins', json_object(), sys_changed_fields('name,description', '', NULL, NEW.name, NULL, NEW.description), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_tool_permission_groups_update AFTER UPDATE ON tool_permission_groups WHEN OLD.name IS NOT NEW.name OR OLD.description IS NOT NEW.description BEGIN INSERT INTO sys_changes VALUES ('tool_permission_group', NEW.id, 'update', 'tool_permission_group.updated', 'admins', json_object(), sys_changed_fields('name,description', '', OLD.name, NEW.name, OLD.description, NEW.description), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_tool_permission_groups_delete AFTER DELETE ON tool_permission_groups BEGIN INSERT INTO sys_changes VALUES ('tool_permission_group', OLD.id, 'delete', 'tool_permission_group.deleted', 'admins', json_object(), sys_changed_fields('name,description', '', OLD.name, NULL, OLD.description, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_key_slots_insert AFTER INSERT ON key_slots BEGIN INSERT INTO sys_changes VALUES ('key_slot', NEW.id, 'insert', 'key_slot.created', 'admins', json_object('user_id', NEW.user_id, 'kind', NEW.kind), sys_changed_fields('user_id,kind,dek_id,label,expires_at,revoked_at', 'wrapped_dek', NULL, NEW.user_id, NULL, NEW.kind, NULL, NEW.dek_id, NULL, NEW.label, NULL, NEW.expires_at, NULL, NEW.revoked_at, NULL, iif(NEW.wrapped_dek IS NULL, NULL, '[redacted]')), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_key_slots_update AFTER UPDATE ON key_slots WHEN OLD.user_id IS NOT NEW.user_id OR OLD.kind IS NOT NEW.kind OR OLD.dek_id IS NOT NEW.dek_id OR OLD.label IS NOT NEW.label OR OLD.expires_at IS NOT NEW.expires_at OR OLD.revoked_at IS NOT NEW.revoked_at OR OLD.wrapped_dek IS NOT NEW.wrapped_dek BEGIN INSERT INTO sys_changes VALUES ('key_slot', NEW.id, 'update', 'key_slot.updated', 'admins', json_object('user_id', NEW.user_id, 'kind', NEW.kind), sys_changed_fields('user_id,kind,dek_id,label,expires_at,revoked_at', 'wrapped_dek', OLD.user_id, NEW.user_id, OLD.kind, NEW.kind, OLD.dek_id, NEW.dek_id, OLD.label, NEW.label, OLD.expires_at, NEW.expires_at, OLD.revoked_at, NEW.revoked_at, iif(OLD.wrapped_dek IS NEW.wrapped_dek, NULL, iif(OLD.wrapped_dek IS NULL, NULL, '[redacted]')), iif(OLD.wrapped_dek IS NEW.wrapped_dek, NULL, iif(NEW.wrapped_dek IS NULL, NULL, '[redacted]'))), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_key_slots_delete AFTER DELETE ON key_slots BEGIN INSERT INTO sys_changes VALUES ('key_slot', OLD.id, 'delete', 'key_slot.deleted', 'admins', json_object('user_id', OLD.user_id, 'kind', OLD.kind), sys_changed_fields('user_id,kind,dek_id,label,expires_at,revoked_at', 'wrapped_dek', OLD.user_id, NULL, OLD.kind, NULL, OLD.dek_id, NULL, OLD.label, NULL, OLD.expires_at, NULL, OLD.revoked_at, NULL, iif(OLD.wrapped_dek IS NULL, NULL, '[redacted]'), NULL), sys_now_ms(), sys_new_salt(), OLD.user_id); END;

CREATE TRIGGER sys_track_sessions_insert AFTER INSERT ON sessions BEGIN INSERT INTO sys_changes VALUES ('session', NEW.id, 'insert', 'session.created', 'admins', json_object('user_id', NEW.user_id, 'kind', NEW.kind, 'agent_id', NEW.agent_id), sys_changed_fields('user_id,kind,agent_id,is_agent,scopes,ends_at,revoked_at', '', NULL, NEW.user_id, NULL, NEW.kind, NULL, NEW.agent_id, NULL, NEW.is_agent, NULL, NEW.scopes, NULL, NEW.ends_at, NULL, NEW.revoked_at), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_sessions_update AFTER UPDATE ON sessions WHEN OLD.user_id IS NOT NEW.user_id OR OLD.kind IS NOT NEW.kind OR OLD.agent_id IS NOT NEW.agent_id OR OLD.is_agent IS NOT NEW.is_agent OR OLD.scopes IS NOT NEW.scopes OR OLD.ends_at IS NOT NEW.ends_at OR OLD.revoked_at IS NOT NEW.revoked_at BEGIN INSERT INTO sys_changes VALUES ('session', NEW.id, 'update', CASE WHEN OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL THEN 'session.revoked' ELSE 'session.updated' END, 'admins', json_object('user_id', NEW.user_id, 'kind', NEW.kind, 'agent_id', NEW.agent_id), sys_changed_fields('user_id,kind,agent_id,is_agent,scopes,ends_at,revoked_at', '', OLD.user_id, NEW.user_id, OLD.kind, NEW.kind, OLD.agent_id, NEW.agent_id, OLD.is_agent, NEW.is_agent, OLD.scopes, NEW.scopes, OLD.ends_at, NEW.ends_at, OLD.revoked_at, NEW.revoked_at), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_sessions_delete AFTER DELETE ON sessions BEGIN INSERT INTO sys_changes VALUES ('session', OLD.id, 'delete', 'session.deleted', 'admins', json_object('user_id', OLD.user_id, 'kind', OLD.kind, 'agent_id', OLD.agent_id), sys_changed_fields('user_id,kind,agent_id,is_agent,scopes,ends_at,revoked_at', '', OLD.user_id, NULL, OLD.kind, NULL, OLD.agent_id, NULL, OLD.is_agent, NULL, OLD.scopes, NULL, OLD.ends_at, NULL, OLD.revoked_at, NULL), sys_now_ms(), sys_new_salt(), OLD.user_id); END;

CREATE TRIGGER sys_track_invitations_insert AFTER INSERT ON invitations BEGIN INSERT INTO sys_changes VALUES ('invitation', NEW.id, 'insert', 'invitation.created', 'admins', json_object('role_id', NEW.role_id, 'invited_by', NEW.invited_by), sys_changed_fields('role_id,invited_by,expires_at,used_at', '', NULL, NEW.role_id, NULL, NEW.invited_by, NULL, NEW.expires_at, NULL, NEW.used_at), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_invitations_update AFTER UPDATE ON invitations WHEN OLD.role_id IS NOT NEW.role_id OR OLD.invited_by IS NOT NEW.invited_by OR OLD.expires_at IS NOT NEW.expires_at OR OLD.used_at IS NOT NEW.used_at BEGIN INSERT INTO sys_changes VALUES ('invitation', NEW.id, 'update', CASE WHEN OLD.used_at IS NULL AND NEW.used_at IS NOT NULL THEN 'invitation.used' ELSE 'invitation.updated' END, 'admins', json_object('role_id', NEW.role_id, 'invited_by', NEW.invited_by), sys_changed_fields('role_id,invited_by,expires_at,used_at', '', OLD.role_id, NEW.role_id, OLD.invited_by, NEW.invited_by, OLD.expires_at, NEW.expires_at, OLD.used_at, NEW.used_at), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_invitations_delete AFTER DELETE ON invitations BEGIN INSERT INTO sys_changes VALUES ('invitation', OLD.id, 'delete', 'invitation.deleted', 'admins', json_object('role_id', OLD.role_id, 'invited_by', OLD.invited_by), sys_changed_fields('role_id,invited_by,expires_at,used_at', '', OLD.role_id, NULL, OLD.invited_by, NULL, OLD.expires_at, NULL, OLD.used_at, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_supervision_insert AFTER INSERT ON supervision BEGIN INSERT INTO sys_changes VALUES ('supervision', NEW.subject_user_id || ':' || NEW.supervisor_user_id, 'insert', 'supervision.created', 'admins', json_object('subject_user_id', NEW.subject_user_id, 'supervisor_user_id', NEW.supervisor_user_id), sys_changed_fields('subject_user_id,supervisor_user_id', '', NULL, NEW.subject_user_id, NULL, NEW.supervisor_user_id), sys_now_ms(), sys_new_salt(), NEW.subject_user_id); END;

CREATE TRIGGER sys_track_supervision_update AFTER UPDATE ON supervision WHEN OLD.subject_user_id IS NOT NEW.subject_user_id OR OLD.supervisor_user_id IS NOT NEW.supervisor_user_id BEGIN INSERT INTO sys_changes VALUES ('supervision', NEW.subject_user_id || ':' || NEW.supervisor_user_id, 'update', 'supervision.updated', 'admins', json_object('subject_user_id', NEW.subject_user_id, 'supervisor_user_id', NEW.supervisor_user_id), sys_changed_fields('subject_user_id,supervisor_user_id', '', OLD.subject_user_id, NEW.subject_user_id, OLD.supervisor_user_id, NEW.supervisor_user_id), sys_now_ms(), sys_new_salt(), NEW.subject_user_id); END;

CREATE TRIGGER sys_track_supervision_delete AFTER DELETE ON supervision BEGIN INSERT INTO sys_changes VALUES ('supervision', OLD.subject_user_id || ':' || OLD.supervisor_user_id, 'delete', 'supervision.deleted', 'admins', json_object('subject_user_id', OLD.subject_user_id, 'supervisor_user_id', OLD.supervisor_user_id), sys_changed_fields('subject_user_id,supervisor_user_id', '', OLD.subject_user_id, NULL, OLD.supervisor_user_id, NULL), sys_now_ms(), sys_new_salt(), OLD.subject_user_id); END;

CREATE TRIGGER sys_track_flags_insert AFTER INSERT ON flags BEGIN INSERT INTO sys_changes VALUES ('flag', NEW.name, 'insert', 'flag.created', 'admins', json_object('name', NEW.name, 'value', NEW.value), sys_changed_fields('value', '', NULL, NEW.value), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_flags_update AFTER UPDATE ON flags WHEN OLD.value IS NOT NEW.value BEGIN INSERT INTO sys_changes VALUES ('flag', NEW.name, 'update', 'flag.updated', 'admins', json_object('name', NEW.name, 'value', NEW.value), sys_changed_fields('value', '', OLD.value, NEW.value), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_flags_delete AFTER DELETE ON flags BEGIN INSERT INTO sys_changes VALUES ('flag', OLD.name, 'delete', 'flag.deleted', 'admins', json_object('name', OLD.name, 'value', OLD.value), sys_changed_fields('value', '', OLD.value, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_shared_folders_insert AFTER INSERT ON shared_folders BEGIN INSERT INTO sys_changes VALUES ('shared_folder', NEW.id, 'insert', 'shared_folder.created', 'admins', json_object('folder_name', NEW.folder_name), sys_changed_fields('folder_name,description', '', NULL, NEW.folder_name, NULL, NEW.description), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_shared_folders_update AFTER UPDATE ON shared_folders WHEN OLD.folder_name IS NOT NEW.folder_name OR OLD.description IS NOT NEW.description BEGIN INSERT INTO sys_changes VALUES ('shared_folder', NEW.id, 'update', 'shared_folder.updated', 'admins', json_object('folder_name', NEW.folder_name), sys_changed_fields('folder_name,description', '', OLD.folder_name, NEW.folder_name, OLD.description, NEW.description), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_shared_folders_delete AFTER DELETE ON shared_folders BEGIN INSERT INTO sys_changes VALUES ('shared_folder', OLD.id, 'delete', 'shared_folder.deleted', 'admins', json_object('folder_name', OLD.folder_name), sys_changed_fields('folder_name,description', '', OLD.folder_name, NULL, OLD.description, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_shared_folder_members_insert AFTER INSERT ON shared_folder_members BEGIN INSERT INTO sys_changes VALUES ('shared_folder_member', NEW.folder_id || ':' || NEW.user_id, 'insert', 'shared_folder_member.created', 'admins', json_object('folder_id', NEW.folder_id, 'user_id', NEW.user_id, 'can_write', NEW.can_write), sys_changed_fields('folder_id,user_id,can_write', '', NULL, NEW.folder_id, NULL, NEW.user_id, NULL, NEW.can_write), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_shared_folder_members_update AFTER UPDATE ON shared_folder_members WHEN OLD.folder_id IS NOT NEW.folder_id OR OLD.user_id IS NOT NEW.user_id OR OLD.can_write IS NOT NEW.can_write BEGIN INSERT INTO sys_changes VALUES ('shared_folder_member', NEW.folder_id || ':' || NEW.user_id, 'update', 'shared_folder_member.updated', 'admins', json_object('folder_id', NEW.folder_id, 'user_id', NEW.user_id, 'can_write', NEW.can_write), sys_changed_fields('folder_id,user_id,can_write', '', OLD.folder_id, NEW.folder_id, OLD.user_id, NEW.user_id, OLD.can_write, NEW.can_write), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_shared_folder_members_delete AFTER DELETE ON shared_folder_members BEGIN INSERT INTO sys_changes VALUES ('shared_folder_member', OLD.folder_id || ':' || OLD.user_id, 'delete', 'shared_folder_member.deleted', 'admins', json_object('folder_id', OLD.folder_id, 'user_id', OLD.user_id, 'can_write', OLD.can_write), sys_changed_fields('folder_id,user_id,can_write', '', OLD.folder_id, NULL, OLD.user_id, NULL, OLD.can_write, NULL), sys_now_ms(), sys_new_salt(), OLD.user_id); END;

CREATE TRIGGER sys_track_projects_insert AFTER INSERT ON projects BEGIN INSERT INTO sys_changes VALUES ('project', NEW.id, 'insert', 'project.created', 'admins', json_object('owner_user_id', NEW.owner_user_id), sys_changed_fields('owner_user_id', 'name,slug,description,run_context', NULL, NEW.owner_user_id, NULL, octet_length(NEW.name), NULL, octet_length(NEW.slug), NULL, octet_length(NEW.description), NULL, octet_length(NEW.run_context)), sys_now_ms(), sys_new_salt(), NEW.owner_user_id); END;

CREATE TRIGGER sys_track_projects_update AFTER UPDATE ON projects WHEN OLD.owner_user_id IS NOT NEW.owner_user_id OR OLD.name IS NOT NEW.name OR OLD.slug IS NOT NEW.slug OR OLD.description IS NOT NEW.description OR OLD.run_context IS NOT NEW.run_context BEGIN INSERT INTO sys_changes VALUES ('project', NEW.id, 'update', 'project.updated', 'admins', json_object('owner_user_id', NEW.owner_user_id), sys_changed_fields('owner_user_id', 'name,slug,description,run_context', OLD.owner_user_id, NEW.owner_user_id, iif(OLD.name IS NEW.name, NULL, octet_length(OLD.name)), iif(OLD.name IS NEW.name, NULL, octet_length(NEW.name)), iif(OLD.slug IS NEW.slug, NULL, octet_length(OLD.slug)), iif(OLD.slug IS NEW.slug, NULL, octet_length(NEW.slug)), iif(OLD.description IS NEW.description, NULL, octet_length(OLD.description)), iif(OLD.description IS NEW.description, NULL, octet_length(NEW.description)), iif(OLD.run_context IS NEW.run_context, NULL, octet_length(OLD.run_context)), iif(OLD.run_context IS NEW.run_context, NULL, octet_length(NEW.run_context))), sys_now_ms(), sys_new_salt(), NEW.owner_user_id); END;

CREATE TRIGGER sys_track_projects_delete AFTER DELETE ON projects BEGIN INSERT INTO sys_changes VALUES ('project', OLD.id, 'delete', 'project.deleted', 'admins', json_object('owner_user_id', OLD.owner_user_id), sys_changed_fields('owner_user_id', 'name,slug,description,run_context', OLD.owner_user_id, NULL, octet_length(OLD.name), NULL, octet_length(OLD.slug), NULL, octet_length(OLD.description), NULL, octet_length(OLD.run_context), NULL), sys_now_ms(), sys_new_salt(), OLD.owner_user_id); END;

CREATE TRIGGER sys_track_project_members_insert AFTER INSERT ON project_members BEGIN INSERT INTO sys_changes VALUES ('project_member', NEW.project_id || ':' || NEW.user_id, 'insert', 'project_member.created', 'admins', json_object('project_id', NEW.project_id, 'user_id', NEW.user_id, 'can_write', NEW.can_write), sys_changed_fields('project_id,user_id,can_write', '', NULL, NEW.project_id, NULL, NEW.user_id, NULL, NEW.can_write), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_project_members_update AFTER UPDATE ON project_members WHEN OLD.project_id IS NOT NEW.project_id OR OLD.user_id IS NOT NEW.user_id OR OLD.can_write IS NOT NEW.can_write BEGIN INSERT INTO sys_changes VALUES ('project_member', NEW.project_id || ':' || NEW.user_id, 'update', 'project_member.updated', 'admins', json_object('project_id', NEW.project_id, 'user_id', NEW.user_id, 'can_write', NEW.can_write), sys_changed_fields('project_id,user_id,can_write', '', OLD.project_id, NEW.project_id, OLD.user_id, NEW.user_id, OLD.can_write, NEW.can_write), sys_now_ms(), sys_new_salt(), NEW.user_id); END;

CREATE TRIGGER sys_track_project_members_delete AFTER DELETE ON project_members BEGIN INSERT INTO sys_changes VALUES ('project_member', OLD.project_id || ':' || OLD.user_id, 'delete', 'project_member.deleted', 'admins', json_object('project_id', OLD.project_id, 'user_id', OLD.user_id, 'can_write', OLD.can_write), sys_changed_fields('project_id,user_id,can_write', '', OLD.project_id, NULL, OLD.user_id, NULL, OLD.can_write, NULL), sys_now_ms(), sys_new_salt(), OLD.user_id); END;

CREATE TRIGGER sys_track_disk_files_insert AFTER INSERT ON disk_files BEGIN INSERT INTO sys_changes VALUES ('disk_file', NEW.root_id || ':' || NEW.path_digest, 'insert', 'disk_file.created', 'admins', json_object('root_id', NEW.root_id, 'action', NEW.action, 'size_bytes', NEW.size_bytes, 'author', NEW.author), sys_changed_fields('root_id,action,size_bytes,author,updated_at', '', NULL, NEW.root_id, NULL, NEW.action, NULL, NEW.size_bytes, NULL, NEW.author, NULL, NEW.updated_at), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_disk_files_update AFTER UPDATE ON disk_files WHEN OLD.root_id IS NOT NEW.root_id OR OLD.action IS NOT NEW.action OR OLD.size_bytes IS NOT NEW.size_bytes OR OLD.author IS NOT NEW.author OR OLD.updated_at IS NOT NEW.updated_at BEGIN INSERT INTO sys_changes VALUES ('disk_file', NEW.root_id || ':' || NEW.path_digest, 'update', 'disk_file.updated', 'admins', json_object('root_id', NEW.root_id, 'action', NEW.action, 'size_bytes', NEW.size_bytes, 'author', NEW.author), sys_changed_fields('root_id,action,size_bytes,author,updated_at', '', OLD.root_id, NEW.root_id, OLD.action, NEW.action, OLD.size_bytes, NEW.size_bytes, OLD.author, NEW.author, OLD.updated_at, NEW.updated_at), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_disk_files_delete AFTER DELETE ON disk_files BEGIN INSERT INTO sys_changes VALUES ('disk_file', OLD.root_id || ':' || OLD.path_digest, 'delete', 'disk_file.deleted', 'admins', json_object('root_id', OLD.root_id, 'action', OLD.action, 'size_bytes', OLD.size_bytes, 'author', OLD.author), sys_changed_fields('root_id,action,size_bytes,author,updated_at', '', OLD.root_id, NULL, OLD.action, NULL, OLD.size_bytes, NULL, OLD.author, NULL, OLD.updated_at, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_approval_rules_insert AFTER INSERT ON approval_rules BEGIN INSERT INTO sys_changes VALUES ('approval_rule', NEW.id, 'insert', 'approval_rule.created', 'admins', json_object('action', NEW.action, 'priority', NEW.priority), sys_changed_fields('agent_id,source,tool_pattern,path_pattern,action,note,priority,group_id', '', NULL, NEW.agent_id, NULL, NEW.source, NULL, NEW.tool_pattern, NULL, NEW.path_pattern, NULL, NEW.action, NULL, NEW.note, NULL, NEW.priority, NULL, NEW.group_id), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_approval_rules_update AFTER UPDATE ON approval_rules WHEN OLD.agent_id IS NOT NEW.agent_id OR OLD.source IS NOT NEW.source OR OLD.tool_pattern IS NOT NEW.tool_pattern OR OLD.path_pattern IS NOT NEW.path_pattern OR OLD.action IS NOT NEW.action OR OLD.note IS NOT NEW.note OR OLD.priority IS NOT NEW.priority OR OLD.group_id IS NOT NEW.group_id BEGIN INSERT INTO sys_changes VALUES ('approval_rule', NEW.id, 'update', 'approval_rule.updated', 'admins', json_object('action', NEW.action, 'priority', NEW.priority), sys_changed_fields('agent_id,source,tool_pattern,path_pattern,action,note,priority,group_id', '', OLD.agent_id, NEW.agent_id, OLD.source, NEW.source, OLD.tool_pattern, NEW.tool_pattern, OLD.path_pattern, NEW.path_pattern, OLD.action, NEW.action, OLD.note, NEW.note, OLD.priority, NEW.priority, OLD.group_id, NEW.group_id), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_approval_rules_delete AFTER DELETE ON approval_rules BEGIN INSERT INTO sys_changes VALUES ('approval_rule', OLD.id, 'delete', 'approval_rule.deleted', 'admins', json_object('action', OLD.action, 'priority', OLD.priority), sys_changed_fields('agent_id,source,tool_pattern,path_pattern,action,note,priority,group_id', '', OLD.agent_id, NULL, OLD.source, NULL, OLD.tool_pattern, NULL, OLD.path_pattern, NULL, OLD.action, NULL, OLD.note, NULL, OLD.priority, NULL, OLD.group_id, NULL), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_approvals_insert AFTER INSERT ON approvals BEGIN INSERT INTO sys_changes VALUES ('approval', NEW.id, 'insert', 'approval.requested', 'admins', json_object('requester_user_id', NEW.requester_user_id, 'agent_id', NEW.agent_id, 'tool', NEW.tool, 'target_root', NEW.target_root, 'size_bytes', NEW.size_bytes, 'status', NEW.status), sys_changed_fields('requester_user_id,agent_id,tool,target_root,size_bytes,status,decided_by,decided_at,expires_at', '', NULL, NEW.requester_user_id, NULL, NEW.agent_id, NULL, NEW.tool, NULL, NEW.target_root, NULL, NEW.size_bytes, NULL, NEW.status, NULL, NEW.decided_by, NULL, NEW.decided_at, NULL, NEW.expires_at), sys_now_ms(), sys_new_salt(), NEW.requester_user_id); END;

CREATE TRIGGER sys_track_approvals_update AFTER UPDATE ON approvals WHEN OLD.requester_user_id IS NOT NEW.requester_user_id OR OLD.agent_id IS NOT NEW.agent_id OR OLD.tool IS NOT NEW.tool OR OLD.target_root IS NOT NEW.target_root OR OLD.size_bytes IS NOT NEW.size_bytes OR OLD.status IS NOT NEW.status OR OLD.decided_by IS NOT NEW.decided_by OR OLD.decided_at IS NOT NEW.decided_at OR OLD.expires_at IS NOT NEW.expires_at BEGIN INSERT INTO sys_changes VALUES ('approval', NEW.id, 'update', CASE WHEN OLD.decided_at IS NULL AND NEW.decided_at IS NOT NULL THEN 'approval.decided' ELSE 'approval.updated' END, 'admins', json_object('requester_user_id', NEW.requester_user_id, 'agent_id', NEW.agent_id, 'tool', NEW.tool, 'target_root', NEW.target_root, 'size_bytes', NEW.size_bytes, 'status', NEW.status), sys_changed_fields('requester_user_id,agent_id,tool,target_root,size_bytes,status,decided_by,decided_at,expires_at', '', OLD.requester_user_id, NEW.requester_user_id, OLD.agent_id, NEW.agent_id, OLD.tool, NEW.tool, OLD.target_root, NEW.target_root, OLD.size_bytes, NEW.size_bytes, OLD.status, NEW.status, OLD.decided_by, NEW.decided_by, OLD.decided_at, NEW.decided_at, OLD.expires_at, NEW.expires_at), sys_now_ms(), sys_new_salt(), NEW.requester_user_id); END;

CREATE TRIGGER sys_track_approvals_delete AFTER DELETE ON approvals BEGIN INSERT INTO sys_changes VALUES ('approval', OLD.id, 'delete', 'approval.deleted', 'admins', json_object('requester_user_id', OLD.requester_user_id, 'agent_id', OLD.agent_id, 'tool', OLD.tool, 'target_root', OLD.target_root, 'size_bytes', OLD.size_bytes, 'status', OLD.status), sys_changed_fields('requester_user_id,agent_id,tool,target_root,size_bytes,status,decided_by,decided_at,expires_at', '', OLD.requester_user_id, NULL, OLD.agent_id, NULL, OLD.tool, NULL, OLD.target_root, NULL, OLD.size_bytes, NULL, OLD.status, NULL, OLD.decided_by, NULL, OLD.decided_at, NULL, OLD.expires_at, NULL), sys_now_ms(), sys_new_salt(), OLD.requester_user_id); END;

CREATE TRIGGER sys_track_config_insert AFTER INSERT ON config BEGIN INSERT INTO sys_changes VALUES ('config', NEW.key, 'insert', 'config.created', 'admins', json_object('key', NEW.key), sys_changed_fields('value', '', NULL, NEW.value), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_config_update AFTER UPDATE ON config WHEN OLD.value IS NOT NEW.value BEGIN INSERT INTO sys_changes VALUES ('config', NEW.key, 'update', 'config.updated', 'admins', json_object('key', NEW.key), sys_changed_fields('value', '', OLD.value, NEW.value), sys_now_ms(), sys_new_salt(), NULL); END;

CREATE TRIGGER sys_track_config_delete AFTER DELETE ON config BEGIN INSERT INTO sys_changes VALUES ('config', OLD.key, 'delete', 'config.deleted', 'admins', json_object('key', OLD.key), sys_changed_fields('value', '', OLD.value, NULL), sys_now_ms(), sys_new_salt(), NULL); END;
