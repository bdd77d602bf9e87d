"""Whatever OpenAPI can say, by whomever: never a fault of ours, never quoted back."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok

from app.web.errors import CODES
from app.web.rules import RULES
from tests.support import matrix
from tests.support.archives import zipped
from tests.support.clients import ENDLESS, Client
from tests.support.descriptions import DESCRIPTION
from tests.support.people import People, people_on
from tests.support.service import PASSWORD

CANARY: Final = "canary-5c0e7d"
EXAMPLES: Final = matrix.chosen([1], [40])[0]
ENDING: Final = {"DELETE /api/session", "DELETE /api/sessions"}
"""Calls that end sessions when they succeed."""

schemathesis.openapi.media_type(
    "application/zip", st.binary(max_size=200) | st.just(zipped(("a.md", b"text")))
)
OPERATIONS: Final = {
    found.ok().label: found.ok()
    for found in schemathesis.openapi.from_dict(DESCRIPTION).get_all_operations()
    if isinstance(found, Ok)
}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture(scope="module")
def callers(people: People) -> list[Client]:
    """Three kinds of caller, each with a session that nobody else uses."""
    kinds = ("member", "admin")
    return [people.anonymous(), *(people.add(f"fuzz {kind}", kind) for kind in kinds)]


def planted(value: Any) -> Any:  # noqa: ANN401 - whatever was generated
    """The same with the canary in every text and every name."""
    match value:
        case str():
            return CANARY + value
        case list():
            return [planted(item) for item in value]
        case dict():
            return {planted(name): planted(item) for name, item in value.items()}
        case _:
            return value


def with_values_planted(value: Any) -> Any:  # noqa: ANN401 - whatever was generated
    """The same with the canary in every text; the names stay."""
    return {k: planted(v) for k, v in value.items()} if isinstance(value, dict) else planted(value)


def check(case: Case[Any], caller: Client) -> None:
    """Send it, and hold the answer against what every answer must be."""
    answer = case.call(
        base_url=str(caller.service.client.base_url).rstrip("/"), headers=caller.headers
    )
    assert answer.status_code < 500, (answer.status_code, answer.text)
    assert "x-request-id" in answer.headers
    if answer.status_code < 400:
        return
    assert answer.headers["content-type"] == ["application/problem+json"], answer.text
    if case.method == "HEAD":
        assert not answer.content
        return
    body = answer.json()
    assert body["code"] in CODES
    assert body["status"] == answer.status_code
    assert CANARY not in answer.text


def modes_of(label: str) -> list[GenerationMode]:
    """Well formed, and ill formed where a call takes anything."""
    method, path = label.split()
    operation = DESCRIPTION["paths"][path][method.lower()]
    takes_any = "parameters" in operation or "requestBody" in operation
    return list(GenerationMode) if takes_any else [GenerationMode.POSITIVE]


def variants(case: Case[Any]) -> Iterator[Case[Any]]:
    """A case as it was generated; with canaries in its values; and in its names as well."""
    yield case
    for plant in (with_values_planted, planted):
        if isinstance(case.body, dict | list | str):
            case.body = plant(case.body)
        if isinstance(case.query, Mapping):
            case.query = plant(dict(case.query))
        yield case


LABELS: Final = sorted(OPERATIONS.keys() - ENDLESS)


@pytest.mark.parametrize("label", matrix.chosen(LABELS[::3], LABELS))
def test_nothing_that_openapi_can_say_is_a_fault(label: str, callers: list[Client]) -> None:
    """By nobody, a member or an administrator, well or ill formed."""
    operation = OPERATIONS[label]
    if label in ENDING:
        callers = [
            Client(one.service, one.username, PASSWORD, {}).sign_in() if one.username else one
            for one in callers
        ]

    @hypothesis.seed(0)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*(operation.as_strategy(generation_mode=m) for m in modes_of(label))))
    def run(cases: tuple[Case[Any], ...]) -> None:
        for case in cases:
            for variant in variants(case):
                for caller in callers:
                    check(variant, caller)

    run()


def test_every_call_is_tried() -> None:
    """The description leaves none out."""
    assert set(OPERATIONS) == set(RULES)
