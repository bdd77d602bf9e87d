"""The benchmark runs to its end; what it measures is no matter of a test."""

import json
import subprocess
import sys

import pytest

from app.project import PROJECT_FOLDER
from scripts.benchmark.__main__ import CASES

_SECONDS_MAX = 900


@pytest.mark.long
@pytest.mark.timeout(_SECONDS_MAX + 60)
def test_every_case_gives_its_figures() -> None:
    """Without an error of any request; an unknown case is refused."""
    command = [sys.executable, "-m", "scripts.benchmark", "--quick", "--json"]
    ran = subprocess.run(  # noqa: S603 - the project's own program
        command,
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=True,
    )
    found = json.loads(ran.stdout)
    assert {each["errors"] for each in found["figures"]} == {0}
    beginnings = {each["case"][0] for each in found["figures"]}
    assert beginnings == set("abcdefghjstw")
    assert len(found["aims"]) > len(CASES)
    unknown = subprocess.run(  # noqa: S603 - the project's own program
        [*command, "--only", "what"],
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert unknown.returncode == 2
