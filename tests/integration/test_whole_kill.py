"""Everything that runs beside requests against its model, in processes that are killed.

The histories are those of `tests/unit/worker/test_whole_model.py`; here who dies is ended by
SIGKILL, at a named point, inside a transaction or anywhere.
"""

from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.endpoint import endpoint
from tests.support.mortal import AMID_A_WRITE, POINTS
from tests.support.remote import Remote
from tests.support.whole import Make, make_template
from tests.support.whole_machine import WholeMachine

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


class KilledMachine(WholeMachine):
    """The same, with processes that are some."""

    points: ClassVar[tuple[str, ...]] = (*POINTS, AMID_A_WRITE)
    make: ClassVar[Make] = Remote


@pytest.mark.parametrize("processes", [1, 2])
def test_the_whole_survives_its_processes(tmp_path: Path, processes: int) -> None:
    """Whatever is killed, in whatever order."""
    with endpoint() as far:
        KilledMachine.template, KilledMachine.far = make_template(tmp_path, far), far
        KilledMachine.processes = processes
        run_state_machine_as_test(
            KilledMachine,
            settings=settings(max_examples=6, stateful_step_count=20, deadline=None),
        )
