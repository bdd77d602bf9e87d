-- Which writes of agents a person decides, and notices of those that wait or were decided.

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

INSERT INTO approval_rules (id, tool_pattern, path_pattern, action, note, priority, created_at,
  updated_at) VALUES
  ('00000000-0000-7000-8000-000000000001', '@fs_any', 'user-memory/*', 'allow',
    'What only the member reads.', 100, 0, 0),
  ('00000000-0000-7000-8000-000000000002', '@fs_read', 'shared-memory/*', 'allow',
    'What is shared is there to be read.', 200, 0, 0),
  ('00000000-0000-7000-8000-000000000003', '@fs_write', 'shared-memory/*', 'require',
    'A person decides what others will read.', 300, 0, 0),
  ('00000000-0000-7000-8000-000000000004', '*', NULL, 'require',
    'Whatever no rule before names.', 1000000, 0, 0);

-- The notice alone: path and text wait in the requester's own store.
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
