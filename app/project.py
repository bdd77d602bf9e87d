"""Where the program itself stands."""

from pathlib import Path
from typing import Final

PROJECT_FOLDER: Final = Path(__file__).resolve().parent.parent
"""The folder that holds the package `app`."""
