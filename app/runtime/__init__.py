"""Services on the system tables. Blind to both buckets."""
