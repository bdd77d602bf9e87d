"""Routes on accounts, sessions and administration."""
