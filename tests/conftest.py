"""What every test has: the option `--long`, and one profile for searches."""

import hypothesis
import pytest

from tests.support import matrix, measuring


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--long`."""
    parser.addoption("--long", action="store_true", help="Run the full matrices.")


def pytest_configure(config: pytest.Config) -> None:
    """Choose, before any test is collected."""
    matrix.ask(long=bool(config.getoption("--long")))
    hypothesis.settings.register_profile("strongroom", deadline=None)
    hypothesis.settings.load_profile("strongroom")
    if hasattr(config, "workerinput"):  # the process that hands tests out starts others
        measuring.keep_to_this_process()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the full matrices run."""
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
