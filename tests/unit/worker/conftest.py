"""What the tests of the worker share: a prepared root, copied for each of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.bridge import start
from app.settings import Settings
from tests.support.rig import Rig
from tests.support.rooms import CHEAP


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with nobody in it."""
    root = tmp_path_factory.mktemp("template")
    start.prepare(Settings.model_validate({"root": root}), kdf_params=CHEAP)
    return root


@pytest.fixture
def make_rig(template: Path, tmp_path: Path) -> Callable[..., Rig]:
    """Make a root with settings of one's own; its jobs are looked for every few milliseconds."""
    return lambda **chosen: Rig(
        tmp_path / "root", template, **{"job_poll_s": 0.02, "exclusive_wait_s": 2.0, **chosen}
    )


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    """A root with nobody in it."""
    return make_rig()
