"""The root of every error that a caller can meet."""

from typing import ClassVar

from typing_extensions import override


class StrongroomError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "internal_error"

    @override
    def __str__(self) -> str:
        return type(self).__doc__ or self.code
