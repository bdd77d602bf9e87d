"""The system tables' statements, each bound to the type of its rows."""

from app.db.queries import load
from app.db.runtime import rows

STATEMENTS = load("app.db.runtime")

FORGET_AUDIT_OF_USER = STATEMENTS.bind_command("forget_audit_of_user")
FORGET_EVENTS_OF_USER = STATEMENTS.bind_command("forget_events_of_user")
LIST_AUDIT_OF = STATEMENTS.bind("list_audit_of", rows.AuditRow)
LIST_AUDIT_BY_OTHERS = STATEMENTS.bind("list_audit_by_others", rows.AuditRow)

BEGIN_RECORD = STATEMENTS.bind_command("begin_record")
FINISH_RECORD = STATEMENTS.bind("finish_record", rows.NameRow)
LIST_OPEN_RECORDS = STATEMENTS.bind("list_open_records", rows.RecordRow)
BEGIN_STEP = STATEMENTS.bind_command("begin_step")
ANSWER_STEP = STATEMENTS.bind("answer_step", rows.NameRow)
LIST_STEPS = STATEMENTS.bind("list_steps", rows.StepRow)
