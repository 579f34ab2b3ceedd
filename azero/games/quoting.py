"""Quoting input in messages, shortened to fit a line. Host side only."""

import contextlib
from collections.abc import Iterator

LONGEST = 300
"""Characters; a position or a move of any format here is shorter."""


def reason(error: Exception) -> str:
    """Return why a file cannot be read; of an operating system's error the words alone, without its
    number and the path."""
    words = error.strerror if isinstance(error, OSError) else None
    return words or str(error) or type(error).__name__


def shorten(text: object) -> str:
    """Return `text` on one line, with its middle left out if it is long."""
    whole = " ".join(str(text).splitlines())
    return (
        whole if len(whole) <= LONGEST else f"{whole[: LONGEST // 2]} ... {whole[-LONGEST // 2 :]}"
    )


@contextlib.contextmanager
def quoting(text: str, meant: str) -> Iterator[None]:
    """Quote `text`, which should have been what is `meant`, in a ValueError of the block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{shorten(repr(text))} is not {meant}: {shorten(error)}") from None
