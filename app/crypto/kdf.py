"""Keys from secrets: Argon2id for what a person remembers, HKDF for what is random.

Format 1, named by the envelope's version byte: a password is NFC, then UTF-8, then
Argon2id version 1.3. A change of any of these is a new version byte, never an edit here.
"""

import json
import re
import secrets
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final, Self

from argon2.exceptions import HashingError, VerificationError, VerifyMismatchError
from argon2.low_level import Type, hash_secret, hash_secret_raw, verify_secret
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from app.crypto.keys import KEY_BYTES, Key
from app.errors.stores import OverloadedError

SALT_BYTES: Final = 16
PASSWORD_LENGTH_MAX: Final = 1024
"""Characters, after NFC."""

_KIB_PER_MIB = 1024
_MEMORY_KIB_MAX = 1024 * _KIB_PER_MIB
_TIME_COST_MAX = 10
_LANES_MAX = 8
_MEMORY_KIB_PER_LANE_MIN = 8  # RFC 9106, 3.1
_JSON_LENGTH_MAX = 200  # three short fields; the parser never meets deep nesting

_TARGET_S = 0.5
_SLOW_S = 0.4
_PASSES_PREFERRED = 3
_CALIBRATED_MIB_MIN = 64
_CALIBRATED_MIB_MAX = 256
_MEMORY_SHARE = 8

# One code point decomposes into at most four (UAX #15, "NFD expansion"), so a longer text
# cannot have 1,024 characters after NFC. The bound comes first because normalization is
# quadratic in a run of combining marks: 65,536 of them take four seconds.
_CODE_POINTS_MAX = 4 * PASSWORD_LENGTH_MAX
_SURROGATE = re.compile("[\ud800-\udfff]")
_VERIFIER = re.compile(
    rb"\$argon2id\$v=19\$m=([1-9]\d{0,6}),t=([1-9]\d?),p=([1-9])"
    rb"\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}"
)


@dataclass(frozen=True, slots=True)
class KdfParams:
    """The cost of one Argon2id derivation; any values, so `require_floor` where it matters."""

    memory_kib: int
    """Memory in KiB."""
    time_cost: int
    """Passes over the memory."""
    lanes: int = 1
    """Lanes; one derivation uses one thread."""

    def to_json(self) -> str:
        """Write the three fields as a JSON object, without spaces."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Args:
            text: A JSON object of exactly the three fields, integers all.

        Returns:
            The parameters, possibly below the floor.

        Raises:
            ValueError: It is not that, or beyond 1 GiB, 10 passes or 8 lanes: a damaged
                row must not make a sign-in take all memory.
        """
        fields = json.loads(text) if len(text) <= _JSON_LENGTH_MAX else None
        if (
            not isinstance(fields, dict)
            or fields.keys() != {"memory_kib", "time_cost", "lanes"}
            or any(type(value) is not int for value in fields.values())
        ):
            message = "malformed key derivation parameters"
            raise ValueError(message)
        params = cls(**fields)
        _require_bounds(params)
        return params


FLOOR: Final = KdfParams(memory_kib=19 * _KIB_PER_MIB, time_cost=2)
"""The least cost a password is ever stored under (OWASP Password Storage Cheat Sheet)."""


def require_floor(params: KdfParams) -> None:
    """Refuse parameters cheaper than the floor in memory or in passes.

    Raises:
        ValueError: They are.
    """
    if params.memory_kib < FLOOR.memory_kib or params.time_cost < FLOOR.time_cost:
        message = "key derivation parameters below the floor"
        raise ValueError(message)


def is_weaker(stored: KdfParams, default: KdfParams) -> bool:
    """Whether a guess against `stored` costs less than one against `default`.

    The cost is memory times passes, the measure by which OWASP's recommended pairs are
    equal; lanes divide the same work. Being one number it orders all parameters, so two
    defaults never raise each other for ever.

    Returns:
        False when they cost the same.
    """
    return stored.memory_kib * stored.time_cost < default.memory_kib * default.time_cost


def new_salt() -> bytes:
    """Make 16 random bytes (RFC 9106, 3.1)."""
    return secrets.token_bytes(SALT_BYTES)


def normalize(password: str) -> bytes:
    """Turn a typed password into the bytes that are hashed: NFC, then UTF-8.

    Format 1 for ever: two keyboards that compose an accent differently give the same bytes.

    Returns:
        The bytes, as secret as the password.

    Raises:
        ValueError: A lone surrogate, or so long that it can never have been set. The
            message and its causes hold nothing of the password.
    """
    if len(password) > _CODE_POINTS_MAX or _SURROGATE.search(password):
        # Tested beforehand: a UnicodeEncodeError would carry the whole password.
        message = "a text that cannot be a password"
        raise ValueError(message)
    return unicodedata.normalize("NFC", password).encode()


def derive(password: str, salt: bytes, params: KdfParams) -> Key:
    """Derive the key that wraps a member's key from the password: Argon2id v1.3, raw.

    Args:
        password: As typed.
        salt: 16 bytes, stored beside the wrap.
        params: As stored with the salt.

    Returns:
        The key-encryption key. Wrong passwords give keys too; only the wrap tells.

    Raises:
        ValueError: The password cannot be one (see `normalize`), or the salt is not 16 bytes.
        OverloadedError: The memory is not to be had, or the parameters
            are none.
    """
    if len(salt) != SALT_BYTES:
        message = f"a salt is {SALT_BYTES} bytes"
        raise ValueError(message)
    return Key(_argon2id(normalize(password), salt, params))


def hkdf(secret: bytes, info: bytes) -> Key:
    """Derive a key from a secret that is random already (HKDF-SHA256, RFC 5869, no salt).

    Args:
        secret: At least 128 random bits.
        info: The label of the use; a secret gives unrelated keys under two labels.

    Returns:
        The key.
    """
    mechanism = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info)
    return Key.filled_by(lambda buffer: mechanism.derive_into(secret, buffer))


def hash_verifier(password: str, params: KdfParams) -> bytes:
    """Hash the password of a member without a wrapped key, under a salt of its own.

    Returns:
        ASCII in the reference encoding, `$argon2id$v=19$m=..,t=..,p=..$salt$hash`.

    Raises:
        ValueError: The password cannot be one (see `normalize`).
        OverloadedError: As for `derive`.
    """
    try:
        return hash_secret(
            normalize(password),
            new_salt(),
            params.time_cost,
            params.memory_kib,
            params.lanes,
            KEY_BYTES,
            Type.ID,
        )
    except HashingError as error:
        raise OverloadedError from error


def verifier_params(verifier: bytes) -> KdfParams:
    """Read the cost a verifier was made with.

    Returns:
        The parameters, possibly below the floor.

    Raises:
        ValueError: It is not one of `hash_verifier`, or beyond the bounds of `from_json`:
            a damaged row, never a wrong password.
    """
    found = _VERIFIER.fullmatch(verifier)
    if found is None:
        message = "malformed password verifier"
        raise ValueError(message)
    params = KdfParams(*map(int, found.groups()))
    _require_bounds(params)
    return params


def verify(password: str, verifier: bytes) -> bool:
    """Whether this is the password of the verifier.

    Returns:
        False for a wrong one and for a text that cannot be a password at all.

    Raises:
        ValueError: The verifier is damaged (see `verifier_params`).
        OverloadedError: The memory is not to be had.
    """
    verifier_params(verifier)
    try:
        return verify_secret(verifier, normalize(password), Type.ID)
    except (ValueError, VerifyMismatchError):
        return False
    except VerificationError as error:
        raise OverloadedError from error


def calibrate(measure: Callable[[KdfParams], float], memory_bytes: int) -> KdfParams:
    """Choose the default cost for this machine: about 0.5 s with 64 to 256 MiB.

    Never more than an eighth of the memory, never below the floor. Time is proportional to
    memory times passes, so two measurements are enough: the floor gives the scale, the
    second, near the target, corrects it. A machine too slow for 64 MiB in the target still
    gets them, unmeasured. All in all under 2 s.

    Args:
        measure: Runs one derivation and answers its seconds, more than 0. What it raises
            goes through.
        memory_bytes: Memory of the machine, or of the container's limit.

    Returns:
        One lane, whole MiB.
    """
    share_mib = memory_bytes // _MEMORY_SHARE // _KIB_PER_MIB**2
    floor_mib = FLOOR.memory_kib // _KIB_PER_MIB
    high_mib = max(floor_mib, min(share_mib, _CALIBRATED_MIB_MAX))
    low_mib = min(high_mib, _CALIBRATED_MIB_MIN)

    def fit(measured: KdfParams, seconds: float) -> KdfParams:
        work_mib = measured.memory_kib * measured.time_cost / _KIB_PER_MIB * _TARGET_S / seconds
        memory_mib = min(max(int(work_mib / _PASSES_PREFERRED), low_mib), high_mib)
        passes = min(max(round(work_mib / memory_mib), FLOOR.time_cost), _TIME_COST_MAX)
        return KdfParams(memory_mib * _KIB_PER_MIB, passes)

    floor_s = measure(FLOOR)
    if floor_s > _SLOW_S:
        return KdfParams(low_mib * _KIB_PER_MIB, FLOOR.time_cost)
    near = fit(FLOOR, floor_s)
    return fit(near, measure(near))


def _argon2id(secret: bytes, salt: bytes, params: KdfParams) -> bytes:
    try:
        return hash_secret_raw(
            secret, salt, params.time_cost, params.memory_kib, params.lanes, KEY_BYTES, Type.ID
        )
    except HashingError as error:
        raise OverloadedError from error


def _require_bounds(params: KdfParams) -> None:
    if not (
        1 <= params.lanes <= _LANES_MAX
        and 1 <= params.time_cost <= _TIME_COST_MAX
        and params.lanes * _MEMORY_KIB_PER_LANE_MIN <= params.memory_kib <= _MEMORY_KIB_MAX
    ):
        message = "key derivation parameters out of bounds"
        raise ValueError(message)
