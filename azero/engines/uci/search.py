"""When a search ends: at its limits, or at a command during the search."""

import time
from collections.abc import Callable

from azero.engines.lines import InputLine, LineReader


class SearchControl:
    """Decides when one search stops; the search asks it after every batch of leaves."""

    def __init__(
        self,
        lines: LineReader,
        handle: Callable[[InputLine], None],
        *,
        waits: bool,
        depth: int | None,
        is_closed: Callable[[], bool],
    ) -> None:
        """Begin to count the time. What waits in `lines` goes to `handle` between batches, which
        may call `stop` and `ponderhit`. With `waits` only `stop` ends the search, before
        `ponderhit`; `depth` is the mean length of the descents at which it ends."""
        self.depth = 0.0
        """Mean length of the descents, as last reported."""
        self._lines = lines
        self._handle = handle
        self._waits = waits
        self._seconds: float | None = None
        self._is_endless = False
        self._most_depth = depth
        self._is_closed = is_closed
        self.is_stopped = False
        """Whether `stop` has come."""
        self._input_ended = False
        self._began = self._last = time.perf_counter()

    def stop(self) -> None:
        """End the search at the next batch."""
        self.is_stopped = True

    def limit(self, seconds: float | None, is_endless: bool) -> None:
        """Set what was not known when the time began to count: the seconds to think, None without
        limit, from `ponderhit` on; and whether only `stop` ends the search."""
        self._seconds, self._is_endless = seconds, is_endless
        self._waits |= is_endless

    def is_over_after(self, seconds: float) -> bool:
        """Whether a search that need not wait for `stop` or `ponderhit` has used this much time."""
        return not self._waits and time.perf_counter() - self._began > seconds

    def ponderhit(self) -> None:
        """The expected move has been played: the limits hold from now on."""
        self._waits = self._is_endless
        self._began = time.perf_counter()

    def should_stop(self) -> bool:
        """Handle the lines that wait, and say whether the search is to end; the time of one more
        batch is kept."""
        now = time.perf_counter()
        batch_seconds, self._last = now - self._last, now
        self._poll()
        if self.is_stopped or self._is_closed():
            return True
        if self._waits:
            return self._input_ended
        is_late = self._seconds is not None and now + batch_seconds - self._began > self._seconds
        return is_late or (self._most_depth is not None and self.depth >= self._most_depth)

    def wait(self) -> None:
        """Return when an answer may be given: a search that has nothing left to do still waits for
        `stop` or `ponderhit`."""
        self._poll()
        while self._waits and not (self.is_stopped or self._input_ended or self._is_closed()):
            self._take()

    def _poll(self) -> None:
        # What follows `stop` is for after the answer: programs send the next search at once.
        while not (self.is_stopped or self._input_ended) and self._lines.is_waiting():
            self._take()

    def _take(self) -> None:
        line = self._lines.take()
        if line is None:
            self._input_ended = True
        else:
            self._handle(line)
