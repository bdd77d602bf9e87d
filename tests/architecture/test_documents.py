"""The documents are held to the code, and the README's session is typed as it stands."""

import re
import subprocess
from pathlib import Path

import pytest

from app.web.errors import STATUS
from app.web.rules import RULES
from tests.support.documents import DOCUMENTS, ROOT, command_sentences, registry_columns, renewed
from tests.support.service import LiveService

_ORIGIN = "http://127.0.0.1:8321"
_PATH = re.compile(r"`((?:app|web|bridge|db|worker|cli|tests|scripts|database)/[\w./{}*-]*)`")
_CALL = re.compile(r"`((?:GET|HEAD|POST|PUT|PATCH|DELETE) /[\w./{}-]*)`")


def _text(name: str) -> str:
    return ROOT.joinpath(name).read_text("utf-8")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_generated_parts_are_what_the_code_says(name: str) -> None:
    """`scripts/documents` writes them; nobody edits them by hand."""
    assert renewed(_text(name)) == _text(name)


def test_every_registry_column_says_what_it_can_tell() -> None:
    """A column that is added without a meaning fails here, so that somebody reviews it."""
    assert [row for row in registry_columns().splitlines() if row.endswith("|  |")] == []


@pytest.mark.parametrize("name", [*DOCUMENTS, "CONTRIBUTING.md"])
def test_every_path_a_document_names_is_there(name: str) -> None:
    """Written as in the tree, or from `app/`."""
    for path in _PATH.findall(_text(name)):
        if path.startswith("database/") or "{" in path or "*" in path:
            continue
        assert ROOT.joinpath(path).exists() or ROOT.joinpath("app", path).exists(), path


@pytest.mark.parametrize("name", [*DOCUMENTS, "CONTRIBUTING.md"])
def test_every_call_a_document_names_is_served(name: str) -> None:
    """And answers by the rule that the table gives it."""
    assert set(_CALL.findall(_text(name))) <= set(RULES)


def test_the_readme_names_every_command() -> None:
    """The other way round is the generated table's."""
    text = _text("README.md")
    for command in command_sentences():
        assert command.split()[-1] in text, command


def test_every_error_code_has_a_sentence() -> None:
    """And stands in the architecture's table once."""
    text = _text("ARCHITECTURE.md")
    for code in STATUS:
        assert text.count(f"| `{code}` |") == 1, code


def test_the_readme_session_works_as_typed(tmp_path: Path) -> None:
    """Set-up, sign-in, a note written and read, each line as a newcomer would paste it."""
    block = next(
        b for b in re.findall(r"```sh\n(.*?)```", _text("README.md"), re.DOTALL) if "curl" in b
    )
    lines = block.strip().splitlines()
    assert len(lines) == 4
    with LiveService(tmp_path) as service:
        outputs = []
        for line in lines:
            done = subprocess.run(  # noqa: S603 - the line is the README's own
                ["/bin/sh", "-c", line.replace(_ORIGIN, str(service.client.base_url).rstrip("/"))],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            outputs.append(done.stdout)
    assert '"recovery_code"' in outputs[0]
    assert '"version":1' in outputs[2].replace(" ", "")
    assert outputs[3] == "# Hello\n"
