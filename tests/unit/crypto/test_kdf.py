import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from argon2.exceptions import HashingError, VerificationError
from argon2.low_level import Type, hash_secret
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from hypothesis import example, given
from hypothesis import strategies as st

from app.crypto import kdf
from app.crypto.kdf import FLOOR, KdfParams
from app.errors.stores import OverloadedError

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors" / "kdf.json").read_text("utf-8")
)
CHEAP = KdfParams(memory_kib=64, time_cost=1)
SALT = bytes(16)
GIB_KIB = 1024 * 1024
MIB = 1024**2


@pytest.mark.parametrize("row", VECTORS["format_1"], ids=lambda row: row["name"])
def test_format_1_stays(row: dict[str, Any]) -> None:
    """A password, a salt and parameters give for ever the key they gave once."""
    assert kdf.normalize(row["password"]).hex() == row["normal"]
    key = kdf.derive(row["password"], bytes.fromhex(row["salt"]), KdfParams(**row["params"]))
    assert bytes(key.view()).hex() == row["key"]


@pytest.mark.parametrize("row", VECTORS["argon2_reference"], ids=lambda row: row["name"])
def test_argon2id_is_the_reference_one(row: dict[str, Any]) -> None:
    """The vectors of the reference implementation's own tests hold."""
    salt = bytes.fromhex(row["salt"])
    raw = kdf._argon2id(row["password"].encode(), salt, KdfParams(**row["params"]))
    assert raw.hex() == row["hash"]


def test_argon2id_agrees_with_rfc_9106() -> None:
    """A second implementation passes the RFC's vector (5.3) and derives the same keys as ours.

    The vector needs a secret and associated data, which only that one takes.
    """
    row = VECTORS["rfc_9106_5_3"]
    rfc = Argon2id(
        salt=bytes.fromhex(row["salt"]),
        length=32,
        iterations=row["time_cost"],
        lanes=row["lanes"],
        memory_cost=row["memory_kib"],
        ad=bytes.fromhex(row["associated"]),
        secret=bytes.fromhex(row["secret"]),
    )
    assert rfc.derive(bytes.fromhex(row["password"])).hex() == row["tag"]
    second = Argon2id(salt=SALT, length=32, iterations=1, lanes=1, memory_cost=64)
    assert kdf.derive("a password", SALT, CHEAP).view() == second.derive(b"a password")


@pytest.mark.parametrize("row", VECTORS["hkdf"], ids=lambda row: row["name"])
def test_hkdf_is_rfc_5869(row: dict[str, Any]) -> None:
    """The key is the first 32 bytes of the RFC's output for no salt."""
    key = kdf.hkdf(bytes.fromhex(row["secret"]), bytes.fromhex(row["info"]))
    assert bytes(key.view()).hex() == row["okm"][:64]


@given(st.text(max_size=40))
def test_composed_and_decomposed_are_one_password(password: str) -> None:
    """Whichever way a keyboard composes, the bytes are those of NFC."""
    composed = unicodedata.normalize("NFC", password)
    decomposed = unicodedata.normalize("NFD", password)
    assert kdf.normalize(password) == kdf.normalize(decomposed) == composed.encode()


@given(st.text(st.characters(categories=["Cs"]), min_size=1, max_size=3), st.text(max_size=9))
def test_a_lone_surrogate_is_refused_without_a_trace(surrogates: str, rest: str) -> None:
    """The error has no cause and no context, either of which could carry the password."""
    with pytest.raises(ValueError, match="cannot be a password") as caught:
        kdf.normalize(rest + surrogates + "hunter2")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "hunter2" not in repr(caught.value)


@pytest.mark.timeout(10)
def test_an_endless_password_is_refused_at_once() -> None:
    """A run of combining marks, quadratic to normalize, costs nothing at sign-in."""
    with pytest.raises(ValueError, match="cannot be a password"):
        kdf.normalize("a" + "\u0301\u0316" * 500_000)


def test_the_bound_refuses_no_password_of_legal_length() -> None:
    """1,024 characters in their longest decomposition still pass."""
    longest = unicodedata.normalize("NFD", "\u1f82" * 1024)
    assert len(longest) == 4096
    assert kdf.normalize(longest) == ("\u1f82" * 1024).encode()


def test_another_password_salt_or_cost_is_another_key() -> None:
    """Each of the three goes into the key."""
    key = kdf.derive("a password", SALT, CHEAP)
    assert key.same_as(kdf.derive("a password", SALT, CHEAP))
    assert not key.same_as(kdf.derive("A password", SALT, CHEAP))
    assert not key.same_as(kdf.derive("a password", kdf.new_salt(), CHEAP))
    assert not key.same_as(kdf.derive("a password", SALT, KdfParams(65, 1)))


@pytest.mark.parametrize("length", [0, 8, 15, 17])
def test_a_salt_is_16_bytes(length: int) -> None:
    """Any other salt is refused before the work."""
    assert len(kdf.new_salt()) == 16
    assert kdf.new_salt() != kdf.new_salt()
    with pytest.raises(ValueError, match="16 bytes"):
        kdf.derive("a password", bytes(length), CHEAP)


@pytest.mark.parametrize("row", VECTORS["verifiers"], ids=lambda row: row["name"])
def test_a_stored_verifier_holds_for_ever(row: dict[str, str]) -> None:
    """A verifier of format 1 knows its password."""
    assert kdf.verify(row["password"], row["verifier"].encode())


def test_a_verifier_knows_its_password_alone() -> None:
    """Each has a salt of its own and tells the right password from any other text."""
    verifier = kdf.hash_verifier("caf\u00e9 au lait", CHEAP)
    assert verifier != kdf.hash_verifier("caf\u00e9 au lait", CHEAP)
    assert kdf.verify("cafe\u0301 au lait", verifier)
    assert not kdf.verify("cafe au lait", verifier)
    assert not kdf.verify("\ud800", verifier)
    assert not kdf.verify("a" * 5000, verifier)
    assert kdf.verifier_params(verifier) == CHEAP


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"plain text",
        b"$argon2id$v=19$m=64,t=1,p=1$c2FsdA$aGFzaA",
        hash_secret(b"x" * 12, SALT, 1, 64, 1, 32, Type.I),
        hash_secret(b"x" * 12, SALT, 1, 64, 1, 32, Type.ID, version=16),
        kdf.hash_verifier("x" * 12, CHEAP) + b"\n",
        kdf.hash_verifier("x" * 12, CHEAP).replace(b"m=64", b"m=2000000"),
        kdf.hash_verifier("x" * 12, CHEAP).replace(b"t=1", b"t=11"),
        kdf.hash_verifier("x" * 12, CHEAP).replace(b"p=1", b"p=9"),
    ],
    ids=["empty", "text", "short", "argon2i", "v1.0", "tail", "memory", "passes", "lanes"],
)
def test_a_damaged_verifier_is_not_a_wrong_password(damaged: bytes) -> None:
    """It is an error of its own, found before any memory is taken."""
    with pytest.raises(ValueError, match=r"verifier|bounds"):
        kdf.verify("x" * 12, damaged)


@given(st.integers(8, 16).map(lambda power: 2**power), st.integers(1, 10), st.integers(1, 8))
@example(GIB_KIB, 10, 8)
def test_parameters_survive_json(memory_kib: int, time_cost: int, lanes: int) -> None:
    """What was written is read back equal, up to the ceilings themselves."""
    params = KdfParams(memory_kib, time_cost, lanes)
    assert KdfParams.from_json(params.to_json()) == params


def test_the_form_in_json_stays() -> None:
    """The text in the registry has exactly three fields."""
    assert FLOOR.to_json() == '{"memory_kib":19456,"time_cost":2,"lanes":1}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="list"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("{}", id="no field"),
        pytest.param('{"memory_kib":64,"time_cost":1}', id="one missing"),
        pytest.param('{"memory_kib":64,"time_cost":1,"lanes":1,"more":1}', id="one more"),
        pytest.param('{"memory_kib":64.0,"time_cost":1,"lanes":1}', id="float"),
        pytest.param('{"memory_kib":64,"time_cost":true,"lanes":1}', id="bool"),
        pytest.param('{"memory_kib":"64","time_cost":1,"lanes":1}', id="text"),
        pytest.param('{"memory_kib":1048577,"time_cost":1,"lanes":1}', id="over 1 GiB"),
        pytest.param('{"memory_kib":64,"time_cost":11,"lanes":1}', id="11 passes"),
        pytest.param('{"memory_kib":64,"time_cost":0,"lanes":1}', id="no pass"),
        pytest.param('{"memory_kib":64,"time_cost":1,"lanes":0}', id="no lane"),
        pytest.param('{"memory_kib":512,"time_cost":1,"lanes":9}', id="9 lanes"),
        pytest.param('{"memory_kib":15,"time_cost":1,"lanes":2}', id="under 8 KiB a lane"),
        pytest.param('{"memory_kib":-64,"time_cost":1,"lanes":1}', id="negative"),
    ],
)
def test_other_json_is_no_parameters(text: str) -> None:
    """Malformed, unknown or unbounded parameters are refused."""
    with pytest.raises(ValueError, match=r"parameters|Expecting"):
        KdfParams.from_json(text)


@pytest.mark.parametrize(
    "params", [KdfParams(19455, 2), KdfParams(GIB_KIB, 1), CHEAP], ids=["memory", "passes", "both"]
)
def test_the_floor_holds_in_memory_and_in_passes(params: KdfParams) -> None:
    """More of one does not buy less of the other."""
    kdf.require_floor(FLOOR)
    with pytest.raises(ValueError, match="below the floor"):
        kdf.require_floor(params)


@pytest.mark.parametrize(
    ("stored", "default", "weaker"),
    [
        (FLOOR, FLOOR, False),
        (FLOOR, KdfParams(65536, 3), True),
        (KdfParams(65536, 3), FLOOR, False),
        (KdfParams(65536, 2), KdfParams(65536, 3), True),
        (KdfParams(65536, 4), KdfParams(131072, 2), False),
        (KdfParams(131072, 2), KdfParams(65536, 4), False),
    ],
    ids=["same", "both", "stronger", "passes", "even", "even again"],
)
def test_only_a_cheaper_guess_is_weaker(
    stored: KdfParams, default: KdfParams, *, weaker: bool
) -> None:
    """Memory times passes decides; equal costs never raise each other."""
    assert kdf.is_weaker(stored, default) is weaker


class Machine:
    """Takes the same time for every MiB, and adds up what it was asked.

    Args:
        seconds_per_mib: Its speed.
        first_is_off_by: The factor by which it answers the first question wrongly.
    """

    def __init__(self, seconds_per_mib: float, first_is_off_by: float = 1.0) -> None:
        self.seconds_per_mib = seconds_per_mib
        self.first_is_off_by = first_is_off_by
        self.spent_s = 0.0

    def measure(self, params: KdfParams) -> float:
        """Answer as a measurement would."""
        seconds = self.seconds(params) * (1 if self.spent_s else self.first_is_off_by)
        self.spent_s += seconds
        return seconds

    def seconds(self, params: KdfParams) -> float:
        """Answer the truth."""
        return params.memory_kib / 1024 * params.time_cost * self.seconds_per_mib


@pytest.mark.parametrize("off_by", [0.6, 1.0, 1.8], ids=["fast start", "even", "slow start"])
@pytest.mark.parametrize("speed", [0.0003, 0.0008, 0.0012, 0.0025], ids=lambda s: f"{s} s/MiB")
def test_calibration_comes_near_half_a_second(speed: float, off_by: float) -> None:
    """Whatever the first measurement says, the second puts it right."""
    machine = Machine(speed, off_by)
    params = kdf.calibrate(machine.measure, 64 * 1024 * MIB)
    assert 0.4 <= machine.seconds(params) <= 0.6
    assert 64 * 1024 <= params.memory_kib <= 256 * 1024
    assert machine.spent_s <= 2


@given(st.floats(1e-6, 0.05), st.integers(0, 10**12))
def test_calibration_keeps_its_bounds(speed: float, memory_bytes: int) -> None:
    """Never below the floor, over an eighth of the memory only by the floor, within 2 s.

    A machine that needs more than that for the floor alone is measured no further.
    """
    machine = Machine(speed)
    params = kdf.calibrate(machine.measure, memory_bytes)
    kdf.require_floor(params)
    assert params == KdfParams.from_json(params.to_json())
    assert params.memory_kib <= max(FLOOR.memory_kib, min(memory_bytes // 8192, 256 * 1024))
    assert params.memory_kib >= min(64 * 1024, memory_bytes // MIB // 8 * 1024)
    assert machine.spent_s <= max(2, machine.seconds(FLOOR))


@pytest.mark.parametrize(
    ("seconds", "memory_mib", "expected"),
    [
        (0.03, 128, KdfParams(19 * 1024, 10)),
        (0.03, 256, KdfParams(32 * 1024, 10)),
        (3.0, 8192, KdfParams(64 * 1024, 2)),
        (3.0, 64, FLOOR),
        (1e-5, 8192, KdfParams(256 * 1024, 10)),
    ],
    ids=["tiny memory", "small memory", "slow", "slow and tiny", "fast"],
)
def test_calibration_at_the_edges(seconds: float, memory_mib: int, expected: KdfParams) -> None:
    """Little memory takes more passes; a slow machine is measured once and keeps 64 MiB."""
    assert kdf.calibrate(Machine(seconds / 38).measure, memory_mib * MIB) == expected


@pytest.mark.slow
def test_the_floor_is_a_real_cost() -> None:
    """A derivation at the floor works with the parameters that production may use."""
    key = kdf.derive("correct horse battery staple", SALT, FLOOR)
    assert key.same_as(kdf.derive("correct horse battery staple", SALT, FLOOR))


@pytest.mark.parametrize("work", ["derive", "hash_verifier", "verify"])
def test_a_derivation_without_memory_is_refused_for_now(
    work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller may try again: nothing is wrong with what was sent."""
    params = KdfParams(64, 1)
    verifier = kdf.hash_verifier("a fine password", params)

    def fail(*_: object) -> bytes:
        raise VerificationError if work == "verify" else HashingError

    for name in ("hash_secret_raw", "hash_secret", "verify_secret"):
        monkeypatch.setattr(kdf, name, fail)
    calls: dict[str, Callable[[], object]] = {
        "derive": lambda: kdf.derive("a fine password", kdf.new_salt(), params),
        "hash_verifier": lambda: kdf.hash_verifier("a fine password", params),
        "verify": lambda: kdf.verify("a fine password", verifier),
    }
    with pytest.raises(OverloadedError):
        calls[work]()
