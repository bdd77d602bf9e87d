-- Folders of the group: files on disk, in clear and without versions, for the members named.
CREATE TABLE shared_folders (
  id TEXT NOT NULL PRIMARY KEY,   -- UUIDv7; also the name of its folder on the disk
  folder_name TEXT NOT NULL,      -- as its maker writes it; the second part of its paths
  folder_key TEXT NOT NULL UNIQUE, -- NFKC and case-folded as of its making
  description TEXT NOT NULL DEFAULT '', -- shown to people and agents
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  updated_at INTEGER NOT NULL,    -- unix milliseconds UTC
  version INTEGER NOT NULL DEFAULT 1 -- guards every update
) STRICT, WITHOUT ROWID;

-- Who reads a shared folder, and who writes there.
CREATE TABLE shared_folder_members (
  folder_id TEXT NOT NULL REFERENCES shared_folders (id) ON DELETE CASCADE, -- where
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who
  can_write INTEGER NOT NULL CHECK (can_write IN (0, 1)), -- 0: reads alone
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (folder_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX shared_folder_members_user ON shared_folder_members (user_id);

-- A member's folder on disk, in clear and without versions, for whom they name.
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

-- Who reads a project, and who writes there; its owner always.
CREATE TABLE project_members (
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE, -- where
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, -- who
  can_write INTEGER NOT NULL CHECK (can_write IN (0, 1)), -- 0: reads alone
  created_at INTEGER NOT NULL,    -- unix milliseconds UTC
  PRIMARY KEY (project_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX project_members_user ON project_members (user_id);

-- The last write to each path of these folders: who and when, and what of it is still to be done.
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

-- Folders that were removed, until nothing of them is on the disk.
CREATE TABLE removed_roots (
  root_id TEXT NOT NULL PRIMARY KEY, -- bare: of what is there no more
  kind TEXT NOT NULL CHECK (kind IN ('shared', 'projects')), -- where its folder lies
  removed_at INTEGER NOT NULL     -- unix milliseconds UTC
) STRICT, WITHOUT ROWID;

-- Whatever removes a row, an erasure's cascade too, leaves word of what is to go from the disk.
CREATE TRIGGER shared_folders_removed AFTER DELETE ON shared_folders BEGIN
  DELETE FROM disk_files WHERE root_id = OLD.id;
  INSERT INTO removed_roots (root_id, kind, removed_at) VALUES (OLD.id, 'shared', sys_now_ms());
END;

CREATE TRIGGER projects_removed AFTER DELETE ON projects BEGIN
  DELETE FROM disk_files WHERE root_id = OLD.id;
  INSERT INTO removed_roots (root_id, kind, removed_at) VALUES (OLD.id, 'projects', sys_now_ms());
END;
