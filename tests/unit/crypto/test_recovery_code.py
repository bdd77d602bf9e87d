import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crypto import recovery_code

VECTORS: list[dict[str, str]] = json.loads(
    (Path(__file__).parent / "vectors" / "recovery_code.json").read_text("utf-8")
)
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE = VECTORS[-1]["code"]
ENTROPY = bytes.fromhex(VECTORS[-1]["entropy"])

numbers = st.integers(0, 2**130 - 1)


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["name"])
def test_the_form_of_a_code_stays(row: dict[str, str]) -> None:
    """A code on paper is read for ever as it was, and gives the same key."""
    entropy = recovery_code.parse(row["code"])
    assert entropy is not None
    assert entropy.hex() == row["entropy"]
    assert recovery_code._spell(int.from_bytes(entropy, "big")) == row["code"]
    assert bytes(recovery_code.kek(entropy).view()).hex() == row["kek"]


def test_a_generated_code_reads_well() -> None:
    """Five groups of five and one of two, without I, L, O or U among the digits."""
    code = recovery_code.generate()
    assert re.fullmatch(rf"(?:[{DIGITS}]{{5}}-){{5}}[{DIGITS}][{DIGITS}*~$=U]", code)
    assert recovery_code.parse(code) is not None
    assert code != recovery_code.generate()


@given(numbers)
def test_every_number_survives_its_code(number: int) -> None:
    """130 bits come back as they were, in 17 bytes."""
    assert recovery_code.parse(recovery_code._spell(number)) == number.to_bytes(17, "big")


@pytest.mark.parametrize(
    "typed",
    [
        CODE.lower(),
        CODE.replace("-", ""),
        CODE.replace("-", " "),
        CODE.replace("-", "\u2013"),
        CODE.replace("-", " \u2011\u00a0"),
        f"  {CODE}\r\n",
        "-".join(CODE.replace("-", "")),
        CODE.replace("0", "O").replace("1", "I"),
        CODE.replace("0", "o").replace("1", "l"),
        CODE.replace("1", "L"),
        CODE.replace("1", "i"),
    ],
)
def test_a_code_is_read_as_people_type_it(typed: str) -> None:
    """Case, blanks, dashes and look-alike letters do not matter."""
    assert recovery_code.parse(typed) == ENTROPY


def test_the_check_u_is_read_in_lower_case() -> None:
    """The one letter that only the check uses is tolerated like the others."""
    code = next(row["code"] for row in VECTORS if row["name"] == "check U")
    assert recovery_code.parse(code.lower()) == recovery_code.parse(code) is not None


@given(numbers, st.integers(0, 25), st.sampled_from(DIGITS))
def test_one_wrong_character_is_found(number: int, at: int, wrong: str) -> None:
    """Whichever place it is in and whatever stands there."""
    code = recovery_code._spell(number).replace("-", "")
    slip = code[:at] + wrong + code[at + 1 :]
    assert (recovery_code.parse(slip) is None) is (slip != code)


@given(numbers, st.integers(0, 25))
def test_two_swapped_neighbours_are_found(number: int, at: int) -> None:
    """Also when one of the two is the check character."""
    code = recovery_code._spell(number).replace("-", "")
    slip = code[:at] + code[at + 1] + code[at] + code[at + 2 :]
    assert (recovery_code.parse(slip) is None) is (slip != code)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        CODE[:-1],
        CODE + "0",
        "U" * 27,
        "!" + CODE[1:],
        "\u0131" * 27,
        "\uff10" * 27,
        "\ud800" * 27,
        CODE.replace("-", "_"),
        CODE.replace("-", "-" * 30),
        "0" * 10_000_000,
    ],
    ids=[
        "empty",
        "dash",
        "short",
        "long",
        "U",
        "mark",
        "dotless",
        "wide",
        "surrogate",
        "underscore",
        "spread",
        "endless",
    ],
)
def test_anything_else_is_no_code(text: str) -> None:
    """Malformed text is None, never an error."""
    assert recovery_code.parse(text) is None


@given(st.text(max_size=60))
def test_reading_never_raises(text: str) -> None:
    """Random text is None, or a code that spells the same number."""
    entropy = recovery_code.parse(text)
    assert entropy is None or len(entropy) == 17


@pytest.mark.parametrize("length", [0, 16, 18, 32])
def test_a_key_needs_all_of_the_code(length: int) -> None:
    """Anything but 17 bytes is refused, without showing them."""
    with pytest.raises(ValueError, match="17 bytes"):
        recovery_code.kek(bytes(length))


def test_another_code_is_another_key() -> None:
    """Two codes open nothing in common."""
    assert recovery_code.kek(ENTROPY).same_as(recovery_code.kek(ENTROPY))
    assert not recovery_code.kek(ENTROPY).same_as(recovery_code.kek(bytes(17)))
