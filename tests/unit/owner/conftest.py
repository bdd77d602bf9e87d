"""What the tests of the owner's services share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import OwnerFile, owner_file


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A member's encrypted store, empty."""
    with owner_file(tmp_path) as made:
        yield made
