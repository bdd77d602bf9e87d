"""A member's own account over HTTP, on two workers: sessions, tokens, secrets, ways in."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx
import pytest

from tests.support.clients import Client, add_member, code_of
from tests.support.people import People, people_on
from tests.support.problems import require_problem
from tests.support.service import PASSWORD

OTHER: Final = "another fine password"
_NOTE: Final = "user-memory/kept.md"
_NAMES: Final = (f"member{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on two workers."""
    with people_on(tmp_path_factory.mktemp("account"), workers=2) as group:
        yield group


@pytest.fixture
def ana(people: People) -> Client:
    """A member of one's own, with a note, whose password is not temporary any more."""
    client = people.add(next(_NAMES), "member")
    assert client.put(_NOTE, "kept").status_code == 201
    _change(client, PASSWORD, PASSWORD + "!")
    client.password = PASSWORD + "!"
    return client


def _change(client: Client, old: str, new: str, **more: bool) -> Any:  # noqa: ANN401 - JSON
    body = {"current_password": old, "new_password": new, **more}
    answer = client.call("PUT", "/api/me/password", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["recovery_code"]


def _again(client: Client, password: str | None = None) -> Client:
    """Another session of the same member."""
    other = Client(client.service, client.username, client.password, {}, client.user_id)
    return other.sign_in(password)


def _mint(client: Client, *scopes: str, **more: Any) -> tuple[Client, dict[str, Any]]:  # noqa: ANN401 - JSON
    body = {"label": "made", "scopes": scopes, **more}
    made = client.call("POST", "/api/tokens", json=body)
    assert made.status_code == 201, made.text
    headers = {"Authorization": f"Bearer {made.json()['token']}"}
    token = Client(client.service, client.username, "", headers, client.user_id)
    return token, made.json()


def _status(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, code_of(answer)


_GONE: Final = (401, "invalid_credentials")


def test_a_session_says_who_and_for_how_long(ana: Client) -> None:
    """The answer of a sign-in and of the question who I am agree, and hold no secret."""
    body = {"username": ana.username.upper(), "password": ana.password, "label": "phone"}
    made = ana.service.client.post("/api/session", json=body).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    told = ana.service.client.get("/api/session", headers=headers).json()
    assert told["session"] == made["session"]
    assert told["user"] == made["user"]
    assert made["session"]["unlocked"]
    assert made["session"]["scopes"] == ["*"]
    assert not made["user"]["password_is_temporary"]
    assert made["token"] not in str(told)
    listed = ana.call("GET", "/api/sessions").json()["items"]
    assert [each["label"] for each in listed if not each["current"]] == ["phone"]


def test_signing_out_ends_the_session_in_every_worker(ana: Client) -> None:
    """At once, and nothing that was written is lost."""
    other = _again(ana)
    assert ana.call("DELETE", "/api/session").status_code == 204
    for _ in range(6):
        assert _status(ana.get(_NOTE)) == _GONE
    assert other.read(_NOTE) == "kept"
    assert other.call("DELETE", "/api/session").status_code == 204
    assert _again(ana).read(_NOTE) == "kept"


def test_sessions_are_ended_one_by_one_or_all_but_one(ana: Client, people: People) -> None:
    """One's own alone; the calling one stays."""
    first, second, third = (_again(ana) for _ in range(3))
    items = first.call("GET", "/api/sessions").json()["items"]
    mine = next(each["id"] for each in items if each["current"])
    stranger = people.member.call("DELETE", f"/api/sessions/{mine}")
    assert _status(stranger) == (404, "not_found")
    assert second.call("DELETE", f"/api/sessions/{mine}").status_code == 204
    assert _status(first.get(_NOTE)) == _GONE
    assert second.call("DELETE", "/api/sessions", params={"others": "true"}).status_code == 204
    assert _status(third.get(_NOTE)) == _GONE
    assert second.read(_NOTE) == "kept"
    assert len(second.call("GET", "/api/sessions").json()["items"]) == 1


def test_a_token_does_what_its_scopes_say(ana: Client) -> None:
    """Reads with the scope to read, in every worker; and nothing else."""
    token, made = _mint(ana, "memory:read")
    assert made["token"].startswith("sr_token_")
    for _ in range(4):
        assert token.read(_NOTE) == "kept"
    assert _status(token.put(_NOTE, "no")) == (403, "not_permitted")
    assert token.call("GET", "/api/me").status_code == 403
    for path in ("/api/sessions", "/api/tokens", "/api/me/keys"):
        assert token.call("GET", path).status_code == 403
    listed = ana.call("GET", "/api/tokens").json()["items"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert made["token"] not in str(listed)
    assert ana.call("DELETE", f"/api/tokens/{made['id']}").status_code == 204
    for _ in range(4):
        assert _status(token.get(_NOTE)) == _GONE


@pytest.mark.parametrize(
    ("method", "path", "sent", "location"),
    [
        ("POST", "/api/tokens", {"json": {"label": "x", "scopes": ["x"]}}, ["body", "scopes"]),
        ("GET", "/api/events", {"params": {"after": "x"}}, ["query", "after"]),
        ("GET", "/api/reports", {"params": {"cursor": "x"}}, ["query", "cursor"]),
        ("POST", "/api/jobs/claim", {"json": {"kinds": ["a"], "wait_s": 60}}, ["body", "wait_s"]),
    ],
)
def test_what_an_operation_cannot_take_is_named(
    ana: Client, method: str, path: str, sent: dict[str, Any], location: list[str]
) -> None:
    """As what no field can be is: where it lies, in the program's own words."""
    found = require_problem(ana.call(method, path, **sent), 422, "invalid_input")
    assert [each["location"] for each in found["errors"]] == [location]


def test_a_token_without_the_store_cannot_read_it(ana: Client) -> None:
    """One for the account reads the account; the store's scope is refused, not its lock."""
    token, _ = _mint(ana, "account")
    assert token.call("GET", "/api/me").json()["user"]["username"] == ana.username
    assert _status(token.get(_NOTE)) == (403, "not_permitted")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"scopes": ["everything"]}, 422),
        ({"scopes": []}, 422),
        ({"scopes": ["memory:read"], "expires_at": "2000-01-01T00:00:00Z"}, 422),
        ({"scopes": ["memory:read"], "expires_at": "9000-01-01T00:00:00Z"}, 422),
        ({"scopes": ["admin"]}, 403),
    ],
    ids=["unknown", "none", "past", "too far", "not an administrator"],
)
def test_a_token_that_cannot_be_is_not_made(ana: Client, body: dict[str, Any], status: int) -> None:
    """And none is listed."""
    assert ana.call("POST", "/api/tokens", json=body).status_code == status
    assert ana.call("GET", "/api/tokens").json()["items"] == []


def test_a_temporary_password_is_taken_over(people: People) -> None:
    """Its maker's session, its password and its key are void; the code is the member's."""
    creator = people.add(next(_NAMES), "member")
    assert creator.put(_NOTE, "kept").status_code == 201
    token, _ = _mint(creator, "memory:read")
    who = creator.call("GET", "/api/session").json()
    assert who["user"]["password_is_temporary"]
    member = _again(creator)
    code = _change(member, PASSWORD, OTHER, keep_sessions=True)
    assert code
    assert member.read(_NOTE) == "kept"
    for each in (creator, token):
        assert _status(each.get(_NOTE)) == _GONE
    assert not creator.may_sign_in(PASSWORD)
    assert not member.call("GET", "/api/session").json()["user"]["password_is_temporary"]
    kinds = [each["kind"] for each in member.call("GET", "/api/me/keys").json()["items"]]
    assert sorted(kinds) == ["password", "recovery", "session"]


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_password_is_not_changed_to_itself(people: People, encrypted: bool) -> None:  # noqa: FBT001 - a parameter
    """Else one that an administrator gave would stay theirs, and count as the member's."""
    name = next(_NAMES)
    member = add_member(people.admin, name, encrypted=encrypted)
    body = {"current_password": PASSWORD, "new_password": PASSWORD}
    refused = member.call("PUT", "/api/me/password", json=body)
    assert (refused.status_code, code_of(refused)) == (422, "password_unchanged")
    assert member.call("GET", "/api/session").json()["user"]["password_is_temporary"]


def test_a_session_is_no_token_and_a_token_no_session(ana: Client) -> None:
    """Each is ended where it is listed."""
    token, token_id = _mint(ana, "memory:read")
    session_id = ana.call("GET", "/api/session").json()["session"]["id"]
    assert ana.call("DELETE", f"/api/sessions/{token_id}").status_code == 404
    assert ana.call("DELETE", f"/api/tokens/{session_id}").status_code == 404
    assert token.read(_NOTE) == ana.read(_NOTE) == "kept"


def test_a_change_of_password_ends_other_sessions(ana: Client) -> None:
    """Unless kept; tokens stay unless ended; there is no new code."""
    other, kept = _again(ana), _again(ana)
    token, _ = _mint(ana, "memory:read")
    assert _change(ana, ana.password, OTHER) is None
    for each in (other, kept):
        assert _status(each.get(_NOTE)) == _GONE
    assert token.read(_NOTE) == "kept"
    kept = _again(ana, OTHER)
    assert _change(ana, OTHER, PASSWORD, keep_sessions=True, end_tokens=True) is None
    assert kept.read(_NOTE) == "kept"
    assert _status(token.get(_NOTE)) == _GONE


def test_of_two_changes_at_once_one_password_holds(ana: Client) -> None:
    """The one that was answered with 200, in whichever worker."""
    other = _again(ana)
    words = [OTHER + " one", OTHER + " two"]

    def change(who: Client, word: str) -> int:
        body = {"current_password": ana.password, "new_password": word, "keep_sessions": True}
        return who.call("PUT", "/api/me/password", json=body).status_code

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(change, (ana, other), words))
    assert set(told) <= {200, 401, 503}
    assert told.count(200) == 1
    assert [ana.may_sign_in(word) for word in words] == [status == 200 for status in told]


def test_recovery_ends_everything_but_the_data(ana: Client) -> None:
    """A code is good once; what it answers with is the next one."""
    body = {"password": ana.password}
    old = ana.call("POST", "/api/me/recovery-code", json=body).json()["recovery_code"]
    code = ana.call("POST", "/api/me/recovery-code", json=body).json()["recovery_code"]
    token, _ = _mint(ana, "account")

    def recover(word: str) -> httpx.Response:
        body = {"username": ana.username, "recovery_code": word, "new_password": OTHER}
        return ana.service.client.post("/api/recovery", json=body)

    assert _status(recover(old)) == _GONE
    again = recover(code.lower().replace("-", " "))
    assert again.status_code == 200, again.text
    assert _status(ana.get(_NOTE)) == _GONE
    assert _status(token.call("GET", "/api/me")) == _GONE
    assert _status(recover(code)) == _GONE
    assert not ana.may_sign_in(ana.password)
    back = _again(ana, OTHER)
    assert back.read(_NOTE) == "kept"
    ways = [each["way"] for each in back.call("GET", "/api/me/access").json()["items"]]
    assert ways[:2] == ["sign_in", "recovery"]


def test_a_rotation_keeps_the_calling_session(ana: Client) -> None:
    """And names what it ended; the password stays the same."""
    other = _again(ana)
    token, minted = _mint(ana, "memory:read")
    done = ana.call("POST", "/api/me/rotate", json={"password": ana.password})
    assert done.status_code == 200, done.text
    assert done.json()["dropped"] == {"session": 1, "token": 1, "recovery": 1}
    ended = {way["kind"]: way for way in done.json()["ended"]}
    assert ended["token"] == {"kind": "token", "id": minted["id"], "label": minted["label"]}
    assert done.json()["recovery_code"]
    for each in (other, token):
        assert _status(each.get(_NOTE)) == _GONE
    for _ in range(4):
        assert ana.read(_NOTE) == "kept"
    assert ana.may_sign_in(ana.password)


def test_every_way_in_can_be_destroyed(ana: Client) -> None:
    """A session's slot with the session; the recovery slot with its code."""
    other = _again(ana)
    items = ana.call("GET", "/api/me/keys").json()["items"]
    mine = [each for each in items if each["current"]]
    assert len(mine) == 1
    for each in items:
        if each["kind"] == "password":
            assert ana.call("DELETE", f"/api/me/keys/{each['id']}").status_code == 404
        elif not each["current"]:
            gone = ana.call("DELETE", f"/api/me/keys/{each['id']}")
            assert gone.status_code == 204, gone.text
    assert _status(other.get(_NOTE)) == _GONE
    assert ana.call("DELETE", f"/api/me/keys/{mine[0]['id']}").status_code == 204
    assert _status(ana.get(_NOTE)) == _GONE
    assert _again(ana).read(_NOTE) == "kept"


def test_a_locked_store_opens_for_the_same_session(ana: Client) -> None:
    """In every worker; each opening is listed, newest first, page by page."""
    assert ana.call("POST", "/api/me/lock").status_code == 204
    for _ in range(4):
        assert ana.read(_NOTE) == "kept"
    page = ana.call("GET", "/api/me/access", params={"limit": 1}).json()
    assert len(page["items"]) == 1
    assert set(page["items"][0]) == {"at", "way", "session_id", "agent_id", "network"}
    seen = [page["items"][0]]
    while page["next_cursor"]:
        params = {"limit": 1, "cursor": page["next_cursor"]}
        page = ana.call("GET", "/api/me/access", params=params).json()
        seen += page["items"]
    assert seen == ana.call("GET", "/api/me/access").json()["items"]
    assert [each["at"] for each in seen] == sorted((each["at"] for each in seen), reverse=True)


def test_a_wrong_password_waits_longer_each_time(people: People) -> None:
    """Five are free; then 429 with Retry-After, for a member and for nobody alike."""
    member = people.add(next(_NAMES), "member")
    told: dict[str, list[tuple[int, str | None]]] = {}
    for name in (member.username, "nobody at all"):
        body = {"username": name, "password": OTHER}
        answers = [people.service.client.post("/api/session", json=body) for _ in range(7)]
        told[name] = [(each.status_code, each.headers.get("retry-after")) for each in answers]
        assert all(OTHER not in each.text for each in answers)
        assert answers[-1].headers["ratelimit"] == '"attempts";r=0;t=1'
    assert told[member.username] == [(401, None)] * 6 + [(429, "1")]
    assert told["nobody at all"] == told[member.username]
    # Whoever is signed in is under the same throttle, and not signed out by it.
    body = {"current_password": PASSWORD, "new_password": OTHER}
    answer = member.call("PUT", "/api/me/password", json=body)
    assert _status(answer) == (429, "too_many_attempts")
    assert member.call("GET", "/api/me").status_code == 200


def test_what_is_wrong_is_wrong_at_any_length(people: People) -> None:
    """A name, a password, a code: of a length that none can have it is refused as any other."""
    member = people.add(next(_NAMES), "member")
    long = "x" * 200_000
    sign_in = {"username": member.username, "password": PASSWORD}
    back = {"username": member.username, "recovery_code": "x", "new_password": OTHER}
    for path, body, field in (
        ("/api/session", sign_in, "username"),
        ("/api/session", sign_in, "password"),
        ("/api/recovery", back, "username"),
        ("/api/recovery", back, "recovery_code"),
    ):
        answer = people.service.client.post(path, json=body | {field: long})
        assert _status(answer) == (401, "invalid_credentials"), (path, field)
    confirm = member.call("POST", "/api/session/confirm", json={"password": long})
    assert _status(confirm) == (401, "invalid_credentials")
    body = {"current_password": PASSWORD, "new_password": long}
    assert _status(member.call("PUT", "/api/me/password", json=body)) == (422, "weak_password")


def test_a_plain_member_has_no_key(people: People) -> None:
    """No code, no rotation; recovery answers as for an unknown name; a first change just counts."""
    name = next(_NAMES)
    body = {"username": name, "password": PASSWORD, "role_id": "member", "encrypted": False}
    made = people.admin.call("POST", "/api/admin/users", json=body).json()["user"]
    plain = Client(people.service, name, PASSWORD, {}, made["id"]).sign_in()
    for path in ("/api/me/rotate", "/api/me/recovery-code"):
        answer = plain.call("POST", path, json={"password": PASSWORD})
        assert _status(answer) == (409, "store_not_encrypted")
    code = "00000-00000-00000-00000-00000-00"
    body = {"username": name, "recovery_code": code, "new_password": OTHER}
    assert _status(plain.service.client.post("/api/recovery", json=body)) == _GONE
    assert _change(plain, PASSWORD, OTHER) is None
    assert not plain.call("GET", "/api/session").json()["user"]["password_is_temporary"]
