"""What the tests of the registry's services share: its schema in memory, without threads."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from app.db import migrations, sqlite
from app.db.registry.store import REGISTRY, RegistryTransactor
from app.db.runtime.store import RUNTIME
from tests.support.registry import ACTOR
from tests.support.stores import MovedClock


@pytest.fixture
def clock() -> MovedClock:
    """The registry's time."""
    return MovedClock()


@pytest.fixture
def tx(clock: MovedClock) -> Iterator[RegistryTransactor]:
    """A registry with its seeds and nobody in it, in a write that never ends."""
    with closing(sqlite.in_memory(clock)) as connection:
        connection.register(())
        migrations.apply(connection, (RUNTIME, REGISTRY), clock())
        connection.actor = ACTOR
        yield RegistryTransactor(connection)
