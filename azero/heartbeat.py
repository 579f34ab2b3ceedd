"""A function called repeatedly while other work runs, to show that it is alive."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def repeating(beat: Callable[[], None], every: float) -> Iterator[None]:
    """Call `beat` in its own thread every `every` seconds while the block runs."""
    stop = threading.Event()

    def run() -> None:
        # Where nobody reads standard output, the other work notices that at its next line.
        with contextlib.suppress(BrokenPipeError):
            while not stop.wait(every):
                beat()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
