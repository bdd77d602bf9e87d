"""The system tables that go with every store. Never a table of one bucket alone."""
