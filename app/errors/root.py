"""The root of every error that a caller can meet, and the whole tree.

    StrongroomError
    +-- AuthenticationRequiredError      no credential where one is needed
    +-- InvalidCredentialsError          a credential that does not hold
    |   +-- AmbiguousCredentialsError    two credentials, two callers
    +-- NotPermittedError                the route is closed to this caller
    |   +-- DeniedByRuleError            a rule of the group keeps agents out
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
    |   +-- ArchiveError                 an archive that cannot be taken in; says which entry
    |       +-- ArchiveDamagedError  ArchiveOverlapError  ArchiveEncryptedError
    |       +-- ArchiveMethodError  ArchiveKindError  ArchiveNameError
    |       +-- ArchiveDuplicateError  ArchiveBombError  ArchiveTooLargeError
    |       +-- ArchiveTextError  ArchiveManifestError
    +-- PayloadTooLargeError
    +-- ConflictError                    the state of things stands against it
    |   +-- VersionConflictError  AlreadyExistsError  PathConflictError
    |   +-- NoMatchError  ManyMatchesError  UsernameTakenError
    |   +-- AlreadySetUpError  LastAdministratorError  KeyNotHeldError
    |   +-- StoreNotEncryptedError  ConstraintError
    |   +-- AlreadyRunningError  TurnedOffError
    |   +-- IdempotencyInProgressError  IdempotencyAnswerNotKeptError
    |   +-- LeaseLostError  JobOverError  ApprovalOverError
    +-- EventCursorError                 a place from which the log cannot be followed
    |   +-- EventLogRestartedError  EventCursorExpiredError  EventCursorAheadError
    +-- TooManyStreamsError              the caller has as many open as one may
    +-- TooManyApprovalsError            as many wait for a decision as may
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

from typing import ClassVar, Self

from typing_extensions import override


class StrongroomError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "internal_error"
    advice: str = ""
    """What to do instead, for the caller alone, where more is known than the class says: it may
    name their own paths, and so is no part of what the error prints as. No text of theirs."""

    def advised(self, advice: str) -> Self:
        """Say what to do instead.

        Returns:
            The same error.
        """
        self.advice = advice
        return self

    @property
    def sentence(self) -> str:
        """What its caller is told."""
        return self.advice or str(self)

    @override
    def __str__(self) -> str:
        return type(self).__doc__ or self.code
