"""The owner bucket's statements, each bound to the type of its rows."""

from app.db.owner import rows
from app.db.queries import load

STATEMENTS = load("app.db.owner")

FIND_IDENTITY = STATEMENTS.bind("find_identity", rows.IdentityRow)
SET_IDENTITY = STATEMENTS.bind("set_identity", rows.TextRow)

FIND_SMALL_NOTE = STATEMENTS.bind("find_small_note", rows.SmallNoteRow)
FIND_NOTE = STATEMENTS.bind("find_note", rows.NoteRow)
FIND_NOTE_META = STATEMENTS.bind("find_note_meta", rows.NoteMetaRow)
FIND_NOTE_BEGINNING = STATEMENTS.bind("find_note_beginning", rows.TextRow)
FIND_LINE_START = STATEMENTS.bind("find_line_start", rows.NumberRow)
FIND_NOTE_BELOW = STATEMENTS.bind("find_note_below", rows.TextRow)
LIST_NOTES = STATEMENTS.bind("list_notes", rows.NoteMetaRow)
COUNT_NOTES = STATEMENTS.bind("count_notes", rows.NumberRow)
SUM_PAGES = STATEMENTS.bind("sum_pages", rows.NumberRow)
ADD_NOTE = STATEMENTS.bind("add_note", rows.NoteMetaRow)
SET_NOTE_CONTENT = STATEMENTS.bind("set_note_content", rows.NoteMetaRow)
APPEND_TO_NOTE = STATEMENTS.bind("append_to_note", rows.NoteMetaRow)
SET_NOTE_PATH = STATEMENTS.bind("set_note_path", rows.NoteMetaRow)
REMOVE_NOTE = STATEMENTS.bind("remove_note", rows.NoteMetaRow)
SEARCH_NOTES = STATEMENTS.bind("search_notes", rows.MatchRow)
OPTIMIZE_SEARCH_INDEX = STATEMENTS.bind_command("optimize_search_index")

TAKE_NEXT_VERSION = STATEMENTS.bind("take_next_version", rows.NumberRow)

ADD_VERSION = STATEMENTS.bind_command("add_version")
ADD_DELETION = STATEMENTS.bind_command("add_deletion")
EXTEND_VERSION = STATEMENTS.bind("extend_version", rows.NumberRow)
COUNT_VERSIONS = STATEMENTS.bind("count_versions", rows.NumberRow)
LIST_VERSIONS_TO_SPARE = STATEMENTS.bind("list_versions_to_spare", rows.NumberRow)
LIST_VERSIONS = STATEMENTS.bind("list_versions", rows.VersionRow)
FIND_VERSION = STATEMENTS.bind("find_version", rows.VersionTextRow)
REMOVE_VERSION = STATEMENTS.bind_command("remove_version")
REMOVE_VERSIONS_OF_GONE_NOTES = STATEMENTS.bind("remove_versions_of_gone_notes", rows.NumberRow)
REMOVE_VERSIONS = STATEMENTS.bind("remove_versions", rows.NumberRow)

ADD_REPORT = STATEMENTS.bind("add_report", rows.ReportRow)
FIND_REPORT = STATEMENTS.bind("find_report", rows.ReportRow)
LIST_REPORTS = STATEMENTS.bind("list_reports", rows.ReportMetaRow)
SET_REPORT_READ = STATEMENTS.bind("set_report_read", rows.ReadMarkRow)
REMOVE_REPORT = STATEMENTS.bind("remove_report", rows.TextRow)

SET_SECRET = STATEMENTS.bind_command("set_secret")
FIND_SECRET = STATEMENTS.bind("find_secret", rows.SecretRow)
REMOVE_SECRET = STATEMENTS.bind("remove_secret", rows.TextRow)


ADD_ACCESS = STATEMENTS.bind_command("add_access")
LIST_ACCESS = STATEMENTS.bind("list_access", rows.AccessRow)

FIND_BLOB = STATEMENTS.bind("find_blob", rows.BlobRow)
LIST_BLOBS = STATEMENTS.bind("list_blobs", rows.BlobRow)
LIST_BLOBS_OF_NOTE = STATEMENTS.bind("list_blobs_of_note", rows.BlobRow)
LIST_BLOBS_OF_REPORT = STATEMENTS.bind("list_blobs_of_report", rows.BlobRow)
ADD_BLOB = STATEMENTS.bind("add_blob", rows.TextRow)
PLACE_BLOB = STATEMENTS.bind("place_blob", rows.TextRow)
REMOVE_BLOB = STATEMENTS.bind("remove_blob", rows.TextRow)
REMOVE_BLOBS_OF_REPORT = STATEMENTS.bind("remove_blobs_of_report", rows.TextRow)
REMOVE_BLOBS_OF_FORGOTTEN_NOTES = STATEMENTS.bind("remove_blobs_of_forgotten_notes", rows.TextRow)
FIND_DOC_OF_PATH = STATEMENTS.bind("find_doc_of_path", rows.MaybeTextRow)
IS_NOTE_THERE = STATEMENTS.bind("is_note_there", rows.NumberRow)
FIND_REPORT_RIGHTS = STATEMENTS.bind("find_report_rights", rows.ReportRightsRow)

ADD_ACT = STATEMENTS.bind_command("add_act")
FIND_LAST_ACT = STATEMENTS.bind("find_last_act", rows.LastActRow)
LIST_ACTS = STATEMENTS.bind("list_acts", rows.ActRow)

ADD_SCHEDULED_JOB = STATEMENTS.bind_command("add_scheduled_job")
FIND_SCHEDULED_JOB = STATEMENTS.bind("find_scheduled_job", rows.ScheduledJobRow)
SET_SCHEDULED_JOB = STATEMENTS.bind("set_scheduled_job", rows.NumberRow)
REMOVE_SCHEDULED_JOB = STATEMENTS.bind("remove_scheduled_job", rows.TextRow)
FIND_JOB_RUN = STATEMENTS.bind("find_job_run", rows.JobRunRow)
REMOVE_JOB_RUNS = STATEMENTS.bind("remove_job_runs", rows.TextRow)

LIST_VERSIONED_PATHS = STATEMENTS.bind("list_versioned_paths", rows.TextRow)
SUM_VERSIONS = STATEMENTS.bind("sum_versions", rows.NumberRow)
LIST_EXPENDABLE_VERSIONS = STATEMENTS.bind("list_expendable_versions", rows.ExpendableRow)
REMOVE_OLD_ACCESS = STATEMENTS.bind("remove_old_access", rows.NumberRow)

ADD_PENDING_WRITE = STATEMENTS.bind_command("add_pending_write")
FIND_PENDING_WRITE = STATEMENTS.bind("find_pending_write", rows.PendingWriteRow)
LIST_PENDING_WRITES = STATEMENTS.bind("list_pending_writes", rows.PendingFactsRow)
COUNT_PENDING_WRITES = STATEMENTS.bind("count_pending_writes", rows.NumberRow)
REMOVE_PENDING_WRITES = STATEMENTS.bind("remove_pending_writes", rows.TextRow)
