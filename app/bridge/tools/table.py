"""Every tool there is."""

from collections.abc import Mapping
from typing import Final

from app.bridge.callers import Caller
from app.bridge.tools.file_tools import FILE_TOOLS
from app.bridge.tools.memory_commands import MEMORY_COMMANDS
from app.bridge.tools.toolbox import Tool

TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in (*FILE_TOOLS, *MEMORY_COMMANDS)}
"""By their names; what makes every surface."""


def offered(caller: Caller) -> list[Tool]:
    """The tools that a caller's credential was made for."""
    return [tool for tool in TOOLS.values() if tool.is_for(caller)]
