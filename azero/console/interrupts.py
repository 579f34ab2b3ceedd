"""Ctrl-C where Python would lose it."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

_LATER_S = 0.05


def keep_interrupts() -> None:
    """Raise a KeyboardInterrupt again, a moment later, where Python ignores it: in a finaliser or
    in JAX's callback of the garbage collector, which is often the first Python code to run after a
    long import or compilation."""
    report = sys.unraisablehook

    def raise_again(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            main = threading.main_thread().ident
            timer = threading.Timer(_LATER_S, signal.pthread_kill, [main, signal.SIGINT])
            timer.daemon = True
            timer.start()
        else:
            report(unraisable)

    sys.unraisablehook = raise_again
