"""Ctrl-C where Python would lose it or crash, and the end of a process that is stopped."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

_LATER_S = 0.05


def keep_interrupts() -> None:
    """Raise a KeyboardInterrupt a moment later where Python ignores it (in a finaliser or in JAX's
    callback of the garbage collector, which is often the first Python code to run after a long
    import or compilation), and where it does harm: in an import, because extension modules that
    are interrupted while they initialise crash."""
    report = sys.unraisablehook

    def raise_again(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            _interrupt_later()
        else:
            report(unraisable)

    sys.unraisablehook = raise_again
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


@contextlib.contextmanager
def end_in_one_line() -> Iterator[None]:
    """End the process with one line at Ctrl-C, with exit status 130 (128 and the number of SIGINT,
    as shells have it), and at a ValueError or an OSError, with 2: JAX raises the former when it is
    imported and the environment has a wrong value for it."""
    keep_interrupts()
    try:
        yield
    except KeyboardInterrupt as stop:
        print(f"azero: {str(stop) or 'stopped'}", file=sys.stderr)
        exit_at_once(130)
    except (ValueError, OSError) as error:
        if os.environ.get("AZERO_TRACEBACK"):
            raise
        print(f"azero: {error}", file=sys.stderr)
        exit_at_once(2)


@contextlib.contextmanager
def first_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets instead of raising KeyboardInterrupt; a second one
    raises it as usual. Outside the main thread, which alone gets signals, nothing sets it."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        pressed.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def exit_at_once(status: int) -> NoReturn:
    """End the process without Python's own shutdown, which waits for background threads, and
    crashes where one of them is in XLA's compiler."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a closed pipe or file
            stream.flush()
    os._exit(status)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return _interrupt_later()
        frame = frame.f_back
    raise KeyboardInterrupt


def _interrupt_later() -> None:
    main = threading.main_thread().ident
    timer = threading.Timer(_LATER_S, signal.pthread_kill, [main, signal.SIGINT])
    timer.daemon = True
    timer.start()
