"""Sign-up, set-up and invitations: a member with a store, or nothing at all."""

import asyncio

import pytest

from app.bridge.accounts import members, setup, signin
from app.bridge.accounts.signup import NewMember, sign_up
from app.bridge.maintenance.janitor import Janitor
from app.bridge.strongroom import Strongroom, anonymous
from app.crypto import tokens
from app.db import files
from app.db.registry.store import RegistryTransactor
from app.db.runtime import statements as runtime_sql
from app.errors.callers import InvalidCredentialsError, NotPermittedError, TooManyAttemptsError
from app.errors.conflicts import AlreadySetUpError, UsernameTakenError
from app.errors.inputs import InvalidInputError, InvalidUsernameError, WeakPasswordError
from app.errors.stores import DiskFullError, StoreBusyError
from app.ids import RoleId
from app.owner import identity
from app.registry import accounts, invitations
from app.runtime import steps
from tests.support.rig import ACTOR, Rig, StopHereError, add, enter, stop_at
from tests.support.rooms import CALL, PASSWORD

_NEW = NewMember("ana", PASSWORD, RoleId("member"))


async def _refuse(room: Strongroom, new: NewMember, error: type[Exception]) -> None:
    with pytest.raises(error):
        await sign_up(room, new, CALL, ACTOR, lambda _tx: None)


async def _half_done(room: Strongroom) -> list[str]:
    records = await room.stores.registry.read(steps.list_open)
    return [record.action for record in records]


def test_a_member_gets_a_file_of_their_own(rig: Rig) -> None:
    """Under the key their password and their code open, with their identity inside."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        assert made.recovery_code is not None
        assert rig.files() == {f"{made.account.id}.db"}
        caller = await enter(room)
        store = room.stores.find(caller.user_id, caller.account.generation)
        assert store is not None
        found = await store.read(identity.get_identity)
        assert (found.owner_id, found.dek_id) == (made.account.id, made.account.dek_id)
        assert await _half_done(room) == []

    rig.run(work)


def test_a_cleartext_member_gets_a_plain_file(rig: Rig) -> None:
    """Without a key there is no recovery code, and a verifier in the place of the wrap."""

    async def work(room: Strongroom) -> None:
        made = await add(room, encrypted=False)
        assert made.recovery_code is None
        assert not made.account.encrypted
        assert made.account.password_hash is not None
        assert made.account.file_salt is None
        caller = await enter(room)
        assert caller.wrapped_dek is None

    rig.run(work)


def test_whoever_chose_the_password_gets_no_code(rig: Rig) -> None:
    """A temporary password comes without a recovery code."""

    async def work(room: Strongroom) -> None:
        made = await add(room, is_temporary=True)
        assert made.recovery_code is None
        assert made.account.password_is_temporary

    rig.run(work)


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewMember("", PASSWORD, RoleId("member")), InvalidUsernameError),
        (NewMember("ana", "short", RoleId("member")), WeakPasswordError),
        (NewMember("ana maria zz", "ANA maria zz", RoleId("member")), WeakPasswordError),
        (NewMember("ana", PASSWORD, RoleId("nobody")), InvalidInputError),
        (NewMember("BEN", PASSWORD, RoleId("member")), UsernameTakenError),
    ],
    ids=["name", "password", "name as password", "role", "taken"],
)
def test_a_refused_member_leaves_nothing(rig: Rig, new: NewMember, error: type[Exception]) -> None:
    """Neither a file nor a record, and the name stays free."""

    async def work(room: Strongroom) -> None:
        await add(room, "ben")
        before = rig.files()
        await _refuse(room, new, error)
        assert rig.files() == before
        assert await _half_done(room) == []

    rig.run(work)


@pytest.mark.parametrize("point", ["sign_up.numbered", "sign_up.begun", "sign_up.file_made"])
def test_a_sign_up_that_fails_is_undone(rig: Rig, point: str) -> None:
    """Wherever it fails; at once, or by the janitor, and the name is free again."""

    async def work(room: Strongroom) -> None:
        with pytest.raises(StopHereError):
            await add(room)
        await Janitor(room.settings, room.stores).round()
        assert rig.files() == set()
        assert await _half_done(room) == []
        await add(room)
        await enter(room)

    rig.run(work, stop_at(point))


def test_of_two_with_one_name_one_is_made(rig: Rig) -> None:
    """Both at once: one member, one file."""

    async def work(room: Strongroom) -> None:
        made = await asyncio.gather(add(room, "ana"), add(room, "ANA"), return_exceptions=True)
        assert sorted(isinstance(each, UsernameTakenError) for each in made) == [False, True]
        assert len(rig.files()) == 1

    rig.run(work)


def test_a_lock_that_cannot_be_had_leaves_nothing(rig: Rig) -> None:
    """A number that somebody holds: refused, nothing written, and no lock let go twice."""

    async def work(room: Strongroom) -> None:
        number = await room.stores.registry.write(accounts.take_lock_number, ACTOR) + 1
        async with rig.open() as other:
            assert other.stores.locks.try_exclusive(number)
            with pytest.raises(StoreBusyError):
                await add(room)
        assert rig.files() == set()
        await add(room)

    rig.run(work)


def test_a_janitor_leaves_a_sign_up_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is under way holds its lock before it is on record."""
    create = files.create

    async def work(room: Strongroom) -> None:
        async with rig.open() as other:
            rounds: list[None] = []

            def create_late(*args: object) -> bytes:
                janitor = Janitor(other.settings, other.stores)
                future = asyncio.run_coroutine_threadsafe(janitor.round(), running)
                rounds.append(future.result(10))
                return create(*args)  # type: ignore[arg-type]  # passed on as they came

            running = asyncio.get_running_loop()
            monkeypatch.setattr(files, "create", create_late)
            made = await add(room)
            assert rounds == [None]
            assert rig.files() == {f"{made.account.id}.db"}
            assert await _half_done(room) == []

    rig.run(work)


def test_a_full_disk_undoes_a_sign_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the caller's to see, and nothing is left."""

    def full(*_args: object) -> bytes:
        raise DiskFullError

    async def work(room: Strongroom) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(files, "create", full)
            with pytest.raises(DiskFullError):
                await add(room)
        assert await _half_done(room) == []
        await add(room)

    rig.run(work)


def _token(rig: Rig) -> str:
    return rig.settings.setup_token_file.read_text().strip()


def test_the_first_administrator_is_made_once(rig: Rig) -> None:
    """With the token from its file; two at once make one, and then the token is gone."""

    async def work(room: Strongroom) -> None:
        text = _token(rig)
        await setup.require_token(room, text, CALL)
        new = NewMember("ana", PASSWORD, accounts.ADMIN)
        other = NewMember("ben", PASSWORD, accounts.ADMIN)
        made = await asyncio.gather(
            setup.set_up(room, new, CALL), setup.set_up(room, other, CALL), return_exceptions=True
        )
        assert sorted(isinstance(each, AlreadySetUpError) for each in made) == [False, True]
        assert not rig.settings.setup_token_file.exists()
        assert len(rig.files()) == 1
        with pytest.raises(AlreadySetUpError):
            await setup.require_token(room, text, CALL)

    rig.run(work)


def test_a_setup_token_has_ten_tries(rig: Rig) -> None:
    """After ten wrong ones the right one is refused as well, until a restart makes a new one."""

    async def work(room: Strongroom) -> None:
        right = _token(rig)
        for wrong in ["", "\ud800", right[:-1], *("x" * n for n in range(1, 8))]:
            with pytest.raises(InvalidCredentialsError):
                await setup.require_token(room, wrong, CALL)
        with pytest.raises(TooManyAttemptsError):
            await setup.require_token(room, right, CALL)
        await room.stores.registry.write(setup.reset_tries, ACTOR)
        await setup.require_token(room, right, CALL)

    rig.run(work)


def test_tries_at_once_are_ten_all_the_same(rig: Rig) -> None:
    """They are counted in a transaction of their own each."""

    async def work(room: Strongroom) -> None:
        tries = [setup.require_token(room, "wrong", CALL) for _ in range(15)]
        told = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(each, InvalidCredentialsError) for each in told) == setup.TRIES_MAX

    rig.run(work)


def test_without_its_file_no_setup_token_holds(rig: Rig) -> None:
    """Not even an empty one."""

    async def work(room: Strongroom) -> None:
        rig.settings.setup_token_file.unlink()
        with pytest.raises(InvalidCredentialsError):
            await setup.require_token(room, "", CALL)

    rig.run(work)


def test_an_invitation_makes_one_member(rig: Rig) -> None:
    """Of two who accept at once one is made; of the other nothing is left."""

    async def work(room: Strongroom) -> None:
        await add(room, "boss", "admin")
        boss = await enter(room, "boss")
        token, row = await members.invite(room, boss, "guest", CALL)
        invitation = await members.require_invitation(room, tokens.parse(token.text()))
        assert invitation.id == row.id
        before = rig.files()
        new = [NewMember(name, PASSWORD, RoleId(invitation.role_id)) for name in ("ana", "ben")]
        made = await asyncio.gather(
            *(members.accept(room, invitation, each, CALL, anonymous(CALL)) for each in new),
            return_exceptions=True,
        )
        assert sorted(isinstance(each, InvalidCredentialsError) for each in made) == [False, True]
        assert len(rig.files() - before) == 1
        assert await room.stores.registry.read(invitations.list_good) == []
        with pytest.raises(InvalidCredentialsError):
            await members.require_invitation(room, token)

    rig.run(work)


def test_an_invitation_gives_no_more_than_its_maker_has(rig: Rig) -> None:
    """Only an administrator invites or makes administrators; a role must be there."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana")
        await add(room, "boss", "admin")
        ana, boss = await enter(room, "ana"), await enter(room, "boss")
        with pytest.raises(NotPermittedError):
            await members.invite(room, ana, "admin", CALL)
        with pytest.raises(NotPermittedError):
            await members.add_member(room, ana, NewMember("x", PASSWORD, accounts.ADMIN), CALL)
        with pytest.raises(InvalidInputError):
            await members.invite(room, boss, "nobody", CALL)

    rig.run(work)


def test_a_judge_sees_the_last_moment(rig: Rig) -> None:
    """What it refuses in the transaction that would make the row is undone, file and all."""

    def admit(_tx: RegistryTransactor) -> None:
        raise StopHereError

    async def work(room: Strongroom) -> None:
        with pytest.raises(StopHereError):
            await sign_up(room, _NEW, CALL, ACTOR, admit)
        assert rig.files() == set()
        with pytest.raises(InvalidCredentialsError):
            await signin.sign_in(room, "ana", PASSWORD, CALL)

    rig.run(work)


def test_a_sign_up_is_on_record(rig: Rig) -> None:
    """Step by step, and nothing of what was sent is in it."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        found = await room.stores.registry.read(
            lambda reader: reader.all(runtime_sql.LIST_STEPS, key=made.account.id)
        )
        assert {step.name for step in found} == {"lock", "file"}
        assert PASSWORD not in str(found)

    rig.run(work)
