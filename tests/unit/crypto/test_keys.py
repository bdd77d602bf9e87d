import copy
import pickle
import traceback
from collections.abc import Callable

import pytest

from app.crypto.keys import Key

SECRET = bytes(range(32))
HEX = SECRET.hex()


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_a_key_is_32_bytes(length: int) -> None:
    """Any other length is refused, and the refusal does not show the value."""
    with pytest.raises(ValueError, match="32 bytes") as caught:
        Key(b"\xab" * length)
    assert "ab" not in str(caught.value)


def test_a_key_copies_what_it_is_given() -> None:
    """The giver may wipe its own buffer afterwards."""
    source = bytearray(SECRET)
    key = Key(source)
    source[:] = bytes(32)
    assert key.view() == SECRET


def test_generated_keys_differ() -> None:
    """Two generated keys are not the same, and a key is the same as itself."""
    one, other = Key.generate(), Key.generate()
    assert one.same_as(one)
    assert not one.same_as(other)
    assert Key(SECRET).same_as(Key(SECRET))


def test_a_key_filled_in_place_holds_what_was_written() -> None:
    """The mechanism writes into the key's own buffer; what it raises goes through."""

    def fill(buffer: bytearray) -> None:
        buffer[:] = SECRET

    def fail(_: bytearray) -> None:
        raise LookupError

    assert Key.filled_by(fill).view() == SECRET
    with pytest.raises(LookupError):
        Key.filled_by(fail)


def test_the_view_is_read_only() -> None:
    """Nobody changes a key through what it lends."""
    assert Key(SECRET).view().readonly


def test_the_raw_form_has_64_digits_always() -> None:
    """SQLCipher would take another number of digits for a passphrase."""
    assert Key(SECRET).sqlcipher_raw() == f"x'{HEX}'"
    assert Key(bytes(32)).sqlcipher_raw() == f"x'{'0' * 64}'"


def test_a_zeroed_key_is_gone_everywhere() -> None:
    """Zeroing reaches the views that were lent, and may be done twice."""
    key = Key(SECRET)
    view = key.view()
    key.zero()
    key.zero()
    assert bytes(view) == bytes(32)
    assert key.is_zeroed


def test_a_zeroed_key_refuses_every_use() -> None:
    """It never stands in for the all-zero key."""
    key = Key(SECRET)
    key.zero()
    for use in (key.view, key.sqlcipher_raw, lambda: key.same_as(Key(SECRET))):
        with pytest.raises(ValueError, match="zeroed"):
            use()
    with pytest.raises(ValueError, match="zeroed"):
        Key(SECRET).same_as(key)


def test_a_key_in_a_with_block_ends_with_it() -> None:
    """The block's end zeroes the key, also when the block raises."""
    with Key(SECRET) as key:
        assert key.view() == SECRET
        assert key.is_zeroed is False
    assert repr(key) == "Key(zeroed)"
    lost = Key(SECRET)
    with pytest.raises(LookupError), lost:
        raise LookupError
    assert lost.is_zeroed


def test_a_key_never_shows_itself() -> None:
    """No representation, and no traceback with one, has the bytes."""
    key = Key(SECRET)
    assert repr(key) == str(key) == f"{key}" == "Key(redacted)"
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError(key)
    assert HEX[:8] not in "".join(traceback.format_exception(caught.value))
    key.zero()
    assert repr(key) == "Key(zeroed)"


@pytest.mark.parametrize("spread", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_key_is_neither_copied_nor_pickled(spread: Callable[[Key], object]) -> None:
    """There is one buffer to zero."""
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        spread(Key(SECRET))


def test_a_key_takes_no_further_attributes() -> None:
    """Nothing can be hung on a key, where it would outlive the bytes."""
    key = Key(SECRET)
    with pytest.raises(AttributeError):
        key.__setattr__("note", HEX)
