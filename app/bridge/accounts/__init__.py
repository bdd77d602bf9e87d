"""Members made, signed in, changed and erased; their secrets, keys and tokens."""
