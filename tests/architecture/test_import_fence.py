"""The fence of imports: the contracts hold, and each catches what it is for."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support import matrix

_ROOT: Final = Path(__file__).resolve().parents[2]
_LINT: Final = Path(sys.executable).with_name("lint-imports")

_VIOLATIONS: Final = [
    ("app/owner/paths.py", "import app.registry.accounts", "owner-is-blind"),
    ("app/owner/paths.py", "import app.db.registry.store", "registry-doors"),
    ("app/owner/paths.py", "import app.bridge.layout", "owner-is-blind"),
    ("app/db/owner/store.py", "import app.db.registry.rows", "two-buckets"),
    ("app/db/registry/store.py", "import app.db.owner.rows", "two-buckets"),
    ("app/registry/accounts.py", "import app.owner.paths", "registry-is-blind"),
    ("app/registry/accounts.py", "import app.db.owner.rows", "owner-doors"),
    ("app/registry/accounts.py", "import app.bridge.layout", "registry-is-blind"),
    ("app/runtime/steps.py", "import app.registry.accounts", "owner-is-blind"),
    ("app/db/runtime/store.py", "import app.db.owner.store", "registry-is-blind"),
    ("app/web/__init__.py", "import app.db.owner.store", "owner-doors"),
    ("app/web/__init__.py", "import app.db.registry.store", "registry-doors"),
    ("app/web/__init__.py", "import app.db.sqlite", "sql-stays-in-db"),
    ("app/bridge/layout.py", "import app.db.migrations", "sql-stays-in-db"),
    ("app/owner/paths.py", "import app.db.queries", "sql-stays-in-db"),
    ("app/bridge/layout.py", "import sqlcipher3", "one-driver"),
    ("app/db/pool.py", "import sqlcipher3", "one-driver"),
    ("app/crypto/kdf.py", "import sqlite3", "one-driver"),
    ("app/crypto/kdf.py", "import fastapi", "pure-core"),
    ("app/owner/paths.py", "import starlette.requests", "pure-core"),
    ("app/bridge/layout.py", "import fastapi", "pure-core"),
    ("app/bridge/layout.py", "import app.web.owner", "layers"),
    ("app/crypto/kdf.py", "import app.db.context", "layers"),
    ("app/errors/root.py", "import app.crypto.kdf", "layers"),
    ("app/db/sqlite.py", "import app.db.writer", "db-layers"),
    ("app/db/context.py", "import app.db.authorizer", "db-layers"),
    ("app/db/locks.py", "import app.db.writer", "db-layers"),
]
_ONE_EACH: Final = list({each[2]: each for each in _VIOLATIONS}.values())
"""One for each contract, in a run without the full matrices."""


def _broken(folder: Path) -> set[str]:
    """Ids of the contracts that a tree breaks."""
    names = _contracts()
    done = subprocess.run(  # noqa: S603 - the project's own tool
        [str(_LINT)], check=False, capture_output=True, text=True, cwd=folder
    )
    broken = {
        line.removesuffix(" BROKEN")
        for line in done.stdout.splitlines()
        if line.endswith(" BROKEN")
    }
    assert bool(broken) == (done.returncode != 0), done.stdout + done.stderr
    return {names[name] for name in broken}


def _contracts() -> dict[str, str]:
    """Every contract's name, with its id."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))
    return {each["name"]: each["id"] for each in settings["tool"]["importlinter"]["contracts"]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program."""
    folder = tmp_path_factory.mktemp("tree")
    shutil.copytree(_ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture
def violated(tree: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The copy, with one line more for the length of a test."""
    name, line = request.param
    file = tree / name
    content = file.read_text("utf-8")
    file.write_text(f"{content}\n{line}\n", "utf-8")
    yield tree
    file.write_text(content, "utf-8")


def test_the_contracts_hold(tree: Path) -> None:
    """For the program as it stands."""
    assert _broken(tree) == set()


@pytest.mark.parametrize(
    ("violated", "contract"),
    [
        pytest.param((file, line), contract, id=f"{file} {line}")
        for file, line, contract in matrix.chosen(_ONE_EACH, _VIOLATIONS)
    ],
    indirect=["violated"],
)
def test_a_violation_breaks_its_contract(violated: Path, contract: str) -> None:
    """One import in the wrong place is enough."""
    assert contract in _broken(violated)


def test_a_module_in_no_layer_is_caught(tree: Path) -> None:
    """A new package, or a new module of stores, must take its place first."""
    for name, contract in (("app/utility.py", "layers"), ("app/db/odd.py", "db-layers")):
        file = tree / name
        file.write_text('"""Nothing."""\n')
        try:
            assert contract in _broken(tree)
        finally:
            file.unlink()


def test_two_modules_that_need_each_other_are_caught(tree: Path) -> None:
    """A cycle is a contract broken."""
    files = {tree / "app/owner/paths.py": "edits", tree / "app/owner/edits.py": "paths"}
    contents = {file: file.read_text("utf-8") for file in files}
    try:
        for file, other in files.items():
            file.write_text(f"{contents[file]}\nimport app.owner.{other}\n", "utf-8")
        assert "acyclic" in _broken(tree)
    finally:
        for file, content in contents.items():
            file.write_text(content, "utf-8")


def test_every_contract_is_shown_to_catch_something() -> None:
    """A contract that nothing tries could be worth nothing."""
    tried = {contract for *_, contract in _VIOLATIONS} | {"acyclic"}
    assert tried == set(_contracts().values())
