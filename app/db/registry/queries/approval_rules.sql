-- name: list_approval_rules
-- Every rule, in the order in which they are asked.
-- scan: walks the index of that order; there are a few hundred at most
SELECT id, agent_id, source, tool_pattern, path_pattern, action, note, priority, group_id,
  created_at, updated_at, version FROM approval_rules ORDER BY priority, id;

-- name: find_approval_rule
-- One of them.
SELECT id, agent_id, source, tool_pattern, path_pattern, action, note, priority, group_id,
  created_at, updated_at, version FROM approval_rules WHERE id = :id;

-- name: count_approval_rules
-- How many there are.
-- scan: a few hundred at most
SELECT count(*) AS value FROM approval_rules;

-- name: add_approval_rule
-- A new one.
INSERT INTO approval_rules (id, agent_id, source, tool_pattern, path_pattern, action, note,
  priority, group_id, created_at, updated_at)
VALUES (:id, :agent_id, :source, :tool_pattern, :path_pattern, :action, :note, :priority,
  :group_id, :now, :now);

-- name: set_approval_rule
-- All that it says; nothing when another version stands.
UPDATE approval_rules SET agent_id = :agent_id, source = :source, tool_pattern = :tool_pattern,
  path_pattern = :path_pattern, action = :action, note = :note, priority = :priority,
  group_id = :group_id, updated_at = :now, version = version + 1
WHERE id = :id AND version = :read_version RETURNING version AS value;

-- name: remove_approval_rule
-- Takes one away; nothing when another version stands.
DELETE FROM approval_rules WHERE id = :id AND version = :read_version RETURNING id AS value;

-- name: find_permission_group
-- Whether there is such a group of tools.
SELECT id AS value FROM tool_permission_groups WHERE id = :id;
