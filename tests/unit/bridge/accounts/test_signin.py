"""Signing in, and every refusal that looks like every other."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from app.bridge import access
from app.bridge.accounts import codes, credentials, members, passwords, revocation, signin
from app.bridge.accounts.passwords import Checked
from app.bridge.accounts.signin import Device
from app.bridge.callers import Caller
from app.bridge.strongroom import Strongroom
from app.crypto import envelope, kdf
from app.crypto.envelope import Binding
from app.crypto.kdf import KdfParams
from app.crypto.keys import Key
from app.db.owner.store import OwnerReader
from app.db.registry.store import RegistryTransactor
from app.errors.callers import (
    HumanSessionRequiredError,
    InvalidCredentialsError,
    ReauthenticationRequiredError,
    TooManyAttemptsError,
)
from app.errors.stores import OverloadedError, StoreBusyError, StoreLockedError
from app.ids import UserId
from app.owner.access import list_access
from app.registry import accounts, throttle
from app.registry.throttle import ACCOUNT_FREE
from tests.support.rig import (
    ACTOR,
    ELSEWHERE,
    OTHER,
    Rig,
    add,
    begin_state,
    enter,
    member,
    read_note,
    write_note,
)
from tests.support.rooms import CALL, CHEAP, PASSWORD


async def _alter(room: Strongroom, sql: str, **params: str | int | bytes | None) -> None:
    """Change the registry by hand."""

    def write(tx: RegistryTransactor) -> None:
        tx._connection.all(sql, params)

    await room.stores.registry.write(write, ACTOR)


async def _openings(room: Strongroom, caller: Caller) -> list[str]:
    def read(reader: OwnerReader) -> list[str]:
        return [row.way for row in list_access(reader, None, 10)]

    return await access.with_own(room, caller, CALL, lambda store: store.read(read))


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "cleartext"])
def test_a_session_opens_its_members_store(rig: Rig, *, encrypted: bool) -> None:
    """In every process, also in the next one, and each opening is on record."""

    async def first(room: Strongroom) -> Caller:
        await add(room, encrypted=encrypted)
        caller = await enter(room)
        await write_note(room, caller)
        return caller

    async def second(room: Strongroom) -> None:
        present = await access.authenticate(room, caller.token)
        assert await read_note(room, present) == "kept"
        assert await _openings(room, present) == ["session", "sign_in"]
        row = await member(room, caller.user_id)
        assert row.store_bytes
        assert row.last_unlocked_at == room.clock()

    caller = rig.run(first)
    rig.run(second)


def test_a_session_is_what_it_was_made_for(rig: Rig) -> None:
    """Its device is on its row; its token ends when it should."""

    async def work(room: Strongroom) -> None:
        await add(room)
        device = Device(is_cookie=True, label="phone", user_agent="agent")
        made = await signin.sign_in(room, "ANA", PASSWORD, CALL, device)
        assert made.is_unlocked
        assert made.token.text() not in repr(made)
        caller = await access.authenticate(room, made.token)
        assert caller.is_cookie
        rig.clock.advance(room.settings.cookie_idle_hours * 3_600_000 + 1)
        with pytest.raises(InvalidCredentialsError):
            await access.authenticate(room, made.token)
        plain = await signin.sign_in(room, "ana", PASSWORD, CALL)
        rig.clock.now_ms = plain.ends_at
        with pytest.raises(InvalidCredentialsError):
            await access.authenticate(room, plain.token)

    rig.run(work)


async def _deactivate(room: Strongroom, user_id: UserId) -> None:
    await members.deactivate(room, user_id, ACTOR)


async def _erase(room: Strongroom, user_id: UserId) -> None:
    await begin_state(room, user_id, "erasing")


async def _close(room: Strongroom, user_id: UserId) -> None:
    await _alter(
        room,
        "UPDATE users SET encrypted = 0, database_password = NULL, password_hash = NULL "
        "WHERE id = :id",
        id=user_id,
    )


async def _damage(room: Strongroom, user_id: UserId) -> None:
    await _alter(room, "UPDATE users SET kdf_params = '{}' WHERE id = :id", id=user_id)


async def _leave(_room: Strongroom, _user_id: UserId) -> None:
    return


_REFUSED = [
    pytest.param("ana", True, OTHER, _leave, id="wrong password"),
    pytest.param("ana", False, OTHER, _leave, id="wrong password, cleartext"),
    pytest.param("nobody", True, PASSWORD, _leave, id="unknown"),
    pytest.param("x" * 5000, True, PASSWORD, _leave, id="long name"),
    pytest.param("\ud800", True, PASSWORD, _leave, id="odd name"),
    pytest.param("ana", True, "\ud800", _leave, id="odd password"),
    pytest.param("ana", True, "", _leave, id="empty password"),
    pytest.param("ana", True, "x" * 10_000, _leave, id="long password"),
    pytest.param("ana", True, PASSWORD, _deactivate, id="inactive"),
    pytest.param("ana", True, PASSWORD, _erase, id="being erased"),
    pytest.param("ana", False, PASSWORD, _close, id="nobody signs in"),
    pytest.param("ana", True, PASSWORD, _damage, id="damaged row"),
]


@pytest.mark.parametrize(("name", "encrypted", "password", "change"), _REFUSED)
def test_every_refusal_costs_and_looks_the_same(  # noqa: PLR0913, PLR0917 - one table of facts
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    encrypted: bool,  # noqa: FBT001 - from the table
    password: str,
    change: Callable[[Strongroom, UserId], Awaitable[None]],
) -> None:
    """One error, one derivation of one cost, one failure counted."""
    spent: list[int] = []
    derive, verify = kdf.derive, kdf.verify

    def count(text: str, salt: bytes, params: KdfParams) -> Key:
        spent.append(params.memory_kib * params.time_cost)
        return derive(text, salt, params)

    def count_verify(text: str, verifier: bytes) -> bool:
        params = kdf.verifier_params(verifier)
        spent.append(params.memory_kib * params.time_cost)
        return verify(text, verifier)

    async def work(room: Strongroom) -> None:
        made = await add(room, encrypted=encrypted)
        await change(room, made.account.id)
        monkeypatch.setattr(kdf, "derive", count)
        monkeypatch.setattr(kdf, "verify", count_verify)
        with pytest.raises(InvalidCredentialsError) as refused:
            await signin.sign_in(room, name, password, CALL)
        assert type(refused.value) is InvalidCredentialsError
        assert sum(spent) == CHEAP.memory_kib * CHEAP.time_cost
        monkeypatch.undo()
        for _ in range(ACCOUNT_FREE):
            with pytest.raises(InvalidCredentialsError):
                await signin.sign_in(room, name, password, CALL)
        with pytest.raises(TooManyAttemptsError):
            await signin.sign_in(room, name, password, CALL)

    rig.run(work)


def test_a_cheaper_secret_costs_a_refusal_as_much(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a member's cost is below today's, the rest is spent when the password is wrong."""
    spent: list[int] = []
    derive = kdf.derive

    def count(text: str, salt: bytes, params: KdfParams) -> Key:
        spent.append(params.memory_kib * params.time_cost)
        return derive(text, salt, params)

    async def work(room: Strongroom) -> None:
        await add(room)
        dearer = replace(room, kdf_params=KdfParams(256, 2))
        monkeypatch.setattr(kdf, "derive", count)
        with pytest.raises(InvalidCredentialsError):
            await signin.sign_in(dearer, "ana", OTHER, CALL)
        assert sum(spent) == 256 * 2

    rig.run(work)


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "cleartext"])
def test_a_sign_in_raises_the_cost(rig: Rig, *, encrypted: bool) -> None:
    """To today's, when the member's is below it; several at once all get in."""

    async def work(room: Strongroom) -> None:
        made = (await add(room, encrypted=encrypted)).account
        dearer = replace(room, kdf_params=KdfParams(128, 1))
        got = await asyncio.gather(
            *(signin.sign_in(dearer, "ana", PASSWORD, CALL) for _ in range(3))
        )
        for each in got:
            await access.authenticate(room, each.token)
        row = await member(room, made.id)
        stored = (
            KdfParams.from_json(row.kdf_params or "")
            if encrypted
            else kdf.verifier_params(row.password_hash or b"")
        )
        assert stored == dearer.kdf_params
        version = row.version
        await signin.sign_in(room, "ana", PASSWORD, CALL)
        assert (await member(room, made.id)).version == version

    rig.run(work)


def test_the_cost_is_raised_another_time_when_too_many_wait(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign-in that was right is not refused for it."""

    async def overloaded(*_args: object) -> None:
        raise OverloadedError

    async def work(room: Strongroom) -> None:
        await add(room)
        dearer = replace(room, kdf_params=KdfParams(128, 1))
        monkeypatch.setattr(passwords, "wrap", overloaded)
        await signin.sign_in(dearer, "ana", PASSWORD, CALL)

    rig.run(work)


def test_a_cost_below_the_floor_is_a_damaged_row(rig: Rig) -> None:
    """Where today's cost is a real one, a stored one below the floor is not derived with."""

    async def work(room: Strongroom) -> None:
        await add(room)
        await add(room, "ben", encrypted=False)
        strict = replace(room, kdf_params=kdf.FLOOR)
        for name in ("ana", "ben"):
            with pytest.raises(InvalidCredentialsError):
                await passwords.check(strict, name, PASSWORD, CALL)

    rig.run(work)


def _meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Awaitable[object]]) -> None:
    """Have something happen between the check of a password and what acts on it."""
    check = passwords.check

    async def check_slowly(*args: object) -> Checked:
        checked = await check(*args)  # type: ignore[arg-type]  # passed on as they came
        monkeypatch.undo()
        await change()
        return checked

    monkeypatch.setattr(passwords, "check", check_slowly)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param("password", InvalidCredentialsError, id="password changed"),
        pytest.param("rotate", InvalidCredentialsError, id="key changed"),
        pytest.param("deactivate", InvalidCredentialsError, id="deactivated"),
        pytest.param("erase", InvalidCredentialsError, id="being erased"),
        pytest.param("rotating", StoreBusyError, id="key being changed"),
    ],
)
def test_a_sign_in_is_judged_again_when_it_becomes_real(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, change: str, error: type[Exception]
) -> None:
    """What was changed while the password was checked leaves no session that outlives it."""

    async def work(room: Strongroom) -> None:
        user_id = (await add(room)).account.id
        caller = await enter(room)
        changes: dict[str, Callable[[], Awaitable[object]]] = {
            "password": lambda: credentials.change_password(room, caller, PASSWORD, OTHER, CALL),
            "rotate": lambda: credentials.rotate(room, caller, PASSWORD, CALL),
            "deactivate": lambda: _deactivate(room, user_id),
            "erase": lambda: _erase(room, user_id),
            "rotating": lambda: begin_state(room, user_id, "rotating"),
        }
        _meanwhile(monkeypatch, changes[change])
        with pytest.raises(error):
            await signin.sign_in(room, "ana", PASSWORD, CALL)

    rig.run(work)


def test_a_password_changed_while_its_cost_is_raised_does_not_get_in(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one does not, although it was right when it was checked."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        dearer = replace(room, kdf_params=KdfParams(128, 1))
        wrap = passwords.wrap

        async def wrap_late(*args: object) -> passwords.PasswordWrap:
            monkeypatch.undo()
            await credentials.change_password(room, caller, PASSWORD, OTHER, CALL)
            return await wrap(*args)  # type: ignore[arg-type]  # passed on as they came

        monkeypatch.setattr(passwords, "wrap", wrap_late)
        with pytest.raises(InvalidCredentialsError):
            await signin.sign_in(dearer, "ana", PASSWORD, CALL)
        await signin.sign_in(dearer, "ana", OTHER, CALL)

    rig.run(work)


def test_a_store_in_trouble_does_not_stop_a_sign_in(rig: Rig) -> None:
    """The member gets in, and is told that the store is not open."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        rig.settings.user_file(made.id).unlink()
        got = await signin.sign_in(room, "ana", PASSWORD, CALL)
        assert not got.is_unlocked
        await access.authenticate(room, got.token)

    rig.run(work)


def test_a_success_clears_the_name_from_here_alone(rig: Rig) -> None:
    """Failures from elsewhere still count there."""

    async def work(room: Strongroom) -> None:
        await add(room)
        for call in (CALL, ELSEWHERE):
            for _ in range(ACCOUNT_FREE + 1):
                with pytest.raises(InvalidCredentialsError):
                    await signin.sign_in(room, "ana", OTHER, call)
            with pytest.raises(TooManyAttemptsError):
                await signin.sign_in(room, "ana", PASSWORD, call)
        rig.clock.advance(1000)
        await signin.sign_in(room, "ana", PASSWORD, CALL)
        await signin.sign_in(room, "ana", PASSWORD, CALL)
        with pytest.raises(InvalidCredentialsError):
            await signin.sign_in(room, "ana", OTHER, ELSEWHERE)
        with pytest.raises(TooManyAttemptsError):
            await signin.sign_in(room, "ana", PASSWORD, ELSEWHERE)

    rig.run(work)


def test_a_confirmation_lasts_five_minutes(rig: Rig) -> None:
    """Then what needs a recent check asks for the password again; a wrong one confirms nothing."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        seconds = room.settings.reauthentication_s
        caller.require_recent_password(room.clock(), seconds)
        rig.clock.advance(seconds * 1000 + 1)
        with pytest.raises(ReauthenticationRequiredError):
            caller.require_recent_password(room.clock(), seconds)
        with pytest.raises(InvalidCredentialsError):
            await signin.confirm(room, caller, OTHER, CALL)
        await signin.confirm(room, caller, PASSWORD, CALL)
        caller = await access.authenticate(room, caller.token)
        caller.require_recent_password(room.clock(), seconds)

    rig.run(work)


def test_a_session_that_ended_confirms_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is judged in the transaction that would note it."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await enter(room)
        _meanwhile(monkeypatch, lambda: revocation.sign_out(room, caller, CALL))
        with pytest.raises(InvalidCredentialsError):
            await signin.confirm(room, caller, PASSWORD, CALL)

    rig.run(work)


def test_a_name_that_changed_hands_checks_nobody(rig: Rig) -> None:
    """The password of whoever took an erased member's name is not that member's."""

    async def work(room: Strongroom) -> None:
        made = (await add(room)).account
        with pytest.raises(InvalidCredentialsError):
            passwords.require_same(Checked(made, key := Key.generate()), UserId("other"))
        assert key.is_zeroed

    rig.run(work)


async def _without_slot(room: Strongroom) -> Caller:
    """A session as another way of signing in would make it: live, and without a slot."""
    caller = await enter(room)
    await _alter(
        room,
        "UPDATE sessions SET slot_id = NULL, needs_store = 0 WHERE id = :id",
        id=caller.session_id,
    )
    await _alter(room, "DELETE FROM key_slots WHERE id = :id", id=caller.slot_id)
    return await access.authenticate(room, caller.token)


@pytest.mark.parametrize("by_code", [False, True], ids=["password", "code"])
def test_unlocking_gives_a_session_a_slot(rig: Rig, *, by_code: bool) -> None:
    """Until then the store is locked for it, open or not; afterwards every process opens it."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        code = made.recovery_code
        caller = await _without_slot(room)
        with pytest.raises(StoreLockedError):
            await read_note(room, caller)
        with pytest.raises(StoreLockedError):
            caller.take_key()
        wrong = {"code": "00000"} if by_code else {"password": OTHER}
        with pytest.raises(InvalidCredentialsError):
            await signin.unlock(room, caller, CALL, **wrong)
        assert code is not None
        right = {"code": code} if by_code else {"password": PASSWORD}
        await signin.unlock(room, caller, CALL, **right)
        async with rig.open() as other:
            present = await access.authenticate(other, caller.token)
            await write_note(other, present)
            way = "recovery" if by_code else "unlock"
            assert way in await _openings(other, present)
        # Once more changes nothing: the slot is there.
        present = await access.authenticate(room, caller.token)
        await signin.unlock(room, present, CALL, password=PASSWORD)
        assert (await access.authenticate(room, caller.token)).slot_id == present.slot_id

    rig.run(work)


def test_a_cleartext_store_needs_no_unlocking(rig: Rig) -> None:
    """Asking for it with the password is fine; there is no code to ask with."""

    async def work(room: Strongroom) -> None:
        await add(room, encrypted=False)
        caller = await enter(room)
        await signin.unlock(room, caller, CALL, password=PASSWORD)
        with pytest.raises(InvalidCredentialsError):
            await signin.unlock(room, caller, CALL, code="00000-00000-00000-00000-00000-00")

    rig.run(work)


def test_a_token_confirms_and_unlocks_nothing(rig: Rig) -> None:
    """A program has no password to give."""

    async def work(room: Strongroom) -> None:
        await add(room)
        token = replace(await enter(room), kind="token")
        with pytest.raises(HumanSessionRequiredError):
            await signin.confirm(room, token, PASSWORD, CALL)
        with pytest.raises(HumanSessionRequiredError):
            await signin.unlock(room, token, CALL, password=PASSWORD)

    rig.run(work)


def test_a_code_is_tried_on_every_name_alike(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody, a cleartext member, an inactive one, one without a code: one unwrap each."""
    tried: list[object] = []
    unwrap = envelope.unwrap

    def count(kek: Key, blob: bytes, binding: Binding) -> Key:
        tried.append(binding)
        return unwrap(kek, blob, binding)

    async def work(room: Strongroom) -> None:
        code = (await add(room)).recovery_code
        assert code is not None
        await add(room, "plain", encrypted=False)
        await add(room, "temp", is_temporary=True)
        gone = await add(room, "gone")
        assert gone.recovery_code is not None
        await _deactivate(room, gone.account.id)
        monkeypatch.setattr(envelope, "unwrap", count)
        for name, given in [
            ("nobody", code),
            ("plain", code),
            ("temp", code),
            ("gone", code),
            ("gone", gone.recovery_code),
            ("ana", gone.recovery_code),
        ]:
            tried.clear()
            with pytest.raises(InvalidCredentialsError):
                await codes.check_code(room, name, given, CALL)
            assert len(tried) == 1, name
        checked = await codes.check_code(room, "Ana", code.lower(), CALL)
        assert checked.slot_id is not None
        checked.zero()

    rig.run(work)


def test_codes_share_the_throttle_with_passwords(rig: Rig) -> None:
    """Failures of both count for one name."""

    async def work(room: Strongroom) -> None:
        await add(room)
        for _ in range(3):
            with pytest.raises(InvalidCredentialsError):
                await codes.check_code(room, "ana", "wrong", CALL)
            with pytest.raises(InvalidCredentialsError):
                await signin.sign_in(room, "ana", OTHER, CALL)
        with pytest.raises(TooManyAttemptsError):
            await codes.check_code(room, "ana", "wrong", CALL)
        attempt = passwords.attempt_of(room, "ana", CALL.network)
        await room.stores.registry.write(lambda tx: throttle.forget(tx, attempt), ACTOR)
        await signin.sign_in(room, "ana", PASSWORD, CALL)
        assert accounts.username_key("ANA") == "ana"

    rig.run(work)
