"""The one table of who may call what: whole, and what OpenAPI says too."""

import inspect
import typing

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from app import main
from app.bridge.accounts.api_tokens import SCOPES
from app.registry.roles import Capability
from app.settings import Settings
from app.web.callers import UNSAFE
from app.web.descriptions import describe
from app.web.routes import StrictRoute
from app.web.rules import RULES, methods_of


def routes() -> list[APIRoute]:
    """Every route of the service, in the order in which they are tried."""
    return [route for router in main.ROUTERS for route in router.routes if is_ours(route)]


def is_ours(route: object) -> typing.TypeGuard[APIRoute]:
    """Whether it is one of our kind; any other would be unjudged."""
    assert isinstance(route, StrictRoute)
    return True


def calls() -> list[str]:
    """Every route as the table names it."""
    return [f"{method} {route.path}" for route in routes() for method in route.methods or ()]


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    """The table and the routers name the same calls, each once."""
    assert sorted(calls()) == sorted(RULES)


def test_a_route_without_a_rule_cannot_be_made() -> None:
    """Whoever adds a call must say who may call it."""
    router = APIRouter(route_class=StrictRoute)

    async def answer() -> None:
        """Answer nothing."""

    with pytest.raises(KeyError):
        router.add_api_route("/api/new", answer, methods=["GET"])


def test_every_rule_asks_for_what_there_is() -> None:
    """Scopes and capabilities are those that tokens and roles can have."""
    for call, rule in RULES.items():
        assert rule.scope in {None, "", *SCOPES}, call
        assert rule.capability in {None, *typing.get_args(Capability)}, call
        assert not (rule.is_public and (rule.scope or rule.capability or rule.is_recent)), call


def test_the_first_route_that_fits_is_the_right_one() -> None:
    """No route with a parameter hides one without."""
    seen: list[APIRoute] = []
    for route in routes():
        for earlier in seen:
            same = earlier.methods == route.methods
            assert not (same and earlier.path_regex.match(route.path)), (earlier.path, route.path)
        seen.append(route)


def test_a_path_knows_its_methods() -> None:
    """As `Allow` gives them."""
    assert methods_of("/api/file") == ["GET", "PUT", "PATCH", "DELETE"]
    assert methods_of("/api/nothing") == []


def test_every_route_runs_on_the_loop() -> None:
    """No route or dependency is a plain function, which would cost a thread hop."""
    for route in routes():
        waiting = [route.dependant]
        while waiting:
            found = waiting.pop()
            assert found.call is not None
            assert inspect.iscoroutinefunction(found.call), (route.path, found.call)
            waiting += found.dependencies


@pytest.fixture(scope="module")
def description() -> dict[str, typing.Any]:
    """The service's description in OpenAPI, where two limits were set."""
    app = FastAPI()
    for router in main.ROUTERS:
        app.include_router(router)
    return describe(app, Settings(job_wait_s=7, event_page_max=77))


def operations(description: dict[str, typing.Any]) -> dict[str, dict[str, typing.Any]]:
    """Each described call, as the table names it."""
    return {
        f"{method.upper()} {path}": operation
        for path, item in description["paths"].items()
        for method, operation in item.items()
    }


def test_openapi_describes_every_call(description: dict[str, typing.Any]) -> None:
    """No more and no less, each in words."""
    found = operations(description)
    assert sorted(found) == sorted(RULES)
    assert all(operation["description"] for operation in found.values())


def test_openapi_says_which_calls_need_a_credential(description: dict[str, typing.Any]) -> None:
    """And which kinds there are."""
    assert set(description["components"]["securitySchemes"]) == {"bearer", "cookie"}
    for call, operation in operations(description).items():
        kinds = [name for scheme in operation["security"] for name in scheme]
        assert kinds == ([] if RULES[call].is_public else ["bearer", "cookie"]), call


def test_openapi_says_how_every_call_refuses(description: dict[str, typing.Any]) -> None:
    """Problems only: the framework's own form of a validation error is nowhere."""
    for call, operation in operations(description).items():
        for status in ("4XX", "5XX"):
            assert list(operation["responses"][status]["content"]) == [
                "application/problem+json"
            ], call
        assert "422" not in operation["responses"], call
    assert "HTTPValidationError" not in description["components"]["schemas"]


def test_openapi_describes_bodies_of_writes(description: dict[str, typing.Any]) -> None:
    """Each field that a body takes is there, raw bodies by their media types."""
    found = operations(description)
    assert set(found["PUT /api/file"]["requestBody"]["content"]) == {"text/markdown", "text/plain"}
    append = found["POST /api/file/append"]["requestBody"]["content"]
    assert set(append["application/json"]["schema"]["properties"]) == {"path", "content"}
    assert append["application/json"]["schema"]["additionalProperties"] is False
    for name, schema in description["components"]["schemas"].items():
        if name.endswith("Body"):
            assert schema["additionalProperties"] is False, name


_NO_SCHEMA: typing.Final = {"ge", "gt", "le", "lt", "min_length", "max_length"}
"""What a limit is named when it went on a type that no schema can say it of."""


def parts(schema: object) -> typing.Iterator[dict[str, typing.Any]]:
    """Every object in a description, however deep."""
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, dict | list):
        for each in schema.values() if isinstance(schema, dict) else schema:
            yield from parts(each)


def test_openapi_says_each_limit_as_it_is(description: dict[str, typing.Any]) -> None:
    """By the names that schemas have; those that are set on this box by their number here."""
    for part in parts(description):
        assert part.keys().isdisjoint(_NO_SCHEMA), part
    for call, operation in operations(description).items():
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "limit":
                most = 77 if call == "GET /api/events" else 200
                assert parameter["schema"]["maximum"] == most, call
    forms = description["components"]["schemas"]
    assert forms["ClaimBody"]["properties"]["wait_s"]["maximum"] == 7
    for form, field, least, most in (
        ("PasswordBody", "new_password", 12, 1_024),
        ("UserBody", "username", 1, 64),
        ("FolderBody", "folder_name", 1, 64),
    ):
        found = forms[form]["properties"][field]
        assert (found["minLength"], found["maxLength"]) == (least, most), form


def test_conditions_are_for_methods_that_change_something() -> None:
    """A safe method judges its own."""
    for call, rule in RULES.items():
        assert not rule.takes_conditions or call.split()[0] in UNSAFE, call
