"""Who calls, and what they may: credentials, rights, limits, and what is not there for them."""

from typing import ClassVar

from app.errors.root import StrongroomError


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


class DeniedByRuleError(NotPermittedError):
    """A rule of the group keeps agents from writing this; no approval can be asked for."""

    code = "denied_by_rule"


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


class TooManyStreamsError(StrongroomError):
    """The caller has as many streams open as one may: close one."""

    code = "too_many_streams"
    retry_after_s: ClassVar[int] = 10
    """One of them may end by itself meanwhile."""


class TooManyApprovalsError(StrongroomError):
    """Too many writes of the member's agents wait for a decision: have some decided first."""

    code = "too_many_approvals"
    retry_after_s: ClassVar[int] = 60
    """A person decides, in a person's time."""


class TooManyAttemptsError(StrongroomError):
    """Too many attempts: wait before the next one."""

    code = "too_many_attempts"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s
