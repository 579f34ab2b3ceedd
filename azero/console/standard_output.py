"""Standard output that another program reads, and lines on standard error."""

import contextlib
import os
import sys
from collections.abc import Iterator

_EXIT_SIGPIPE = 141
"""128 and the number of SIGPIPE, as shells have it."""


@contextlib.contextmanager
def end_with_reader() -> Iterator[None]:
    """End the process with status 141, without a message, when the reader of its standard output
    has gone (`| head`)."""
    try:
        try:
            yield
        finally:
            print(end="", flush=True)  # nothing where standard output is closed (`>&-`)
    except BrokenPipeError:
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_EXIT_SIGPIPE)


def say(text: str) -> None:
    """Print a line on standard error, which may be a closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
