"""What was sent, and cannot be taken."""

from app.errors.root import StrongroomError


class InvalidInputError(StrongroomError):
    """A field cannot be taken as it is."""

    code = "invalid_input"

    def __init__(self, *, field: str | None = None) -> None:
        """Say which; the name the program has for it, never one that was sent."""
        super().__init__()
        self.field = field
        """None where it is no field of the request, or not one alone."""


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
    """A username is 1 to 64 characters that may stand in a path: no control, slash, outer space."""

    code = "invalid_username"


class InvalidNameError(InvalidInputError):
    """A name is 1 to 64 characters that may stand in a path; a slug is a-z, 0-9 and dashes."""

    code = "invalid_name"


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
    """A webhook's url is https to a sound host, 2,048 characters at most, no user, no fragment."""

    code = "invalid_webhook_url"


class WebhookTargetError(InvalidInputError):
    """The url leads where webhooks may not go: to a private address, or in clear."""

    code = "webhook_target_refused"


class PayloadTooLargeError(StrongroomError):
    """The body is larger than this call takes."""

    code = "payload_too_large"


class RangeNotSatisfiableError(StrongroomError):
    """The part asked for lies outside of what there is."""

    code = "range_not_satisfiable"

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.size_bytes = size_bytes
