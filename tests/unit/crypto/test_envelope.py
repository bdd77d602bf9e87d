import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crypto import envelope
from app.crypto.envelope import Binding, UnwrapError
from app.crypto.keys import Key

VECTORS: dict[str, list[dict[str, str]]] = json.loads(
    (Path(__file__).parent / "vectors" / "envelope.json").read_text("utf-8")
)
KEK = Key(bytes(range(32)))
DEK = Key(bytes(range(100, 132)))
ROW = Binding("user-1", "session", "slot-1")
PLACE: dict[str, Any] = {"table": "secrets", "column": "value", "row_id": "1"}

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def key(text: str) -> Key:
    """Read a key of the vectors."""
    return Key(bytes.fromhex(text))


@pytest.mark.parametrize("row", VECTORS["wraps"], ids=lambda row: row["name"])
def test_a_wrap_of_version_1_stays(row: dict[str, str]) -> None:
    """The same nonce gives for ever the same blob, and the blob opens."""
    kek, dek = key(row["kek"]), key(row["dek"])
    binding = Binding(row["user_id"], row["kind"], row["slot_id"])
    blob = envelope._wrap(kek, dek, binding, bytes.fromhex(row["nonce"]))
    assert blob.hex() == row["blob"]
    assert envelope.unwrap(kek, blob, binding).same_as(dek)


@pytest.mark.parametrize("row", VECTORS["seals"], ids=lambda row: row["name"])
def test_a_seal_of_version_1_stays(row: dict[str, str]) -> None:
    """The same nonce gives for ever the same blob, and the blob opens."""
    place = (row["table"], row["column"], row["row_id"])
    plaintext, nonce = bytes.fromhex(row["plaintext"]), bytes.fromhex(row["nonce"])
    sealed = envelope._encrypt(key(row["key"]), plaintext, envelope._place_of_seal(*place), nonce)
    assert sealed.hex() == row["blob"]
    named = dict(zip(("table", "column", "row_id"), place, strict=True))
    assert envelope.open_sealed(key(row["key"]), sealed, **named) == plaintext


def test_a_wrap_opens_with_its_key_in_its_row() -> None:
    """61 bytes, never the same twice, and the key comes back."""
    blob = envelope.wrap(KEK, DEK, ROW)
    assert len(blob) == 61
    assert blob != envelope.wrap(KEK, DEK, ROW)
    assert bytes(DEK.view()) not in blob
    assert envelope.unwrap(KEK, blob, ROW).same_as(DEK)


@pytest.mark.parametrize(
    "other",
    [
        replace(ROW, user_id="user-2"),
        replace(ROW, kind="recovery"),
        replace(ROW, slot_id="slot-2"),
        Binding("user-1session", "", "slot-1"),
        Binding("session", "user-1", "slot-1"),
    ],
    ids=["user", "kind", "slot", "run together", "swapped"],
)
def test_a_moved_wrap_does_not_open(other: Binding) -> None:
    """The blob of one row is of no use in another."""
    with pytest.raises(UnwrapError):
        envelope.unwrap(KEK, envelope.wrap(KEK, DEK, ROW), other)


def test_another_key_does_not_open() -> None:
    """The tag is the password check."""
    blob = envelope.wrap(KEK, DEK, ROW)
    with pytest.raises(UnwrapError):
        envelope.unwrap(DEK, blob, ROW)


@pytest.mark.parametrize("at", range(61))
def test_a_wrap_with_a_flipped_bit_does_not_open(at: int) -> None:
    """Every byte counts: version, nonce, ciphertext and tag."""
    blob = bytearray(envelope.wrap(KEK, DEK, ROW))
    blob[at] ^= 0x80
    with pytest.raises(UnwrapError):
        envelope.unwrap(KEK, bytes(blob), ROW)


@pytest.mark.parametrize("length", [*range(61), 62, 93])
def test_a_wrap_has_one_length(length: int) -> None:
    """Cut or lengthened blobs do not open."""
    blob = (envelope.wrap(KEK, DEK, ROW) * 2)[:length]
    with pytest.raises(UnwrapError):
        envelope.unwrap(KEK, blob, ROW)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_an_unknown_version_does_not_open(version: int) -> None:
    """Neither a wrap nor a seal of another version is tried."""
    wrapped, sealed = envelope.wrap(KEK, DEK, ROW), envelope.seal(KEK, b"x", **PLACE)
    with pytest.raises(UnwrapError):
        envelope.unwrap(KEK, bytes([version]) + wrapped[1:], ROW)
    with pytest.raises(UnwrapError):
        envelope.open_sealed(KEK, bytes([version]) + sealed[1:], **PLACE)


def test_the_error_carries_nothing() -> None:
    """Neither message, nor cause, nor attributes tell more than that it did not open."""
    with pytest.raises(UnwrapError) as caught:
        envelope.unwrap(KEK, envelope.wrap(KEK, DEK, ROW), replace(ROW, user_id="user-2"))
    assert str(caught.value) == "this key does not open this blob in this place"
    assert caught.value.__cause__ is None
    assert vars(caught.value) == {}


def test_a_zeroed_key_neither_wraps_nor_opens() -> None:
    """It is refused as a zeroed key, not as a wrong one."""
    gone = Key.generate()
    gone.zero()
    blob = envelope.wrap(KEK, DEK, ROW)
    with pytest.raises(ValueError, match="zeroed"):
        envelope.wrap(gone, DEK, ROW)
    with pytest.raises(ValueError, match="zeroed"):
        envelope.wrap(KEK, gone, ROW)
    with pytest.raises(ValueError, match="zeroed"):
        envelope.unwrap(gone, blob, ROW)


@given(st.binary(max_size=200), names, names, names)
def test_a_seal_gives_back_what_was_sealed(
    plaintext: bytes, table: str, column: str, row_id: str
) -> None:
    """Any bytes, none included, in any place."""
    blob = envelope.seal(KEK, plaintext, table=table, column=column, row_id=row_id)
    assert len(blob) == len(plaintext) + 29
    opened = envelope.open_sealed(KEK, blob, table=table, column=column, row_id=row_id)
    assert opened == plaintext


@pytest.mark.parametrize("part", ["table", "column", "row_id"])
def test_a_moved_seal_does_not_open(part: str) -> None:
    """The blob of one column and row is of no use in another."""
    blob = envelope.seal(KEK, b"a secret", **PLACE)
    with pytest.raises(UnwrapError):
        envelope.open_sealed(KEK, blob, **(PLACE | {part: "another"}))


@pytest.mark.parametrize("damaged", [b"", b"\x01", b"\x01" * 28, b"\x01" * 29])
def test_a_damaged_seal_does_not_open(damaged: bytes) -> None:
    """Too short, or long enough and false."""
    with pytest.raises(UnwrapError):
        envelope.open_sealed(KEK, damaged, **PLACE)


def test_a_wrap_is_no_seal() -> None:
    """The same key, names and bytes under the other use do not open."""
    names_of_wrap = {"table": ROW.user_id, "column": ROW.kind, "row_id": ROW.slot_id}
    with pytest.raises(UnwrapError):
        envelope.open_sealed(KEK, envelope.wrap(KEK, DEK, ROW), **names_of_wrap)
    with pytest.raises(UnwrapError):
        envelope.unwrap(KEK, envelope.seal(KEK, bytes(32), **names_of_wrap), ROW)


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_two_places_never_look_alike(one: list[str], other: list[str]) -> None:
    """The associated data of different names are different bytes."""
    alike = envelope._place("label", *one) == envelope._place("label", *other)
    assert alike is (one == other)
