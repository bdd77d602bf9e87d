"""The present state of things stands against the call."""

from app.errors.root import StrongroomError


class ConflictError(StrongroomError):
    """The present state stands against this call."""

    code = "conflict"


class LeaseLostError(ConflictError):
    """This claim of the job is over: its time ran out, or the job was taken from it."""

    code = "lease_lost"


class JobOverError(ConflictError):
    """The job is over already."""

    code = "job_over"


class ConstraintError(ConflictError):
    """A rule of the schema refused the change."""

    code = "constraint_failed"

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        """SQLite's extended error name, as `SQLITE_CONSTRAINT_UNIQUE`."""


class IdempotencyInProgressError(ConflictError):
    """The same request is being done now: ask again in a moment."""

    code = "idempotency_in_progress"


class IdempotencyAnswerNotKeptError(ConflictError):
    """The same request was done; its answer is not kept: read what it changed."""

    code = "idempotency_answer_not_kept"


class VersionConflictError(ConflictError):
    """It was changed meanwhile: read it again and decide."""

    code = "version_conflict"

    def __init__(self, current_version: int | str | None = None) -> None:
        super().__init__()
        self.current_version = current_version
        """The version that stands now, or the tag of a content; None when there is nothing."""


class AlreadyExistsError(ConflictError):
    """There is one already, and the call asked not to replace it."""

    code = "already_exists"

    def __init__(self, current_version: int | str | None = None) -> None:
        super().__init__()
        self.current_version = current_version
        """The same of what stands now."""


class PathConflictError(ConflictError):
    """A note stands where a folder is needed, or the reverse."""

    code = "path_conflict"


class NoMatchError(ConflictError):
    """The old text is not in the note."""

    code = "no_match"


class ManyMatchesError(ConflictError):
    """The old text stands in the note more than once."""

    code = "many_matches"

    def __init__(self, lines: list[int]) -> None:
        super().__init__()
        self.lines = lines
        """Numbers of the lines, from 1, where a match begins."""


class NotVersionedError(ConflictError):
    """Files of shared folders and projects have no versions: only what stands there now."""

    code = "not_versioned"


class NotTextError(ConflictError):
    """The file there is no text: larger than a note may be, not UTF-8, or no file of its own."""

    code = "not_text"


class NameTakenError(ConflictError):
    """This name is taken."""

    code = "name_taken"


class UsernameTakenError(ConflictError):
    """This username is taken."""

    code = "username_taken"


class AlreadySetUpError(ConflictError):
    """The service has its first administrator already."""

    code = "already_set_up"


class LastAdministratorError(ConflictError):
    """The last administrator stays."""

    code = "last_administrator"


class KeyNotHeldError(ConflictError):
    """Only the member has the key: they recover by their code, or are erased and invited anew."""

    code = "key_not_held"


class StoreNotEncryptedError(ConflictError):
    """This member's store is a plain file and has no key."""

    code = "store_not_encrypted"


class AlreadyRunningError(ConflictError):
    """The last run of this schedule is not over."""

    code = "already_running"


class TurnedOffError(ConflictError):
    """An administrator has turned this off."""

    code = "turned_off"


class ApprovalOverError(ConflictError):
    """This was decided before, or nobody decided it in time."""

    code = "approval_over"

    def __init__(self, status: str) -> None:
        super().__init__()
        self.status = status
        """How it stands."""


class EventCursorError(StrongroomError):
    """The log of events cannot be followed from there."""

    code = "event_cursor"


class EventLogRestartedError(EventCursorError):
    """The log is another since the store was restored or imported: begin without a cursor."""

    code = "event_log_restarted"


class EventCursorExpiredError(EventCursorError):
    """What came after this cursor was pruned: begin without one, and take the gap into account."""

    code = "event_cursor_expired"

    def __init__(self, first_seq: int) -> None:
        super().__init__()
        self.first_seq = first_seq
        """The first event that is kept, or would be the next when none is."""


class EventCursorAheadError(EventCursorError):
    """The log has not come as far as this cursor."""

    code = "event_cursor_ahead"


class BlobDiffersError(ConflictError):
    """Something else was stored under this id: choose another."""

    code = "blob_differs"


class RunnerLostError(ConflictError):
    """Somebody else has taken this operation over, or a person is to decide about it."""

    code = "runner_lost"
