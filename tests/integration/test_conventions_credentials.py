"""What holds for every credential: tokens judged first, cookies, the public name."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.people import People, people_on
from tests.support.problems import CANARY, require_problem
from tests.support.service import PASSWORD


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.mark.parametrize(
    "fields",
    [{}, {"username": 7}, {"password": None, CANARY: 1}, {"username": "x", "password": "short"}],
    ids=["missing", "of another type", "unknown", "weak"],
)
@pytest.mark.parametrize("token", [CANARY, "", None, 7, "sr_invite_x_y"])
def test_an_invitation_is_judged_before_the_other_fields(
    token: object, fields: dict[str, object], people: People
) -> None:
    """Without a good one nothing is learnt of them."""
    answer = people.anonymous().call(
        "POST", "/api/invitations/accept", json={"token": token, **fields}
    )
    require_problem(answer, 401, "invalid_credentials")


def test_a_setup_is_judged_before_the_other_fields(people: People) -> None:
    """Once there is somebody, that is all there is to say."""
    bodies: list[object] = [{}, {"setup_token": CANARY, "username": 7}, [], {CANARY: 1}]
    for body in bodies:
        answer = people.anonymous().call("POST", "/api/setup", json=body)
        require_problem(answer, 409, "already_set_up")


def by_cookie(people: People, **headers: str) -> httpx.Response:
    """Sign in by cookie; the Origin is the service's own unless said."""
    client = people.service.client
    origin = str(client.base_url).rstrip("/")
    body = {"username": "ben", "password": PASSWORD, "cookie": True}
    answer = client.post("/api/session", json=body, headers={"Origin": origin, **headers})
    client.cookies.clear()
    return answer


def test_a_cookie_is_out_of_reach_of_scripts(people: People) -> None:
    """And its CSRF token comes beside it, now and later."""
    answer = by_cookie(people)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("strongroom_session=sr_session_")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    headers = {"Cookie": cookie.split(";")[0]}
    seen = people.service.client.get("/api/session", headers=headers).json()
    assert seen["csrf_token"] == answer.json()["csrf_token"]
    assert "token" not in seen


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", None])
def test_a_page_of_another_origin_cannot_sign_in_by_cookie(
    origin: str | None, people: People
) -> None:
    """The Origin must be there and match."""
    body = {"username": "ben", "password": PASSWORD, "cookie": True}
    headers = {} if origin is None else {"Origin": origin}
    answer = people.service.client.post("/api/session", json=body, headers=headers)
    require_problem(answer, 403, "cross_site_request")
    assert "set-cookie" not in answer.headers


def test_a_cookie_needs_its_proofs_on_unsafe_methods(people: People) -> None:
    """Origin and CSRF token, both; reading needs neither."""
    made = by_cookie(people)
    client = people.service.client
    cookie = {"Cookie": made.headers["set-cookie"].split(";")[0]}
    origin = {"Origin": str(client.base_url).rstrip("/")}
    proof = {"X-CSRF-Token": made.json()["csrf_token"]}
    assert client.get("/api/session", headers=cookie).is_success
    for headers in (
        {},
        origin,
        proof,
        {**origin, "X-CSRF-Token": CANARY},
        {**origin, "X-CSRF-Token": "\u00e9".encode("latin-1").decode("latin-1")},
        {**proof, "Origin": "http://evil.example"},
    ):
        encoded = {name: text.encode("latin-1") for name, text in {**cookie, **headers}.items()}
        answer = client.patch("/api/me", json={"locale": "de"}, headers=encoded)
        require_problem(answer, 403, "cross_site_request")
    good = {**cookie, **origin, **proof}
    assert client.patch("/api/me", json={"locale": "de"}, headers=good).is_success
    ended = client.delete("/api/session", headers=good)
    assert ended.status_code == 204
    assert 'strongroom_session=""' in ended.headers["set-cookie"]
    require_problem(client.get("/api/session", headers=cookie), 401, "invalid_credentials")


def test_a_token_is_no_cookie(people: People) -> None:
    """What was not made for a cookie does not hold in one."""
    token = people.member.headers["Authorization"].split()[1]
    headers = {"Cookie": f"strongroom_session={token}"}
    answer = people.service.client.get("/api/session", headers=headers)
    require_problem(answer, 401, "invalid_credentials")


def test_two_credentials_must_be_one_caller(people: People) -> None:
    """The same member's are taken, two members' are not."""
    cookie = {"Cookie": by_cookie(people).headers["set-cookie"].split(";")[0]}
    client = people.service.client
    assert client.get("/api/session", headers=cookie | people.member.headers).is_success
    answer = client.get("/api/session", headers=cookie | people.other.headers)
    require_problem(answer, 401, "ambiguous_credentials")
    agent = people.token(people.member, "memory:read")
    assert client.get("/api/session", headers=cookie | agent.headers).is_success


def test_one_authorization_is_enough(people: People) -> None:
    """Two headers are no credential, nor is another scheme."""
    token = people.member.headers["Authorization"]
    client = people.service.client
    twice = [("Authorization", token), ("Authorization", token)]
    require_problem(client.get("/api/session", headers=twice), 401, "invalid_credentials")
    for odd in ("", "Bearer", f"Token {token.split()[1]}", f"Bearer {CANARY}"):
        answer = client.get("/api/session", headers={"Authorization": odd})
        require_problem(answer, 401, "invalid_credentials")
    lower = {"Authorization": token.lower()[:7] + token[7:]}
    assert client.get("/api/session", headers=lower).is_success


@pytest.mark.long
def test_behind_tls_everything_is_bound_to_the_public_name(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The cookie's name and Secure, the Origin, and the Host, which must be the public one."""
    public = "https://room.example"
    root = tmp_path_factory.mktemp("public")
    with people_on(root, public_url=public) as people:
        client = people.service.client
        answer = by_cookie(people, Origin=public)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-strongroom_session=")
        assert "Secure" in cookie
        assert "Domain" not in cookie
        headers = {"Cookie": cookie.split(";")[0], "Origin": public}
        headers["X-CSRF-Token"] = answer.json()["csrf_token"]
        ended = client.delete("/api/session", headers=headers)
        assert "Secure" in ended.headers["set-cookie"]
        here = str(client.base_url).rstrip("/")
        require_problem(by_cookie(people, Origin=here), 403, "cross_site_request")
        for host in ("evil.example", "127.0.0.1", ""):
            for path in ("/api/session", "/api/nothing", "/api/file?path=user-memory/n.md"):
                sent = people.member.headers | {"Host": host}
                require_problem(client.get(path, headers=sent), 421, "misdirected_request")
            assert client.get("/healthz", headers={"Host": host}).is_success
