import json
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.crypto import tokens
from app.crypto.tokens import Token

VECTORS: list[dict[str, str]] = json.loads(
    (Path(__file__).parent / "vectors" / "tokens.json").read_text("utf-8")
)
ID = "01890a5d-ac96-774b-bcce-b302099a8057"
SECRET = bytes(range(32))
TEXT = Token("session", ID, SECRET).text()

kinds = st.sampled_from(tokens.KINDS)
ids = st.uuids().map(str)
secrets = st.binary(min_size=32, max_size=32)


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["kind"])
def test_the_form_of_a_token_stays(row: dict[str, str]) -> None:
    """Text, verifier, slot key and CSRF token of a secret are for ever what they were."""
    token = Token(row["kind"], row["id"], bytes.fromhex(row["secret"]))
    assert token.text() == row["text"]
    assert tokens.parse(row["text"]) == token
    assert tokens.verifier(token.secret).hex() == row["verifier"]
    assert bytes(tokens.slot_kek(token).view()).hex() == row["slot_kek"]
    assert tokens.csrf_token(token.secret) == row["csrf"]


@given(kinds, ids, secrets)
@example("session", ID, b"\xff" * 32)
def test_a_token_survives_its_text(kind: str, row_id: str, secret: bytes) -> None:
    """Read as str or as a header's bytes, a token is what it was, `_` in the secret or not."""
    token = Token(kind, row_id, secret)
    assert tokens.parse(token.text()) == token
    assert tokens.parse(token.text().encode()) == token


@pytest.mark.parametrize("kind", tokens.KINDS)
def test_minted_tokens_have_secrets_of_their_own(kind: str) -> None:
    """Two tokens for one row differ in 32 random bytes."""
    one, other = tokens.mint(kind, ID), tokens.mint(kind, ID)
    assert (one.kind, one.id, len(one.secret)) == (kind, ID, 32)
    assert one.secret != other.secret


@pytest.mark.parametrize(
    ("kind", "row_id"),
    [("", ID), ("root", ID), ("session", ""), ("session", ID.upper()), ("session", "{" + ID + "}")],
)
def test_only_known_kinds_and_canonical_ids_are_minted(kind: str, row_id: str) -> None:
    """Nothing is minted that could not be parsed."""
    with pytest.raises(ValueError, match="known kind"):
        tokens.mint(kind, row_id)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sr_session",
        TEXT[:-1],
        TEXT + "A",
        TEXT + "=",
        TEXT + "\n",
        " " + TEXT,
        TEXT.replace("sr_", "SR_"),
        TEXT.replace("session", "cookie"),
        TEXT.replace("session", "Session"),
        TEXT.replace("_", "-"),
        TEXT.replace(ID, ID.upper()),
        TEXT.replace(ID, ID.replace("-", "")),
        TEXT.replace(ID, "g" + ID[1:]),
        TEXT.replace(ID, ""),
        TEXT[:-2] + "+8",
        TEXT[:-2] + "/8",
        TEXT[:-1] + "\u0660",
        TEXT[:-1] + "\x00",
        TEXT[:-1] + "\ud800",
        pytest.param("sr_session_" * 100_000, id="endless"),
    ],
)
def test_anything_else_is_no_token(text: str) -> None:
    """Malformed text is None, never an error."""
    assert tokens.parse(text) is None
    assert tokens.parse(text.encode("utf-8", "surrogatepass")) is None


@pytest.mark.parametrize("last", sorted(set("BCDFGHabz19-_")))
def test_a_secret_has_one_spelling(last: str) -> None:
    """A last character with bits beyond the 32 bytes is refused, not dropped."""
    assert tokens.parse(TEXT[:-1] + last) is None


@given(st.one_of(st.text(max_size=120), st.binary(max_size=120)))
def test_parsing_never_raises(text: str | bytes) -> None:
    """Random input is None."""
    assert tokens.parse(text) is None


def test_a_token_does_not_show_its_secret() -> None:
    """Its representation names the row and no more."""
    token = Token("session", ID, SECRET)
    assert repr(token) == f"Token(kind='session', id='{ID}', secret=redacted)"
    assert str(token) == repr(token)


@given(secrets, secrets)
@example(SECRET, SECRET)
def test_a_verifier_knows_its_secret_alone(one: bytes, other: bytes) -> None:
    """The stored digest matches the secret it was made from."""
    assert tokens.verifier_matches(one, tokens.verifier(other)) is (one == other)
    assert not tokens.verifier_matches(one, b"")


def test_a_slot_key_belongs_to_one_token() -> None:
    """Another secret, kind or id gives another key."""
    key = tokens.slot_kek(Token("session", ID, SECRET))
    assert key.same_as(tokens.slot_kek(Token("session", ID, SECRET)))
    for other in (
        Token("token", ID, SECRET),
        Token("session", ID[:-1] + "8", SECRET),
        Token("session", ID, bytes(32)),
    ):
        assert not key.same_as(tokens.slot_kek(other))


def test_nothing_derived_from_a_secret_tells_another_thing() -> None:
    """Secret, verifier, slot key and CSRF token are four different values."""
    derived = {
        SECRET,
        tokens.verifier(SECRET),
        bytes(tokens.slot_kek(Token("session", ID, SECRET)).view()),
        tokens.csrf_token(SECRET).encode(),
        urlsafe_b64encode(SECRET).rstrip(b"="),
    }
    assert len(derived) == 5


@pytest.mark.parametrize(
    "text", ["", "?", "\u00e9", "\ud800", "A" * 43, tokens.csrf_token(bytes(32))]
)
def test_a_csrf_token_belongs_to_one_session(text: str) -> None:
    """The session's own matches; any other text does not, and does not raise."""
    assert tokens.csrf_matches(SECRET, tokens.csrf_token(SECRET))
    assert not tokens.csrf_matches(SECRET, text)
