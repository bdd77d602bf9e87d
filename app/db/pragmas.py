"""What is set on every handle, as the text of PRAGMAs."""

from typing import Final

READER_CACHE_KIB: Final = 512
WRITER_CACHE_KIB: Final = 1024


def of_handle(*, encrypted: bool, reader: bool) -> list[str]:
    """What holds for the life of a handle.

    Args:
        encrypted: Whether its file is under a key.
        reader: Whether it only reads.

    Returns:
        Each without the word PRAGMA, in the order in which they are set.
    """
    pragmas = [
        "foreign_keys = ON",
        "recursive_triggers = ON",  # else OR REPLACE would skip delete triggers
        "trusted_schema = ON",  # triggers call the program's functions, never innocuous
        "cell_size_check = ON",
        "synchronous = FULL",  # an acknowledged write survives power loss
        "temp_store = MEMORY",
        f"cache_size = -{READER_CACHE_KIB if reader else WRITER_CACHE_KIB}",
    ]
    if not encrypted:
        pragmas.append("secure_delete = ON")  # a destroyed slot's bytes must go
    if reader:
        pragmas.append("query_only = ON")
    return pragmas
