"""Batches prefetched by threads while the learner works."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")

_THREADS = 2
"""One gathers a batch while the other copies one to the devices."""


class Stream(contextlib.AbstractContextManager["Stream[T]"], Generic[T]):
    """Iterator over `make(step)` for the steps of a range, computed ahead by threads and returned
    in order.

    `make` must depend on the step alone, so that the results do not depend on timing. Use the
    stream in a `with` block, or exhaust it. `waited_s` is the time in seconds that the caller has
    waited for batches so far.
    """

    def __init__(
        self, make: Callable[[int], T], first_step: int, num_steps: int, ahead: int
    ) -> None:
        self.waited_s = 0.0
        self._make = make
        self._steps = iter(range(first_step, first_step + num_steps))
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="replay")
        self._ready: deque[Future[T]] = deque()
        for _ in range(max(1, ahead)):
            self._submit()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        """Return the next batch. An exception of `make` is raised here."""
        if not self._ready:
            self.close()
            raise StopIteration
        before = time.perf_counter()
        batch = self._ready.popleft().result()
        self.waited_s += time.perf_counter() - before
        self._submit()
        return batch

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the threads; batches that were not taken are dropped."""
        self._ready.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self) -> None:
        step = next(self._steps, None)
        if step is not None:
            self._ready.append(self._pool.submit(self._make, step))
