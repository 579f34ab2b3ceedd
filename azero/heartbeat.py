"""Something done again and again while other work goes on: nothing is silent for long."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def beating(beat: Callable[[], None], every: float) -> Iterator[None]:
    """Call `beat` in a thread of its own every so many seconds, for as long as the block runs."""
    stop = threading.Event()

    def keep_beating() -> None:
        while not stop.wait(every):
            beat()

    thread = threading.Thread(target=keep_beating, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
