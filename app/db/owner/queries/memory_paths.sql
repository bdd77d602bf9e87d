-- name: take_next_version
-- The next version at a path: after its own last and after the note's; remembered at once.
INSERT INTO memory_paths (path_digest, last_version, created_at)
VALUES (:path_digest, :own_version + 1, :now)
ON CONFLICT (path_digest) DO UPDATE SET last_version = max(last_version, :own_version) + 1
RETURNING last_version AS value;
