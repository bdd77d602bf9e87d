"""Administration over HTTP, on two workers: members, invitations, roles, supervision."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
    with people_on(tmp_path_factory.mktemp("admin"), workers=2) as group:
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


def _listed(client: Client, call: str, **params: object) -> list[dict[str, Any]]:
    answer = client.call("GET", call, params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def _if_match(client: Client, version: int = 1) -> Client:
    return replace(client, headers=client.headers | {"If-Match": f'"{version}"'})


def test_a_shared_folder_is_for_who_is_in_it(people: People, dan: Client) -> None:
    """From the next request on, in every worker; for all others it is not there."""
    admin, path = people.admin, "/api/admin/shared-folders"
    made = admin.call("POST", path, json={"folder_name": "Team Ä", "description": "of all"})
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    folder = made.json()
    assert folder["path"] == "shared/team ä"
    assert code_of(admin.call("POST", path, json={"folder_name": "TEAM Ä"})) == "name_taken"
    assert code_of(admin.call("POST", path, json={"folder_name": "a/b"})) == "invalid_name"
    text = f"{folder['path']}/a.md"
    own = f"{path}/{folder['id']}"
    for client in (admin, dan):
        for _ in range(2):
            assert code_of(client.put(text, "x")) == "not_found"
            assert code_of(client.get(text)) == "not_found"
    member = f"{own}/members/{dan.user_id}"
    for can_write, code in ((False, "not_permitted"), (True, "")):
        assert admin.call("PUT", member, json={"can_write": can_write}).status_code == 204
        answer = dan.put(text, "one")
        assert code_of(answer) == code if code else answer.status_code == 201
        [joined] = _listed(dan, "/api/shared-folders")
        assert (joined["path"], joined["can_write"]) == (folder["path"], can_write)
    assert [row["user_id"] for row in _listed(admin, f"{own}/members")] == [dan.user_id]
    versions = dan.call("GET", "/api/file/versions", params={"path": text})
    assert (versions.status_code, code_of(versions)) == (409, "not_versioned")
    token = people.token(dan, "memory:read", "shared:write", is_agent=True)
    assert token.read(text) == "one"
    assert code_of(people.token(dan, "memory:read").put(text, "two")) == "not_permitted"
    patched = _if_match(admin).call("PATCH", own, json={"folder_name": "other"})
    assert patched.status_code == 200, patched.text
    assert code_of(dan.get(text)) == "not_found"
    assert dan.read("shared/OTHER/a.md") == "one"
    assert admin.call("GET", own).json() == patched.json()
    assert patched.json() in _listed(admin, path)
    assert admin.call("DELETE", member).status_code == 204
    assert code_of(dan.get("shared/other/a.md")) == "not_found"
    assert admin.call("DELETE", own).status_code == 204
    assert not (people.service.database / "shared" / folder["id"]).exists()


def test_a_project_is_its_owners_to_share(people: People, dan: Client) -> None:
    """Who is in it reads there, and writes where they may; its owner alone ends it."""
    body = {"slug": "plan", "name": "The plan", "run_context": {"model": "large"}}
    made = dan.call("POST", "/api/projects", json=body)
    assert made.status_code == 201, made.text
    project = made.json()
    assert project["run_context"] == {"model": "large"}
    own = f"/api/projects/{project['id']}"
    assert code_of(dan.call("POST", "/api/projects", json=body)) == "name_taken"
    large = {**body, "slug": "large", "run_context": {"a": "x" * 70_000}}
    assert code_of(dan.call("POST", "/api/projects", json=large)) == "invalid_request"
    other, text = people.member, f"{project['path']}/notes/a.md"
    assert dan.put(text, "one\n").status_code == 201
    for path in (own, f"{own}/members"):
        assert code_of(other.call("GET", path)) == "not_found"
    member = f"{own}/members/{other.user_id}"
    assert dan.call("PUT", member, json={"can_write": True}).status_code == 204
    assert other.append(text, "two").status_code == 200
    assert dan.read(text) == "one\ntwo"
    assert other.call("GET", own).json()["can_write"]
    assert _if_match(other, 9).call("GET", own).status_code == 412
    assert project["path"] in {row["path"] for row in _listed(other, "/api/projects")}
    assert {row["user_id"] for row in _listed(other, f"{own}/members", limit=2)} == {
        dan.user_id,
        other.user_id,
    }
    for call in (("PATCH", {"json": {"name": "x"}}), ("DELETE", {})):
        assert code_of(other.call(call[0], own, **call[1])) == "not_permitted"
    listed = _listed(other, "/api/files", path=project["path"], depth=2)
    assert [row["path"] for row in listed] == [f"{project['path']}/notes", text]
    assert dan.call("PATCH", own, json={"description": "d"}).json()["version"] == 2
    assert other.call("DELETE", member).status_code == 204
    assert code_of(other.get(text)) == "not_found"
    assert dan.call("DELETE", own).status_code == 204
    assert code_of(dan.get(text)) == "not_found"
