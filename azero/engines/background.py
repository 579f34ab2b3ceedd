"""An engine's background work: importing JAX, loading a network and compiling, each in its own
thread."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, TimeoutError
from typing import Generic, TypeVar

from azero.engines.lines import InputLine, LineReader, LineWriter

T = TypeVar("T")
WAIT_SECONDS = 0.02
"""Time between two checks of the input while waiting."""
importing = threading.Lock()
"""Held while a thread imports JAX. Of modules that import each other, a second thread that imports
them meanwhile may see a half-initialised one (Python releases its import locks in a cycle)."""


class StartError(Exception):
    """An engine cannot be started or its network cannot be loaded; the cause is the error that says
    why."""


class Background(Generic[T]):
    """Work in a thread, and its result, which `work` may give before it ends: it is called with a
    function that sets the result."""

    def __init__(self, work: Callable[[Callable[[T], None]], None]) -> None:
        """Start `work(give)`, which calls `give(result)` once."""
        self._result: Future[T] = Future()
        self._work = work
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, made: "T | Background[T]") -> "Background[T]":
        """Return `made` itself if it is background work, else finished work with this result."""
        if isinstance(made, Background):
            return made
        work = cls(lambda give: give(made))
        work._thread.join()
        return work

    def _run(self) -> None:
        try:
            self._work(self._result.set_result)
            if not self._result.done():
                raise RuntimeError("the task gave no result")
        except BaseException as error:
            if self._result.done():
                self._result = Future()
            self._result.set_exception(error)

    def is_ready(self, seconds: float = 0.0) -> bool:
        """Wait at most `seconds`; return whether there is a result or an error."""
        try:
            self._result.exception(seconds)
        except TimeoutError:
            return False
        return True

    @property
    def is_over(self) -> bool:
        """Whether the work has ended, which may be after it gave its result."""
        return not self._thread.is_alive()

    @property
    def has_failed(self) -> bool:
        """Whether there is an error already."""
        return self._result.done() and self._result.exception() is not None

    def result(self) -> T:
        """Wait for the result.

        Raises:
          StartError: the work failed, before or after it gave the result.
        """
        error = self._result.exception()
        if error is not None:
            kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
            raise StartError(f"{kind}{error}") from error
        return self._result.result()

    def finish(self) -> T:
        """Wait until the work is over, and return its result; errors as of `result`."""
        self._thread.join()
        return self.result()


class ProtocolEngine(Generic[T]):
    """Base of the engines of all protocols, with a game that may still be loading."""

    def __init__(self, game: T | Background[T]) -> None:
        self._loading = Background.of(game)
        self.has_quit = False
        self.failure: BaseException | None = None
        """Why the network cannot be loaded; set by the first command that needs it."""

    @property
    def game(self) -> T:
        """The game, once it is loaded.

        Raises:
          StartError: it could not be loaded.
        """
        return self._loading.result()

    @property
    def is_starting(self) -> bool:
        """Whether the game is still being loaded."""
        return not self._loading.is_ready()

    def answer_lines(
        self,
        handle: Callable[[InputLine], None],
        reader: LineReader,
        write: LineWriter,
        before_line: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `handle` with every line until it sets `has_quit`, or to the end of the input; once
        the game is loaded, `before_line` before each.

        Raises:
          Exception: what kept the engine from being started or its network from being loaded.
        """
        with raising_causes():
            while not self.has_quit and not write.is_closed:
                while self.is_starting and not reader.is_waiting():
                    time.sleep(WAIT_SECONDS)
                if not self.is_starting:
                    _ = self.game  # raises the reason if the engine could not start
                    before_line()
                line = reader.take()
                if line is None:
                    _ = self.game
                    return
                handle(line)
                if self.failure is not None:
                    raise self.failure


@contextlib.contextmanager
def raising_causes() -> Iterator[None]:
    """Raise the cause of a StartError instead of it."""
    try:
        yield
    except StartError as error:
        raise (error.__cause__ or error) from None
