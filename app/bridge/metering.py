"""Who may read the service's counts beside the API: whoever has the token of its file."""

import hmac
from typing import Final

from app import metrics
from app.bridge.strongroom import Strongroom
from app.errors.callers import AuthenticationRequiredError, InvalidCredentialsError, NotFoundError

_TOKEN_BYTES_MAX: Final = 4_096


async def read(room: Strongroom, bearer: str | None) -> bytes:
    """All counts, for whoever shows the token.

    Args:
        room: The service.
        bearer: What was shown; None when nothing was.

    Returns:
        Prometheus' text format.

    Raises:
        NotFoundError: They are not on offer here.
        AuthenticationRequiredError: Nothing was shown.
        InvalidCredentialsError: It is not the token, or there is none in the file.
    """
    file = room.settings.metrics_token_file
    if file is None:
        raise NotFoundError
    if bearer is None:
        raise AuthenticationRequiredError

    def take() -> bytes:
        # Read at each call, so that another token takes effect without a start.
        try:
            with file.open("rb") as opened:
                token = opened.read(_TOKEN_BYTES_MAX).strip()
        except OSError as error:
            raise InvalidCredentialsError from error
        if not token or not hmac.compare_digest(token, bearer.encode()):
            raise InvalidCredentialsError
        return metrics.exposition(room.settings.metrics_folder)

    return await room.stores.on_thread(take)
