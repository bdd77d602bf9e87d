"""One file a mechanism: bytes in, bytes out. Never I/O, never a database, never HTTP."""
