-- name: add_supervision
-- A directed edge; twice is once.
INSERT INTO supervision (subject_user_id, supervisor_user_id, created_at)
VALUES (:subject, :supervisor, :now) ON CONFLICT DO NOTHING;

-- name: remove_supervision
-- Takes the edge away.
DELETE FROM supervision
WHERE subject_user_id = :subject AND supervisor_user_id = :supervisor
RETURNING subject_user_id AS value;

-- name: list_supervision
-- Edges in order, after a given one.
SELECT subject_user_id, supervisor_user_id, created_at FROM supervision
WHERE (subject_user_id, supervisor_user_id) > (:after_subject, :after_supervisor)
ORDER BY subject_user_id, supervisor_user_id LIMIT +:limit;

-- name: list_subjects
-- Whom a member supervises.
SELECT subject_user_id AS value FROM supervision WHERE supervisor_user_id = :supervisor
ORDER BY subject_user_id;
