"""What happens before the first request, and the instance key."""

import asyncio
import errno
from dataclasses import replace
from pathlib import Path

import pytest

from app import metrics
from app.bridge import instance_key, start
from app.bridge.accounts import secrets as group_secrets
from app.bridge.reading import UnreadableRootError, reading
from app.bridge.strongroom import Strongroom
from app.clock import system_clock
from app.crypto import kdf
from app.crypto.kdf import KdfParams
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.starting import InstanceKeyError, StartError
from app.errors.stores import StoreDamagedError
from app.owner import secrets
from app.settings import Settings
from tests.support.rig import ACTOR, Rig, add, enter
from tests.support.rooms import CHEAP


def _prepare(rig: Rig) -> None:
    start.prepare(rig.settings, kdf_params=CHEAP)


def test_a_root_is_prepared_once_and_again(rig: Rig) -> None:
    """While nobody is there each start makes a new setup token; then the token is gone."""
    token = rig.settings.setup_token_file
    before = token.read_text()
    unfinished = token.with_name("setup.token.new")
    unfinished.write_text("half")
    copy = rig.settings.instance_key.with_name("instance.key.new")
    copy.hardlink_to(rig.settings.instance_key)
    _prepare(rig)
    assert not copy.exists()
    assert token.read_text() != before
    assert token.stat().st_mode & 0o777 == 0o600
    assert not unfinished.exists()
    rig.run(add)
    _prepare(rig)
    assert not token.exists()


def test_a_lost_registry_is_not_begun_anew(rig: Rig) -> None:
    """Where members' stores are, a fresh registry would be the end of them."""
    made = rig.run(add)
    file = rig.settings.user_file(made.account.id)
    content = file.read_bytes()
    rig.settings.system_file.unlink()
    with pytest.raises(StartError, match="put it back from a backup"):
        _prepare(rig)
    assert file.read_bytes() == content
    assert not rig.settings.system_file.exists()
    with (
        pytest.raises(UnreadableRootError, match="put it back from a backup"),
        reading(rig.settings, system_clock),
    ):
        pass


def test_a_disk_that_takes_nothing_is_told_in_words(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the system's error names no file."""

    def refuse(_folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(metrics, "clear", refuse)
    with pytest.raises(StartError, match="database: No space left on device"):
        _prepare(rig)


def test_a_damaged_registry_is_told_in_words(rig: Rig) -> None:
    """With the file's name, for the operator."""
    rig.settings.system_file.write_bytes(b"nonsense" * 1000)
    with pytest.raises(StartError, match=r"system\.db"):
        _prepare(rig)


def test_a_root_that_cannot_be_made_is_told_in_words(tmp_path: Path) -> None:
    """With what stands in the way."""
    (tmp_path / "file").write_text("no folder")
    settings = Settings.model_validate({"root": tmp_path / "file"})
    with pytest.raises(StartError, match="file"):
        start.prepare(settings, kdf_params=CHEAP)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"00" * 31, id="short"),
        pytest.param(b"zz" * 32, id="no digits"),
        pytest.param(b"\xff" * 64, id="no text"),
        pytest.param(b"00" * 32, id="another root's"),
    ],
)
def test_a_wrong_instance_key_stops_the_start(rig: Rig, content: bytes | None) -> None:
    """Missing, malformed or another's; what is in the file is never said."""
    if content is None:
        rig.settings.instance_key.unlink()
    else:
        rig.settings.instance_key.write_bytes(content)
    with pytest.raises(InstanceKeyError) as refused:
        _prepare(rig)
    assert "00000000" not in str(refused.value)
    assert refused.value.__cause__ is None or content is None


def test_an_instance_key_is_made_once(tmp_path: Path) -> None:
    """For its owner alone; two starts at once cannot end with two."""
    path = tmp_path / "instance.key"
    path.with_name("instance.key.new").write_text("left by a crash")
    instance_key.make(path)
    made = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    instance_key.make(path)
    assert path.read_bytes() == made
    assert [each.name for each in tmp_path.iterdir()] == ["instance.key"]
    one, two = instance_key.read(path), instance_key.read(path)
    assert one.throttle == two.throttle
    assert one.check == two.check
    assert len({one.throttle.hex(), one.check, one.secrets.view().hex()}) == 3


def test_the_cost_of_passwords_is_measured_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """And kept with the root, at or above the floor."""
    measured = KdfParams(64 * 1024, 3)
    monkeypatch.setattr(kdf, "calibrate", lambda measure, _memory: measured if measure else None)

    async def cost() -> KdfParams:
        async with start.running(rig.settings, rig.clock) as room:
            return room.kdf_params

    assert asyncio.run(cost()) == measured
    monkeypatch.setattr(kdf, "calibrate", lambda _measure, _memory: CHEAP)
    assert asyncio.run(cost()) == measured


def test_the_cost_is_measured_with_real_derivations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in seconds, and all within the memory there is."""
    seen: list[float] = []

    def calibrate(measure: object, memory_bytes: int) -> KdfParams:
        assert callable(measure)
        seen.append(measure(CHEAP))
        assert memory_bytes > 1 << 20
        return CHEAP

    monkeypatch.setattr(kdf, "calibrate", calibrate)
    assert start._calibrate() == CHEAP
    assert seen[0] > 0


@pytest.mark.parametrize("value", ['{"memory_kib":64,"time_cost":1,"lanes":1}', "{}", "7"])
def test_a_cost_below_the_floor_stops_the_start(rig: Rig, value: str) -> None:
    """Nobody lowers it by hand."""

    def write(tx: RegistryTransactor) -> None:
        tx.run(sql.SET_CONFIG, key="kdf_default", value=value, now=tx.now_ms)

    async def lower(room: Strongroom) -> None:
        await room.stores.registry.write(write, ACTOR)

    rig.run(lower)
    with pytest.raises(StartError, match="kdf_default"):
        start.prepare(rig.settings)


@pytest.mark.parametrize(
    ("text", "is_less"), [("1048576\n", True), ("max\n", False), (None, False)]
)
def test_a_container_has_the_memory_it_is_given(
    tmp_path: Path, text: str | None, *, is_less: bool
) -> None:
    """The machine's when its group says nothing."""
    limit = tmp_path / "memory.max"
    if text is not None:
        limit.write_text(text)
    assert (start.memory_bytes(limit) == 1 << 20) is is_less


def test_a_group_secret_is_sealed_in_its_row(rig: Rig) -> None:
    """Read back as it was set; in the file under the seal alone, and good in no other row."""

    async def work(room: Strongroom) -> None:
        await group_secrets.set_secret(room, "mail", b"hunter2 and more", ACTOR)
        await group_secrets.set_secret(room, "other", b"", ACTOR)
        assert await group_secrets.get_secret(room, "mail") == b"hunter2 and more"
        assert await group_secrets.get_secret(room, "other") == b""
        sealed = await room.stores.group.read(lambda r: secrets.get_secret(r, "mail"))
        await room.stores.group.write(lambda tx: secrets.set_secret(tx, "moved", sealed), ACTOR)
        with pytest.raises(StoreDamagedError):
            await group_secrets.get_secret(room, "moved")
        await group_secrets.remove_secret(room, "mail", ACTOR)
        with pytest.raises(NotFoundError):
            await group_secrets.get_secret(room, "mail")
        with pytest.raises(NotFoundError):
            await group_secrets.remove_secret(room, "mail", ACTOR)

    rig.run(work)
    for path in rig.settings.database.iterdir():
        assert b"hunter2" not in path.read_bytes()


def test_a_stop_waits_for_what_is_under_way(rig: Rig) -> None:
    """A sign-up that nobody waits for any more is whole afterwards."""

    async def work(room: Strongroom) -> None:
        def reach(point: str) -> None:
            if point == "sign_up.begun":
                waiting.cancel()

        waiting = asyncio.create_task(add(replace(room, reach=reach)))
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def later(room: Strongroom) -> None:
        await enter(room)

    rig.run(work)
    assert len(rig.files()) == 1
    rig.run(later)
