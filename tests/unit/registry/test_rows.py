from app.db.registry import rows


def test_no_row_shows_a_wrap_or_a_verifier() -> None:
    """A traceback that prints locals may print rows."""
    for kind in (rows.AccountRow, rows.CredentialRow, rows.SlotRow, rows.InvitationRow):
        row = kind._make(b"secret bytes" for _ in kind._fields)
        assert repr(row).count("secret bytes") == 1, kind  # the id's place
