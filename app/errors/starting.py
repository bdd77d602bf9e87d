"""The service cannot start, and says why."""

from typing_extensions import override

from app.errors.root import StrongroomError


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
