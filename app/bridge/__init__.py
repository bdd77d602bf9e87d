"""The only code that sees both buckets: who is calling, which store, and what spans files."""
