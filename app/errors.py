"""Every error that a caller can meet, one class a kind.

    StrongroomError
    +-- AuthenticationRequiredError      no credential where one is needed
    +-- InvalidCredentialsError          a credential that does not hold
    |   +-- AmbiguousCredentialsError    two credentials, two callers
    +-- NotPermittedError                the route is closed to this caller
    |   +-- HumanSessionRequiredError    a token cannot do this
    |   +-- ReauthenticationRequiredError  the password was checked too long ago
    |   +-- CrossSiteRequestError        Origin or CSRF token do not fit
    +-- NotFoundError                    absent, or another's: the same answer
    |   +-- NotANoteError                a folder stands where a note was asked for
    +-- InvalidInputError                a field that cannot be taken
    |   +-- InvalidPathError  WeakPasswordError  PasswordUnchangedError
    |   +-- InvalidUsernameError  InvalidScheduleError
    |   +-- DifferentRootsError  OverlappingEditsError  RecursiveRequiredError
    |   +-- IdempotencyNotSupportedError  InvalidIdempotencyKeyError
    |   +-- WebhookUrlError  WebhookTargetError
    |   +-- IdempotencyKeyReusedError
    +-- PayloadTooLargeError
    +-- ConflictError                    the state of things stands against it
    |   +-- VersionConflictError  AlreadyExistsError  PathConflictError
    |   +-- NoMatchError  ManyMatchesError  UsernameTakenError
    |   +-- AlreadySetUpError  LastAdministratorError  KeyNotHeldError
    |   +-- StoreNotEncryptedError  ConstraintError
    |   +-- AlreadyRunningError  TurnedOffError
    |   +-- IdempotencyInProgressError  IdempotencyAnswerNotKeptError
    |   +-- LeaseLostError  JobOverError
    +-- EventCursorError                 a place from which the log cannot be followed
    |   +-- EventLogRestartedError  EventCursorExpiredError  EventCursorAheadError
    +-- TooManyStreamsError              the caller has as many open as one may
    +-- TooManyAttemptsError             the throttle; carries retry_after_s
    +-- StoreError                       a store that cannot serve just now, or at all
    |   +-- StoreLockedError  StoreBusyError  StoreMigratingError
    |   +-- OutOfHandlesError  OverloadedError  DiskFullError  QuotaExceededError
    |   +-- StoreDamagedError  StoreMissingError  StoreSwappedError
    |   +-- StoreMigrationFailedError
    |   +-- StoreTooNewError  StoreReadOnlyError  FileDamagedError
    +-- StartError                       the service cannot start, and says why
        +-- AlreadyServingError  DriverUnfitError  InstanceKeyError

A class's docstring is the sentence shown to a person; `code` is stable and meant
for programs. No error carries what was sent, a path of the box, or a secret.
"""

from typing import ClassVar

from typing_extensions import override


class StrongroomError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "internal_error"

    @override
    def __str__(self) -> str:
        return type(self).__doc__ or self.code


class AuthenticationRequiredError(StrongroomError):
    """Sign in first: this call needs a credential."""

    code = "authentication_required"


class InvalidCredentialsError(StrongroomError):
    """The credential does not hold."""

    code = "invalid_credentials"


class AmbiguousCredentialsError(InvalidCredentialsError):
    """The bearer token and the cookie belong to different callers; send one."""

    code = "ambiguous_credentials"


class NotPermittedError(StrongroomError):
    """This call is closed to the caller's role or scopes."""

    code = "not_permitted"


class HumanSessionRequiredError(NotPermittedError):
    """This call needs a session made with a password, not a token."""

    code = "human_session_required"


class ReauthenticationRequiredError(NotPermittedError):
    """Confirm the password first: it was last checked more than 5 minutes ago."""

    code = "reauthentication_required"


class CrossSiteRequestError(NotPermittedError):
    """A call by cookie needs a matching Origin and the X-CSRF-Token."""

    code = "cross_site_request"


class NotFoundError(StrongroomError):
    """There is nothing here for this caller."""

    code = "not_found"


class NotANoteError(NotFoundError):
    """This path is a folder; list it instead."""

    code = "not_a_note"


class InvalidInputError(StrongroomError):
    """A field cannot be taken as it is."""

    code = "invalid_input"


class InvalidPathError(InvalidInputError):
    """The path cannot name a note: see the rules for names, length and depth."""

    code = "invalid_path"


class WeakPasswordError(InvalidInputError):
    """Choose 12 to 1,024 characters, not a common password, not the username."""

    code = "weak_password"


class PasswordUnchangedError(InvalidInputError):
    """The new password is the present one: choose another."""

    code = "password_unchanged"


class InvalidUsernameError(InvalidInputError):
    """A username is 1 to 64 characters, with no control characters, slash or outer spaces."""

    code = "invalid_username"


class InvalidScheduleError(InvalidInputError):
    """Give a cron expression of five fields or an interval, and an IANA time zone."""

    code = "invalid_schedule"


class DifferentRootsError(InvalidInputError):
    """A move stays inside one root; copy the text by a write of its own."""

    code = "different_roots"


class OverlappingEditsError(InvalidInputError):
    """Two edits touch the same text."""

    code = "overlapping_edits"


class RecursiveRequiredError(InvalidInputError):
    """This is a folder with notes in it: say recursive=true."""

    code = "recursive_required"


class IdempotencyNotSupportedError(InvalidInputError):
    """This call takes no Idempotency-Key."""

    code = "idempotency_not_supported"


class InvalidIdempotencyKeyError(InvalidInputError):
    """An Idempotency-Key is 1 to 128 visible ASCII characters, sent once."""

    code = "invalid_idempotency_key"


class IdempotencyKeyReusedError(InvalidInputError):
    """This Idempotency-Key was used for another request: choose a new one."""

    code = "idempotency_key_reused"


class WebhookUrlError(InvalidInputError):
    """A webhook's url is https, at most 2,048 characters, without user, password or fragment."""

    code = "invalid_webhook_url"


class WebhookTargetError(InvalidInputError):
    """The url leads where webhooks may not go: to a private address, or in clear."""

    code = "webhook_target_refused"


class PayloadTooLargeError(StrongroomError):
    """The body is larger than this call takes."""

    code = "payload_too_large"


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

    def __init__(self, current_version: int | None = None) -> None:
        super().__init__()
        self.current_version = current_version
        """The version that stands now; None when there is nothing."""


class AlreadyExistsError(ConflictError):
    """There is one already, and the call asked not to replace it."""

    code = "already_exists"

    def __init__(self, current_version: int | None = None) -> None:
        super().__init__()
        self.current_version = current_version
        """The version that stands now."""


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
    """Nobody but the member holds their key: they recover with their code, or start a new store."""

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


class EventCursorError(StrongroomError):
    """The log of events cannot be followed from there."""


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


class TooManyStreamsError(StrongroomError):
    """The caller has as many streams open as one may: close one."""

    code = "too_many_streams"


class TooManyAttemptsError(StrongroomError):
    """Too many attempts: wait before the next one."""

    code = "too_many_attempts"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


class StoreError(StrongroomError):
    """A store cannot serve this call."""

    code = "store_error"
    retry_after_s: ClassVar[int | None] = None


class StoreLockedError(StoreError):
    """The store is locked for this credential: unlock it with the password or the recovery code."""

    code = "store_locked"


class StoreBusyError(StoreError):
    """The store is busy with an operation of its own: try again."""

    code = "store_busy"
    retry_after_s: ClassVar[int | None] = 1


class StoreMigratingError(StoreError):
    """The store is being brought to the present version: try again."""

    code = "store_migrating"
    retry_after_s: ClassVar[int | None] = 2


class StoreMigrationFailedError(StoreError):
    """The store's migration failed and left it as it was: the operator should look into it."""

    code = "store_migration_failed"


class OutOfHandlesError(StoreError):
    """Too many stores are in use at once: try again."""

    code = "out_of_handles"
    retry_after_s: ClassVar[int | None] = 1


class OverloadedError(StoreError):
    """Too much is waiting: try again."""

    code = "overloaded"
    retry_after_s: ClassVar[int | None] = 2


class DiskFullError(StoreError):
    """The disk is full; nothing was written. The operator must make room."""

    code = "disk_full"


class QuotaExceededError(StoreError):
    """The member's quota is used up; nothing was written."""

    code = "quota_exceeded"


class StoreDamagedError(StoreError):
    """The store's file is damaged: the operator should restore it from a backup."""

    code = "store_damaged"

    def __init__(self) -> None:
        super().__init__()
        self.file_salt = b""
        """The 16 bytes the file begins with, for telling a swapped file; empty when unknown."""


class StoreMissingError(StoreError):
    """The store's file is missing: the operator should put it back from a backup."""

    code = "store_missing"


class StoreSwappedError(StoreError):
    """The file in this store's place is another's: the operator should put the right one back."""

    code = "store_swapped"


class StoreTooNewError(StoreError):
    """The store was written by a newer version of the program: the operator should update it."""

    code = "store_too_new"


class StoreReadOnlyError(StoreError):
    """The store cannot be written: the operator should look at the disk and its permissions."""

    code = "store_read_only"


class FileDamagedError(StoreError):
    """The file's bytes are damaged or gone: the operator should restore them from a backup."""

    code = "file_damaged"


class BlobDiffersError(ConflictError):
    """Something else was stored under this id: choose another."""

    code = "blob_differs"


class RangeNotSatisfiableError(StrongroomError):
    """The part asked for lies outside of what there is."""

    code = "range_not_satisfiable"

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.size_bytes = size_bytes


class RunnerLostError(ConflictError):
    """Somebody else has taken this operation over, or a person is to decide about it."""

    code = "runner_lost"


class StartError(StrongroomError):
    """The service cannot start."""

    code = "cannot_start"

    def __init__(self, reason: str = "") -> None:
        super().__init__()
        self.reason = reason
        """What stands in the way, for the operator; may name a file of the box."""

    @override
    def __str__(self) -> str:
        sentence = type(self).__doc__ or self.code
        return f"{sentence} {self.reason}".strip()


class AlreadyServingError(StartError):
    """Another process serves this root."""

    code = "already_serving"


class DriverUnfitError(StartError):
    """The database driver cannot keep the promises."""

    code = "driver_unfit"


class InstanceKeyError(StartError):
    """The instance key cannot be used."""

    code = "instance_key"
