"""The workers of an elastic run as Ray's actors: started, given work, and replaced when they are
lost."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import ray
from ray.exceptions import RayActorError, RayError, RayTaskError, RuntimeEnvSetupError

from azero.match.score import MatchResult
from azero.selfplay.trajectory import Games
from azero.train.loop import Challenge
from azero.types import PyTree

_LOST_IN_A_ROW = 3
"""Most losses per worker in a row before any game arrives: a preempted machine is one loss, a crash
at every start is many."""
_WAIT_SECONDS = 0.2
"""Time the pool waits for a result before it does other work."""


@dataclass
class _WorkerHandle:
    """A worker."""

    number: int
    actor: Any
    place: str = ""
    """Host and devices, once it is ready."""


@dataclass(frozen=True)
class _Task:
    """A worker's current task."""

    worker: _WorkerHandle
    kind: Literal["start", "play", "match"]


class WorkerPool:
    """Workers, whose number may change at any time, as the learner sees them. A thread assigns
    dispatches to workers and collects their results."""

    def __init__(self, start_worker: Callable[[int], Any], size: int, max_waiting: int) -> None:
        """Start `size` workers; `start_worker` starts the actor of worker number n. With more than
        `max_waiting` positions waiting for the learner, workers pause."""
        self._start_worker = start_worker
        self._size = size
        self._max_waiting = max_waiting
        self._num_started = 0
        self._lost_in_a_row = 0
        self._workers: dict[int, _WorkerHandle] = {}
        self._idle: list[_WorkerHandle] = []
        self._tasks: dict[Any, _Task] = {}
        self._evaluator: int | None = None
        self._published: tuple[int, Any] | None = None
        # The attributes below are shared by the two threads and guarded by this condition.
        self._changed = threading.Condition()
        self._orders: tuple[int, Any, float, int] | None = None
        self._match: tuple[int, Any, Any] | None = None
        self._games: deque[Games] = deque()
        self._waiting = 0
        self._result: MatchResult | None = None
        self._messages: list[str] = []
        self._failure: Exception | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workers", daemon=True)
        self._thread.start()

    def publish(self, iteration: int, variables: PyTree, threshold: float, done: int) -> None:
        """Make every dispatch that starts from now on use `variables`, the player of `iteration`,
        resign below `threshold`, and search as after the run's `done` iterations."""
        if self._published is None or self._published[0] != iteration:
            self._published = (iteration, ray.put(jax.device_get(variables)))
        with self._changed:
            self._orders = (*self._published, threshold, done)

    def receive(self, timeout: float) -> Games | None:
        """Return games that a worker has finished, oldest first; None where none came within
        `timeout` seconds.

        Raises:
          ValueError: no worker can play; the reason is given.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._games or self._failure, timeout)
            self._check()
            if not self._games:
                return None
            games = self._games.popleft()
            self._waiting -= len(games.action)
            return games

    def start_match(self, challenge: Challenge) -> None:
        """Start a match on the first free worker; if that worker is lost, on another. One match at
        a time."""
        current, opponent = (
            ray.put(jax.device_get(variables))
            for variables in (challenge.current, challenge.opponent)
        )
        with self._changed:
            self._match, self._result = (challenge.iteration, current, opponent), None

    def receive_result(self, timeout: float) -> MatchResult | None:
        """Return the result of the match, for the current player; None where it has not ended
        within `timeout` seconds.

        Raises:
          ValueError: no worker can play; the reason is given.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._result or self._failure, timeout)
            self._check()
            result, self._result = self._result, None
            return result

    def describe(self) -> str:
        """Return how many workers are ready."""
        ready = sum(bool(worker.place) for worker in list(self._workers.values()))
        return f"{ready} of {self._size} workers"

    def take_messages(self) -> list[str]:
        """Return workers added and lost since the last call, one line each."""
        with self._changed:
            messages, self._messages = self._messages, []
            return messages

    def close(self) -> None:
        """Stop all workers; their unfinished games are lost."""
        self._closing.set()
        self._thread.join()
        for worker in self._workers.values():
            _kill(worker)

    def _check(self) -> None:
        if self._failure is not None:
            raise ValueError(f"self-play has ended: {last_line(self._failure)}") from self._failure

    def _run(self) -> None:
        """Keep the workers busy until the pool is closed; an error here is raised at the learner's
        next call."""
        try:
            while not self._closing.is_set():
                while len(self._workers) < self._size:
                    self._request_worker()
                with self._changed:
                    self._idle = [worker for worker in self._idle if not self._give_work(worker)]
                self._take_results()
        except Exception as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _request_worker(self) -> None:
        worker = _WorkerHandle(self._num_started, self._start_worker(self._num_started))
        self._num_started += 1
        self._workers[worker.number] = worker
        self._tasks[worker.actor.describe.remote()] = _Task(worker, "start")

    def _give_work(self, worker: _WorkerHandle) -> bool:
        """Give an idle worker a task; return whether there was one. Matches stay with the worker
        that has compiled them."""
        is_playing = any(task.kind == "match" for task in self._tasks.values())
        may_evaluate = self._evaluator in (None, worker.number)
        if self._match is not None and may_evaluate and not is_playing:
            self._evaluator = worker.number
            self._tasks[worker.actor.match.remote(*self._match)] = _Task(worker, "match")
            return True
        if self._orders is None or self._waiting >= self._max_waiting:
            return False
        self._tasks[worker.actor.play.remote(*self._orders)] = _Task(worker, "play")
        return True

    def _take_results(self) -> None:
        if not self._tasks:
            self._closing.wait(_WAIT_SECONDS)
            return
        ready, _ = ray.wait(list(self._tasks), num_returns=1, timeout=_WAIT_SECONDS)
        for reference in ready:
            task = self._tasks.pop(reference)
            try:
                result = ray.get(reference)
            except (RayTaskError, RuntimeEnvSetupError):
                # an error of the program or of its installation: other workers would fail, too
                raise
            except RayError as error:
                if isinstance(error, RayActorError) and error.actor_init_failed:
                    raise
                self._replace_worker(task, error)
            else:
                self._idle.append(task.worker)
                self._accept(task, result)

    def _accept(self, task: _Task, result: Any) -> None:
        with self._changed:
            if task.kind == "start":
                task.worker.place = result
                self._messages.append(f"worker {task.worker.number} is ready: {result}")
            elif task.kind == "match":
                self._result, self._match = result, None
            else:
                self._lost_in_a_row = 0
                if len(result.length):
                    self._games.append(result)
                    self._waiting += len(result.action)
            self._changed.notify_all()

    def _replace_worker(self, task: _Task, error: RayError) -> None:
        """Remove a worker and request a new one."""
        worker = self._workers.pop(task.worker.number)
        _kill(worker)
        if self._evaluator == worker.number:
            self._evaluator = None
        with self._changed:
            self._messages.append(
                f"worker {worker.number} was lost with its unfinished games "
                f"({worker.place or 'before it was ready'}); another one is requested"
            )
        self._lost_in_a_row += 1
        if self._lost_in_a_row > _LOST_IN_A_ROW * self._size:
            raise ValueError(
                f"{self._lost_in_a_row} workers in a row were lost before any game arrived; the "
                f"last: {last_line(error)}"
            )


def last_line(error: BaseException) -> str:
    """Return an error as one line: the last line of its text, where Ray puts the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _kill(worker: _WorkerHandle) -> None:
    with contextlib.suppress(RayError, ValueError):  # it may be gone already
        ray.kill(worker.actor)
