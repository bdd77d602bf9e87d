"""Everything that runs beside requests against one small model, in one process and in two.

Jobs, deliveries, schedules, deaths at named points, locks, and a clock that is moved both ways:
nothing is lost, nothing runs twice while a lease holds, of a locked member nothing moves, each
due time is settled once, and a reader of the feed sees every place once.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from app import telemetry
from app.db.driver_errors import StoreClosedError
from tests.support.endpoint import Endpoint, endpoint
from tests.support.matrix import chosen
from tests.support.mortal import RefusedError
from tests.support.whole import make_template
from tests.support.whole_machine import WholeMachine

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def far() -> Iterator[Endpoint]:
    """A webhook's far end."""
    with endpoint() as found:
        yield found


@pytest.fixture(scope="module")
def template(far: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a member who has a webhook in either store."""
    return make_template(tmp_path_factory.mktemp("whole"), far)


@pytest.mark.parametrize("processes", [1, 2])
def test_the_whole_is_as_its_model(
    template: Path, far: Endpoint, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens, in whatever order; and no loop meets what it did not expect."""
    met: list[BaseException] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda _where, error: met.append(error))
    examples, steps = chosen([(3, 12)], [(40, 30)])[0]
    WholeMachine.template, WholeMachine.far, WholeMachine.processes = template, far, processes
    run_state_machine_as_test(
        WholeMachine,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )
    assert not [error for error in met if not isinstance(error, RefusedError | StoreClosedError)]
