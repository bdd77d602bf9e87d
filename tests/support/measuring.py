"""Coverage of the processes that tests start: of those alone whose code nothing else runs.

To be measured makes a start half as long again, and there are hundreds.
"""

import os
from typing import Final

_VARIABLE: Final = "COVERAGE_PROCESS_CONFIG"
_kept: dict[str, str] = {}


def keep_to_this_process() -> None:
    """Have processes that are started from now on not measured, unless they ask for it."""
    value = os.environ.pop(_VARIABLE, None)  # noqa: TID251 - for children, not for us
    if value is not None:
        _kept[_VARIABLE] = value


def measured() -> dict[str, str]:
    """The environment of a process that is measured, if this one is."""
    return {**os.environ, **_kept}  # noqa: TID251 - likewise
