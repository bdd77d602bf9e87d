-- name: add_report
-- A report, unread.
INSERT INTO reports (id, kind, title, summary, severity, subject_user_id, audience, period_start,
  period_end, produced_by, producer_user_id, run_id, metadata, created_at, body)
VALUES (:id, :kind, :title, :summary, :severity, :subject_user_id, :audience, :period_start,
  :period_end, :produced_by, :producer_user_id, :run_id, :metadata, :now, :body)
RETURNING id, kind, title, summary, severity, subject_user_id, audience, period_start, period_end,
  produced_by, producer_user_id, run_id, metadata, read_at, read_by, created_at, body;

-- name: find_report
-- One report with its body.
SELECT id, kind, title, summary, severity, subject_user_id, audience, period_start, period_end,
  produced_by, producer_user_id, run_id, metadata, read_at, read_by, created_at, body
FROM reports WHERE id = :id;

-- name: list_reports
-- Reports before a place in the list, newest first, without bodies; a NULL filter admits all.
SELECT id, kind, title, summary, severity, subject_user_id, audience, period_start, period_end,
  produced_by, producer_user_id, run_id, metadata, read_at, read_by, created_at
FROM reports
WHERE (created_at, id) < (:before_at, :before_id) AND created_at >= :since
  AND (:kind IS NULL OR kind = :kind)
  AND (:subject IS NULL OR subject_user_id = :subject)
  AND (:unread = 0 OR read_at IS NULL)
ORDER BY created_at DESC, id DESC LIMIT +:limit;

-- name: set_report_read
-- The read mark, for the first reader alone.
UPDATE reports SET read_at = :now, read_by = :reader WHERE id = :id AND read_at IS NULL
RETURNING read_at, read_by;

-- name: remove_report
-- Removes one report.
DELETE FROM reports WHERE id = :id RETURNING id AS value;
