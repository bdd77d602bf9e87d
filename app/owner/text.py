"""What a store can hold as text."""

from app.errors.inputs import InvalidInputError


def measure(text: str) -> int:
    """Require that a text can be stored, and tell its size.

    Args:
        text: Any text.

    Returns:
        Its size in bytes of UTF-8.

    Raises:
        InvalidInputError: It holds a NUL, where SQL's text functions would end it, or a lone
            surrogate, which no UTF-8 can hold.
    """
    if "\x00" in text:
        raise InvalidInputError
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError from error
