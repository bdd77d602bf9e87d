"""Administration over HTTP, on two workers: members, invitations, roles, supervision."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from tests.support.clients import Client, code_of
from tests.support.people import People, people_on
from tests.support.service import PASSWORD, LiveService

OTHER: Final = "another fine password"
_NAMES: Final = (f"person{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on two workers."""
    with people_on(tmp_path_factory.mktemp("admin"), workers=2, measured=True) as group:
        yield group


@pytest.fixture
def dan(people: People) -> Client:
    """A member of one's own."""
    return people.add(next(_NAMES), "member")


def _patch(people: People, who: Client, **changes: Any) -> Any:  # noqa: ANN401 - JSON
    answer = people.admin.call("PATCH", f"/api/admin/users/{who.user_id}", json=changes)
    return answer.json()["user"] if answer.status_code == 200 else code_of(answer)


def test_a_deactivated_member_is_out_at_once(people: People, dan: Client) -> None:
    """In every worker, tokens too; active again they sign in anew, with all they had."""
    assert dan.put("user-memory/a.md", "kept").status_code == 201
    token = people.token(dan, "memory:read")
    assert not _patch(people, dan, active=False)["active"]
    for _ in range(4):
        for each in (dan, token):
            assert code_of(each.get("user-memory/a.md")) == "invalid_credentials"
    assert not dan.may_sign_in(PASSWORD)
    assert _patch(people, dan, active=True)["active"]
    assert code_of(dan.get("user-memory/a.md")) == "invalid_credentials"
    assert dan.sign_in().read("user-memory/a.md") == "kept"


def test_an_erased_members_name_is_free(people: People, dan: Client) -> None:
    """Nothing of theirs is left; who takes the name gets an empty store of their own."""
    assert dan.put("user-memory/a.md", "kept").status_code == 201
    erased = people.admin.call("DELETE", f"/api/admin/users/{dan.user_id}")
    assert erased.status_code == 200, erased.text
    receipt = erased.json()["receipt"]
    assert receipt["user_id"] == dan.user_id
    assert receipt["file_bytes"] > 0
    left = [path.name for path in people.service.database.iterdir() if dan.user_id in path.name]
    assert left == []
    assert code_of(dan.get("user-memory/a.md")) == "invalid_credentials"
    system = [path.read_bytes() for path in people.service.database.glob("system.db*")]
    assert not any(dan.username.encode() in content for content in system), "the record too"
    again = people.add(dan.username, "member")
    assert again.user_id != dan.user_id
    assert again.get("user-memory/a.md").status_code == 404
    gone = people.admin.call("DELETE", f"/api/admin/users/{dan.user_id}")
    assert code_of(gone) == "not_found"


def test_a_profile_is_the_administrators_to_write(people: People, dan: Client) -> None:
    """But for the note about them, the member sees it; and sees that it was done."""
    changes = {"display_name": "Dan", "birthdate": "1990-01-31", "notes": "quiet", "quota_bytes": 9}
    shown = _patch(people, dan, **changes)
    assert {name: shown[name] for name in changes} == changes
    mine = dan.call("GET", "/api/me").json()["user"]
    assert mine["display_name"] == "Dan"
    assert "notes" not in mine
    acts = dan.call("GET", "/api/me/access").json()["administrators"]
    assert acts[0]["actor"] == people.admin.user_id
    assert acts[0]["action"] == "PATCH /api/admin/users/{user_id}"
    assert set(acts[0]["fields"]) == set(changes)
    assert (acts[-1]["kind"], acts[-1]["action"]) == ("insert", "POST /api/admin/users")
    assert "quiet" not in str(acts)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"password": OTHER}, "key_not_held"),
        ({"role_id": "nobody"}, "invalid_input"),
        ({"birthdate": "1990-02-30"}, "invalid_input"),
        ({"quota_bytes": -1}, "invalid_request"),
        ({"username": "other"}, "invalid_request"),
    ],
    ids=["password", "role", "birthdate", "quota", "name"],
)
def test_what_cannot_be_set_is_refused(
    people: People, dan: Client, changes: dict[str, Any], code: str
) -> None:
    """With a code, and nothing changes."""
    before = people.admin.call("GET", f"/api/admin/users/{dan.user_id}").json()
    assert _patch(people, dan, **changes) == code
    assert people.admin.call("GET", f"/api/admin/users/{dan.user_id}").json() == before


def test_a_plain_member_is_given_a_temporary_password(people: People) -> None:
    """Their sessions end; the flag tells them to change it."""
    body = {"username": next(_NAMES), "password": PASSWORD, "role_id": "member", "encrypted": False}
    made = people.admin.call("POST", "/api/admin/users", json=body).json()["user"]
    plain = Client(people.service, made["username"], PASSWORD, {}, made["id"]).sign_in()
    assert _patch(people, plain, password="short") == "weak_password"
    assert _patch(people, plain, password=OTHER)["password_is_temporary"]
    assert code_of(plain.call("GET", "/api/me")) == "invalid_credentials"
    assert not plain.may_sign_in(PASSWORD)
    plain.sign_in(OTHER)


def test_a_role_is_read_at_the_next_request(people: People, dan: Client) -> None:
    """Given or taken away, for sessions that are there already."""
    assert dan.call("GET", "/api/admin/users").status_code == 403
    _patch(people, dan, role_id="admin")
    for _ in range(4):
        assert dan.call("GET", "/api/admin/users").status_code == 200
    _patch(people, dan, role_id="member")
    for _ in range(4):
        assert dan.call("GET", "/api/admin/users").status_code == 403
    roles = people.admin.call("GET", "/api/admin/roles").json()["items"]
    assert {role["id"] for role in roles} >= {"admin", "member", "guest"}


def test_an_invitation_is_accepted_once(people: People) -> None:
    """Of two who accept it at once one becomes a member, with a code of their own."""
    made = people.admin.call("POST", "/api/admin/invitations", json={"role_id": "guest"})
    assert made.status_code == 201
    listed = people.admin.call("GET", "/api/admin/invitations").json()["items"]
    assert made.json()["id"] in {each["id"] for each in listed}
    assert made.json()["token"] not in str(listed)
    files = set(people.service.database.glob("*.db"))

    def accept(name: str) -> tuple[int, str]:
        body = {"token": made.json()["token"], "username": name, "password": PASSWORD}
        answer = people.service.client.post("/api/invitations/accept", json=body)
        if answer.status_code == 201:
            assert answer.json()["recovery_code"]
            assert answer.json()["user"]["role_id"] == "guest"
            assert not answer.json()["user"]["password_is_temporary"]
        return answer.status_code, code_of(answer)

    with ThreadPoolExecutor(2) as pool:
        told = sorted(pool.map(accept, (next(_NAMES), next(_NAMES))))
    assert told == [(201, ""), (401, "invalid_credentials")]
    assert len(set(people.service.database.glob("*.db")) - files) == 1
    assert accept(next(_NAMES)) == (401, "invalid_credentials")


def test_an_invitation_is_taken_back(people: People) -> None:
    """Then it opens nothing; its token is judged before the other fields."""
    made = people.admin.call("POST", "/api/admin/invitations", json={"role_id": "guest"}).json()
    path = f"/api/admin/invitations/{made['id']}"
    assert people.admin.call("DELETE", path).status_code == 204
    assert code_of(people.admin.call("DELETE", path)) == "not_found"
    body = {"token": made["token"], "username": "/", "password": ""}
    answer = people.service.client.post("/api/invitations/accept", json=body)
    assert code_of(answer) == "invalid_credentials"


def test_supervision_is_directed_and_now(people: People, dan: Client) -> None:
    """Written and taken away by administrators; the subject sees that it was."""
    eve = people.add(next(_NAMES), "member")
    path = f"/api/admin/supervision/{dan.user_id}/{eve.user_id}"
    for _ in range(2):
        assert people.admin.call("PUT", path).status_code == 204
    edges = people.admin.call("GET", "/api/admin/supervision").json()["items"]
    found = [(each["subject_user_id"], each["supervisor_user_id"]) for each in edges]
    assert found.count((dan.user_id, eve.user_id)) == 1
    assert (eve.user_id, dan.user_id) not in found
    acts = dan.call("GET", "/api/me/access").json()["administrators"]
    assert (acts[0]["entity"], acts[0]["kind"]) == ("supervision", "insert")
    assert dan.call("PUT", path).status_code == 403
    assert people.admin.call("DELETE", path).status_code == 204
    assert code_of(people.admin.call("DELETE", path)) == "not_found"
    nobody = f"/api/admin/supervision/{dan.user_id}/01890000-0000-7000-8000-000000000000"
    assert code_of(people.admin.call("PUT", nobody)) == "not_found"


def test_what_administrators_did_comes_in_pages(people: People, dan: Client) -> None:
    """Beside the openings, under one cursor, until both have ended."""
    for number in range(4):
        _patch(people, dan, sex=str(number))
    whole = dan.call("GET", "/api/me/access").json()
    assert whole["next_cursor"] is None
    items, acts, cursor = [], [], None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = dan.call("GET", "/api/me/access", params=params).json()
        items += page["items"]
        acts += page["administrators"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert items == whole["items"]
    assert acts == whole["administrators"]
    assert len(acts) == 5


def test_two_administrators_cannot_remove_each_other(people: People, dan: Client) -> None:
    """At once, from two workers: one administrator is left, whichever it is."""
    eve = people.add(next(_NAMES), "member")
    for each in (dan, eve):
        _patch(people, each, role_id="admin")
    _patch(people, people.admin, role_id="admin")

    def demote(by: Client, whom: Client) -> int:
        path = f"/api/admin/users/{whom.user_id}"
        return by.call("PATCH", path, json={"role_id": "member"}).status_code

    # The first administrator steps down, so that these two are the last.
    assert demote(dan, people.admin) == 200
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(demote, (dan, eve), (eve, dan)))
    assert sorted(told) in ([200, 403], [200, 409])
    left = dan if told[0] == 200 else eve
    assert demote(left, left) == 409
    path = f"/api/admin/users/{people.admin.user_id}"
    assert left.call("PATCH", path, json={"role_id": "admin"}).status_code == 200
    assert demote(people.admin, left) == 200


def test_the_first_administrator_is_made_by_one_of_many(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Eight at once with the right token: one member, one file, and set-up is over."""
    with LiveService(tmp_path_factory.mktemp("setup"), workers=2) as service:
        token = service.settings.setup_token_file.read_text().strip()

        def set_up(number: int) -> tuple[int, str]:
            body = {"setup_token": token, "username": f"boss{number}", "password": PASSWORD}
            answer = service.client.post("/api/setup", json=body)
            return answer.status_code, code_of(answer)

        with ThreadPoolExecutor(8) as pool:
            told = sorted(pool.map(set_up, range(8)))
        assert [status for status, _ in told].count(201) == 1
        assert {code for _, code in told} <= {"", "already_set_up", "overloaded"}
        assert not service.settings.setup_token_file.exists()
        assert len([path for path in service.database.glob("*.db") if path.stem != "system"]) == 1
        assert set_up(9) == (409, "already_set_up")
