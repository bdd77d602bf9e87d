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

from app.errors.base import (
    StrongroomError as StrongroomError,
)
from app.errors.callers import (
    AmbiguousCredentialsError as AmbiguousCredentialsError,
)
from app.errors.callers import (
    AuthenticationRequiredError as AuthenticationRequiredError,
)
from app.errors.callers import (
    CrossSiteRequestError as CrossSiteRequestError,
)
from app.errors.callers import (
    HumanSessionRequiredError as HumanSessionRequiredError,
)
from app.errors.callers import (
    InvalidCredentialsError as InvalidCredentialsError,
)
from app.errors.callers import (
    NotANoteError as NotANoteError,
)
from app.errors.callers import (
    NotFoundError as NotFoundError,
)
from app.errors.callers import (
    NotPermittedError as NotPermittedError,
)
from app.errors.callers import (
    ReauthenticationRequiredError as ReauthenticationRequiredError,
)
from app.errors.callers import (
    TooManyAttemptsError as TooManyAttemptsError,
)
from app.errors.callers import (
    TooManyStreamsError as TooManyStreamsError,
)
from app.errors.conflicts import (
    AlreadyExistsError as AlreadyExistsError,
)
from app.errors.conflicts import (
    AlreadyRunningError as AlreadyRunningError,
)
from app.errors.conflicts import (
    AlreadySetUpError as AlreadySetUpError,
)
from app.errors.conflicts import (
    BlobDiffersError as BlobDiffersError,
)
from app.errors.conflicts import (
    ConflictError as ConflictError,
)
from app.errors.conflicts import (
    ConstraintError as ConstraintError,
)
from app.errors.conflicts import (
    EventCursorAheadError as EventCursorAheadError,
)
from app.errors.conflicts import (
    EventCursorError as EventCursorError,
)
from app.errors.conflicts import (
    EventCursorExpiredError as EventCursorExpiredError,
)
from app.errors.conflicts import (
    EventLogRestartedError as EventLogRestartedError,
)
from app.errors.conflicts import (
    IdempotencyAnswerNotKeptError as IdempotencyAnswerNotKeptError,
)
from app.errors.conflicts import (
    IdempotencyInProgressError as IdempotencyInProgressError,
)
from app.errors.conflicts import (
    JobOverError as JobOverError,
)
from app.errors.conflicts import (
    KeyNotHeldError as KeyNotHeldError,
)
from app.errors.conflicts import (
    LastAdministratorError as LastAdministratorError,
)
from app.errors.conflicts import (
    LeaseLostError as LeaseLostError,
)
from app.errors.conflicts import (
    ManyMatchesError as ManyMatchesError,
)
from app.errors.conflicts import (
    NoMatchError as NoMatchError,
)
from app.errors.conflicts import (
    PathConflictError as PathConflictError,
)
from app.errors.conflicts import (
    RunnerLostError as RunnerLostError,
)
from app.errors.conflicts import (
    StoreNotEncryptedError as StoreNotEncryptedError,
)
from app.errors.conflicts import (
    TurnedOffError as TurnedOffError,
)
from app.errors.conflicts import (
    UsernameTakenError as UsernameTakenError,
)
from app.errors.conflicts import (
    VersionConflictError as VersionConflictError,
)
from app.errors.inputs import (
    DifferentRootsError as DifferentRootsError,
)
from app.errors.inputs import (
    IdempotencyKeyReusedError as IdempotencyKeyReusedError,
)
from app.errors.inputs import (
    IdempotencyNotSupportedError as IdempotencyNotSupportedError,
)
from app.errors.inputs import (
    InvalidIdempotencyKeyError as InvalidIdempotencyKeyError,
)
from app.errors.inputs import (
    InvalidInputError as InvalidInputError,
)
from app.errors.inputs import (
    InvalidPathError as InvalidPathError,
)
from app.errors.inputs import (
    InvalidScheduleError as InvalidScheduleError,
)
from app.errors.inputs import (
    InvalidUsernameError as InvalidUsernameError,
)
from app.errors.inputs import (
    OverlappingEditsError as OverlappingEditsError,
)
from app.errors.inputs import (
    PasswordUnchangedError as PasswordUnchangedError,
)
from app.errors.inputs import (
    PayloadTooLargeError as PayloadTooLargeError,
)
from app.errors.inputs import (
    RangeNotSatisfiableError as RangeNotSatisfiableError,
)
from app.errors.inputs import (
    RecursiveRequiredError as RecursiveRequiredError,
)
from app.errors.inputs import (
    WeakPasswordError as WeakPasswordError,
)
from app.errors.inputs import (
    WebhookTargetError as WebhookTargetError,
)
from app.errors.inputs import (
    WebhookUrlError as WebhookUrlError,
)
from app.errors.starting import (
    AlreadyServingError as AlreadyServingError,
)
from app.errors.starting import (
    DriverUnfitError as DriverUnfitError,
)
from app.errors.starting import (
    InstanceKeyError as InstanceKeyError,
)
from app.errors.starting import (
    StartError as StartError,
)
from app.errors.stores import (
    DiskFullError as DiskFullError,
)
from app.errors.stores import (
    FileDamagedError as FileDamagedError,
)
from app.errors.stores import (
    OutOfHandlesError as OutOfHandlesError,
)
from app.errors.stores import (
    OverloadedError as OverloadedError,
)
from app.errors.stores import (
    QuotaExceededError as QuotaExceededError,
)
from app.errors.stores import (
    StoreBusyError as StoreBusyError,
)
from app.errors.stores import (
    StoreDamagedError as StoreDamagedError,
)
from app.errors.stores import (
    StoreError as StoreError,
)
from app.errors.stores import (
    StoreLockedError as StoreLockedError,
)
from app.errors.stores import (
    StoreMigratingError as StoreMigratingError,
)
from app.errors.stores import (
    StoreMigrationFailedError as StoreMigrationFailedError,
)
from app.errors.stores import (
    StoreMissingError as StoreMissingError,
)
from app.errors.stores import (
    StoreReadOnlyError as StoreReadOnlyError,
)
from app.errors.stores import (
    StoreSwappedError as StoreSwappedError,
)
from app.errors.stores import (
    StoreTooNewError as StoreTooNewError,
)
