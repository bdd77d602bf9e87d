"""Routes on notes, search and reports."""
