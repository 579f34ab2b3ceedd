"""Ending a run on SIGTERM or SIGINT: at the end of the current iteration, or at once outside
one."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from azero import mesh as mesh_lib
from azero.checkpoint import store
from azero.console.interrupts import exit_at_once, keep_interrupts
from azero.console.standard_output import say
from azero.cores import explain_devices
from azero.data.files import describe_error
from azero.distributed import EXIT_INTERRUPTED, ProcessLinks, end_process
from azero.memory import explain_exhaustion

GRACE_SECONDS = 25.0
"""Time after SIGTERM at which an unfinished iteration is dropped: spot machines are preempted after
30 seconds."""
EXIT_ERROR = 2
"""Exit status if something has to be changed before the run can continue."""
_LOOK_SECONDS = 0.05
"""Seconds between two checks whether a save has ended."""
_CONTINUES = "what was saved is kept, and the same command continues from there"


class StopRequest:
    """Whether the run has been asked to end, and what it is doing meanwhile."""

    def __init__(self) -> None:
        self.is_set = False
        self.doing = "the current work"
        """The current activity, for the message if it is lost."""
        self.kept: Callable[[], str] = lambda: _CONTINUES
        """What is saved then, and what the same command does, for the same message."""
        self.is_saving: Callable[[], bool] = lambda: False
        """Whether a checkpoint is being written in the background."""
        self.is_ending = False
        """Whether the run has stopped and is saving; it then ends by itself."""

    def wait_for_save(self) -> None:
        """Wait until a checkpoint that is being written is on disk, or the run ends by itself."""
        while self.is_saving() and not self.is_ending:
            time.sleep(_LOOK_SECONDS)

    def agree(self) -> bool:
        """Return whether any host has been asked to stop, so that the run ends here.

        Every host asks at the same moment.
        """
        self.is_ending = mesh_lib.min_of_processes(-int(self.is_set)) < 0
        return self.is_ending


@contextlib.contextmanager
def stop_on_signals(
    workdir: Path, links: ProcessLinks | None = None, owns_process: bool = True
) -> Iterator[StopRequest]:
    """Turn SIGTERM and SIGINT into a request to stop at the end of the iteration.

    If the iteration takes longer than `GRACE_SECONDS`, all processes end without it, once a save in
    progress is complete. A second signal ends the process at once. A process that is not ours
    (`owns_process` False) is ended by SIGTERM only: SIGINT waits for the iteration, and a second
    one raises KeyboardInterrupt.
    """
    stop = StopRequest()
    stop.kept = lambda: _what_is_kept(workdir)

    def end(how: str) -> None:
        lost = f"{stop.doing} {how} and is lost; {stop.kept()}"
        say(f"\n{lost}")
        if links is not None:
            links.broadcast_failure(lost, EXIT_INTERRUPTED)
        os._exit(EXIT_INTERRUPTED)

    def give_up() -> None:
        stop.wait_for_save()
        if not stop.is_ending:
            end(f"did not end within {GRACE_SECONDS:.0f} s")

    def act(number: int) -> None:
        is_callers = number == signal.SIGINT and not owns_process
        if stop.is_set and is_callers:
            if not is_dropped.is_set():
                is_dropped.set()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            return
        if stop.is_set:
            end("was ended by a second signal")
        stop.is_set = True
        say(f"\n{signal.Signals(number).name}: saving at the end of this iteration")
        if is_callers:
            return
        timer = threading.Timer(GRACE_SECONDS, give_up)
        timer.daemon = True
        timer.start()
        timers.append(timer)

    def drop(*_: Any) -> None:
        if is_dropped.is_set():
            raise KeyboardInterrupt(f"{stop.doing} is lost; {stop.kept()}")

    is_dropped = threading.Event()
    timers: list[threading.Timer] = []
    try:
        with _on_signals((signal.SIGTERM, signal.SIGINT), act, drop):
            yield stop
    finally:
        stop.is_ending = True  # a timer that has just fired does nothing
        for timer in timers:
            timer.cancel()


@contextlib.contextmanager
def end_on_sigterm() -> Iterator[None]:
    """End the process at SIGTERM with the status of an interruption.

    For everything outside iterations, such as preparation, where nothing is lost.
    """

    def act(number: int) -> None:
        name = signal.Signals(number).name
        say(f"\n{name}: ended at once, outside of the iterations; {_CONTINUES}")
        os._exit(EXIT_INTERRUPTED)

    with _on_signals((signal.SIGTERM,), act):
        yield


@contextlib.contextmanager
def _on_signals(
    numbers: Sequence[signal.Signals],
    act: Callable[[int], None],
    handle: Callable[..., None] = lambda *_: None,
) -> Iterator[None]:
    """Call `act` at these signals, in a thread of its own and at once; Python calls `handle`.

    A Python handler waits while XLA compiles or computes. Outside the main thread, where
    Python allows no handlers, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiving, sending = socket.socketpair()
    sending.setblocking(False)

    def listen() -> None:
        while content := receiving.recv(64):
            for number in content:
                if number in numbers:
                    act(number)

    thread = threading.Thread(target=listen, name="signals", daemon=True)
    thread.start()
    fd_before = signal.set_wakeup_fd(sending.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(fd_before)
        sending.close()
        thread.join()
        receiving.close()


def _what_is_kept(workdir: Path) -> str:
    """Return where the same command will continue."""
    iterations = store.list_iterations(store.root_directory(workdir))
    if iterations:
        newest = f"checkpoint {iterations[-1]} in {workdir}"
        return f"{newest} is complete, and the same command continues from there"
    return f"no checkpoint in {workdir} yet; the same command starts over"


def end_with_status(start: Callable[[], int]) -> None:
    """Call `start` and end the process with the status it returns; an error is one line."""
    keep_interrupts()
    try:
        with end_on_sigterm(), explain_devices(), explain_exhaustion():
            status = start()
    except KeyboardInterrupt:
        say(f"\nazero: stopped; {_CONTINUES}")
        exit_at_once(EXIT_INTERRUPTED)
    except (ValueError, FloatingPointError, OSError) as error:
        if os.environ.get("AZERO_TRACEBACK") or isinstance(error, BrokenPipeError):
            raise
        print(f"azero: {describe_error(error)}", file=sys.stderr)
        status = EXIT_ERROR
        end_process(status)
    sys.exit(status)
