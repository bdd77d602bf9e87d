"""What prompts are made of: texts of several homes, and what is known of their reader."""

from dataclasses import replace
from typing import Any

import pytest

from app.bridge.content import contexts, files, prompts
from app.bridge.content.prompts import Rendered
from app.bridge.strongroom import Strongroom
from app.clock import parse_rfc3339
from app.errors.inputs import InvalidInputError, PayloadTooLargeError
from app.errors.stores import StoreLockedError
from app.owner.notes import Condition
from app.owner.paths import clean
from app.registry import accounts
from tests.support.rig import ACTOR, Rig, add, enter
from tests.support.rooms import CALL


def test_a_context_has_what_is_there_and_says_what_is_not(rig: Rig) -> None:
    """In the order asked for, of both stores; twice the same is twice there."""
    asked = ["shared-memory/all.md", "user-memory/none", "user-memory/./a.md", "shared-memory"]

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        for path in ("user-memory/a.md", "shared-memory/all.md"):
            await files.put(room, caller, CALL, clean(path), f"at {path}", Condition())
        refs = [clean(path) for path in [*asked, "user-memory/a.md"]]
        found = await contexts.gather(room, caller, CALL, refs)
        assert [(each.ref.display, each.excerpt and each.excerpt.content) for each in found] == [
            ("shared-memory/all.md", "at shared-memory/all.md"),
            ("user-memory/none", None),
            ("user-memory/a.md", "at user-memory/a.md"),
            ("shared-memory", None),
            ("user-memory/a.md", "at user-memory/a.md"),
        ]

    rig.run(work)


def test_a_context_is_bounded_in_all(make_rig: Any) -> None:  # noqa: ANN401 - a fixture's function
    """What is named first has the room first, in whichever store it lies."""
    rig: Rig = make_rig(context_bytes_max=10)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        refs = [clean(f"{root}/n") for root in ("user-memory", "shared-memory")]
        for ref in refs:
            await files.put(room, caller, CALL, ref, "four\nfour\n", Condition())
        for order in (refs, refs[::-1]):
            first, second = await contexts.gather(room, caller, CALL, order)
            assert first.excerpt
            assert second.excerpt
            assert (first.excerpt.content, first.excerpt.is_cut) == ("four\nfour\n", False)
            assert (second.excerpt.content, second.excerpt.is_cut) == ("", True)
        first, again = await contexts.gather(room, caller, CALL, [refs[0], refs[0]])
        assert first.excerpt
        assert again.excerpt
        assert (first.excerpt.is_cut, again.excerpt.is_cut) == (False, True)

    rig.run(work)


def test_a_credential_without_a_slot_has_no_context_of_its_own_store(rig: Rig) -> None:
    """The group's it has; with one path of its own nothing at all is told."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = replace(await enter(room), wrapped_dek=None)
        assert await contexts.gather(room, caller, CALL, [clean("shared-memory/none")])
        with pytest.raises(StoreLockedError):
            await contexts.gather(room, caller, CALL, [clean("user-memory/none")])

    rig.run(work)


@pytest.mark.parametrize(
    ("today", "age"),
    [("2026-02-28", 25), ("2026-03-01", 26), ("2028-02-29", 28), ("2000-02-29", 0)],
)
def test_a_profile_tells_the_age_by_the_clock(rig: Rig, today: str, age: int) -> None:
    """Whoever was born on 29 February is a year older on 1 March."""
    rig.clock.now_ms = parse_rfc3339(f"{today}T12:00:00Z")

    async def work(room: Strongroom) -> str:
        made = await add(room)
        changes = {"birthdate": "2000-02-29"}
        await room.stores.registry.write(
            lambda tx: accounts.set_profile(tx, made.account.id, changes, may_grant_admin=False),
            ACTOR,
        )
        return (await prompts.render(room, await enter(room), "<!--USER_PROFILE-->", {})).text

    assert f"Date of birth: 2000-02-29 (age {age})" in rig.run(work)


def test_a_profile_says_what_is_unknown(rig: Rig) -> None:
    """Notes are left out when there are none, and everything else is there when it is set."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        caller = await enter(room)
        template = "Of <!-- USER_PROFILE -->."
        assert (await prompts.render(room, caller, template, {})).text == (
            "Of Name: ana\nDate of birth: unknown\nSex: not specified\nLanguage: not specified."
        )
        changes = {"display_name": "Ana <!-- X -->", "sex": "f", "locale": "de", "notes": "tall"}
        await room.stores.registry.write(
            lambda tx: accounts.set_profile(tx, made.account.id, changes, may_grant_admin=False),
            ACTOR,
        )
        rendered = await prompts.render(room, caller, template, {"X": "never"})
        assert rendered == Rendered(
            "Of Name: Ana <!-- X -->\nDate of birth: unknown\nSex: f\nLanguage: de\nNotes: tall."
        )

    rig.run(work)


def test_a_credential_is_told_no_profile_that_it_was_not_made_for(rig: Rig) -> None:
    """The key is left and named; so it is for whoever could not read the account by itself."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = replace(await enter(room), scopes=frozenset({"memory:read"}))
        template = "<!-- USER_PROFILE --> <!-- USER_PROFILE --> <!-- NONE -->"
        rendered = await prompts.render(room, caller, template, {})
        assert rendered == Rendered(template, ["NONE"], ["USER_PROFILE"])
        for key in ("USER_PROFILE", "two words", "", "-st", "st-"):
            with pytest.raises(InvalidInputError):
                await prompts.render(room, caller, template, {key: "mine"})

    rig.run(work)


@pytest.mark.parametrize(
    ("template", "text", "unknown"),
    [
        ("<!-- A -->", "a<!-- B -->", []),
        ("<!--A--><!--\tB\t-->", "a<!-- B -->b", []),
        ("<!-- A B --> <!-- C --> <!-- c --> <!-- C -->", None, ["C", "c"]),
        ("<!-- a-b --><!---A--><!-- A --", None, ["a-b"]),
        (
            "<!--team-name--><!-- 2.x --><!-- x- --><!-- -x --><!-- x--->",
            None,
            ["team-name", "2.x"],
        ),
        ("", "", []),
    ],
)
def test_values_are_put_in_once(template: str, text: str | None, unknown: list[str]) -> None:
    """One pass; whatever is no placeholder with a value stands as it was."""
    values = {"A": "a<!-- B -->", "B": "b"}
    wanted = Rendered(template if text is None else text, unknown)
    assert prompts.fill(template, values, set(), 1_000) == wanted


def test_a_key_that_stands_often_or_beside_many_is_named_once() -> None:
    """However many stand for nothing, each costs the same."""
    keys = [f"K{number}" for number in range(50_000)]
    template = "".join(f"<!--{key}-->" for key in [*keys, *keys])
    found = prompts.fill(template, {}, {"K1"}, len(template))
    assert (found.text, found.withheld) == (template, ["K1"])
    assert found.unknown == [key for key in keys if key != "K1"]


def test_a_prompt_is_bounded() -> None:
    """A short template with many places for a long value is refused before it is built."""
    for template in ("<!--A-->" * 3, "<!--A--><!--A-->x", "x" * 9):
        with pytest.raises(PayloadTooLargeError):
            prompts.fill(template, {"A": "four"}, set(), 8)
    assert prompts.fill("<!--A--><!--A-->", {"A": "four"}, set(), 8).text == "fourfour"
