"""Watching a run on machines that may be preempted at any time."""

import dataclasses
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from rich.console import Console

from azero.cloud import commands
from azero.cloud.gcloud import CloudError, Gcloud, NotFoundError
from azero.cloud.requests import Place
from azero.cloud.scripts import STATUS_MARK
from azero.console.progress import working
from azero.console.tables import format_duration
from azero.distributed import EXIT_INTERRUPTED

MOST_FAILURES = 5
"""Failed requests or connections in a row before watching ends with an error."""
LONGEST_PAUSE = 15 * 60.0
"""Seconds; the pause between two failing requests doubles up to this."""
KILLED_BY_SIGTERM = 128 + signal.SIGTERM
"""Exit status of a job that SIGTERM ended before our handler was installed, as shells have it."""
LOST_STATES = ("SUSPENDED", "PREEMPTED", "TERMINATED", "STOPPED")
"""States of a request or a machine in which the machine is lost: a preempted spot machine cannot be
started again."""


class Do(Enum):
    """The next action."""

    CREATE = "create"
    WAIT = "wait"
    RECREATE = "recreate"
    RETRY = "retry"
    LAUNCH = "launch"
    STOP = "stop"
    DONE = "done"


@dataclass(frozen=True)
class SeenState:
    """The result of one check of a machine."""

    queue: str | None
    """State of the request; None without one."""
    reason: str = ""
    """Why the request failed."""
    machine: str | None = None
    """State of the machine; None before there is one."""
    workers: tuple[str, ...] = ()
    """Each worker's status of the job, see `azero.cloud.scripts.status`; empty if none could be
    reached."""

    def __str__(self) -> str:
        """The state in one line."""
        if self.queue is None:
            return "no machine"
        if self.queue != "ACTIVE" or not self.workers:
            return self.machine if self.queue == "ACTIVE" and self.machine else self.queue
        count = len(self.workers)
        return f"{count} workers, {self.workers[0]}" if count > 1 else self.workers[0]


def decide(seen: SeenState, launched: bool) -> Do:
    """Return the next action; `launched` is whether this watch has started the job on this machine,
    so that its exit status matters."""
    if seen.queue is None:
        return Do.CREATE
    if seen.queue == "FAILED":
        return Do.RETRY
    if seen.queue in LOST_STATES or seen.machine in LOST_STATES:
        return Do.RECREATE
    is_ready = (seen.queue, seen.machine) == ("ACTIVE", "READY") and bool(seen.workers)
    if not is_ready or any(worker.startswith("running") for worker in seen.workers):
        return Do.WAIT
    if not launched:
        return Do.LAUNCH
    if set(seen.workers) == {"ended 0"}:
        return Do.DONE
    return Do.STOP if _failures(seen) else Do.LAUNCH


def _failures(seen: SeenState) -> list[int]:
    """Return the exit statuses of workers that need the user. Elsewhere the same command continues:
    the job was saved and stopped, ended by SIGTERM while Python was starting, cut off, or is not
    there at all (a new disk)."""
    ended = [worker for worker in seen.workers if worker.startswith("ended ")]
    statuses = [int(worker.removeprefix("ended ")) for worker in ended]
    return [code for code in statuses if code not in (0, EXIT_INTERRUPTED, KILLED_BY_SIGTERM)]


def get_queue_state(gcloud: Gcloud, name: str, place: Place) -> SeenState:
    """Return the state of the request.

    Raises:
      CloudError: gcloud cannot tell.
    """
    try:
        answer = gcloud.ask(commands.describe_request(name, place))
    except NotFoundError:
        return SeenState(None)
    state, _, reason = " ".join(answer).partition("\t")  # a reason may have several lines
    return SeenState(state, reason.strip())


def get_state(gcloud: Gcloud, name: str, place: Place) -> SeenState:
    """Return the state of the request, the machine and its workers.

    Raises:
      CloudError: gcloud cannot tell; a machine that cannot be reached is not an error, because it
        may be starting or ending.
    """
    request = get_queue_state(gcloud, name, place)
    if request.queue != "ACTIVE":
        return request
    try:
        machine = "".join(gcloud.ask(commands.describe_machine(name, place))).strip()
    except NotFoundError:
        machine = "TERMINATED"
    if machine != "READY":
        return dataclasses.replace(request, machine=machine)
    try:
        output = gcloud.ask(commands.status(name, place))
    except CloudError as error:
        gcloud.console.print(f"{error}", style="yellow")
        output = []
    states = [line.removeprefix(STATUS_MARK) for line in output if line.startswith(STATUS_MARK)]
    workers = tuple(state.strip() for state in states)
    return dataclasses.replace(request, machine=machine, workers=workers)


def wait_until_active(gcloud: Gcloud, name: str, place: Place, poll_seconds: float) -> None:
    """Wait in the queue until the machine is ready, printing every change. A failed check is
    repeated, since a network error must not end a wait of hours.

    Raises:
      CloudError: the request failed, or is gone, or checks fail one after another.
    """
    unanswered = 0
    while True:
        try:
            seen = get_queue_state(gcloud, name, place)
        except CloudError as error:
            unanswered += 1
            if unanswered >= MOST_FAILURES:
                raise CloudError(
                    f"{error} ({unanswered} times in a row); the request stays in the queue and "
                    f"becomes a machine that costs money: azero tpu delete {name} cancels it"
                ) from error
            gcloud.console.print(f"{error}", style="yellow")
            _pause(gcloud.console, f"{name}: status unknown", poll_seconds)
            continue
        unanswered = 0
        if seen.queue == "ACTIVE":
            gcloud.console.print(f"{name} is ready")
            return
        if seen.queue is None or seen.queue == "FAILED" or seen.queue in LOST_STATES:
            state = f"{seen.queue or 'it was deleted'} {seen.reason}".rstrip()
            raise CloudError(
                f"the request for {name} ended: {state}; delete it (azero tpu delete {name}) and "
                "create it again"
            )
        _pause(gcloud.console, f"{name}: {seen.queue}", poll_seconds)


@dataclass
class Watch:
    """Watches a run until it is finished."""

    gcloud: Gcloud
    name: str
    place: Place
    poll_seconds: float
    create: Callable[[], None]
    """Requests the machine."""
    start: Callable[[], None]
    """Installs and launches."""
    launched: bool = False
    failures: int = 0
    """Requests and launches that failed in a row."""
    began: bool = False
    """Whether there has been a request; before, an error is a mistake of the user."""
    unanswered: int | None = None
    """Checks that failed in a row; None before the first success."""

    def run(self) -> int:
        """Watch until the run is finished (0) or needs the user (the job's exit status).

        Raises:
          CloudError: gcloud cannot do what is needed.
        """
        while True:
            seen = self._check_state()
            if seen is None:
                continue
            self.began = self.began or seen.queue is not None
            action = decide(seen, self.launched)
            if action in (Do.DONE, Do.STOP):
                return self._conclude(seen)
            self._act(action, seen)

    def _check_state(self) -> SeenState | None:
        """Return the current state; None after a single failed request, since a network error must
        not end a watch of days."""
        try:
            seen = get_state(self.gcloud, self.name, self.place)
        except CloudError as error:
            if self.unanswered is None or self.unanswered + 1 >= MOST_FAILURES:
                raise
            self.unanswered += 1
            self._say(f"{error}")
            _pause(self.gcloud.console, f"{self.name}: status unknown", self.poll_seconds)
            return None
        self.unanswered = 0
        return seen

    def _act(self, action: Do, seen: SeenState) -> None:
        match action:
            case Do.CREATE if not self.began:
                self.create()
            case Do.CREATE:
                self._new_machine()
            case Do.RECREATE:
                self._say(f"{self.name} was preempted ({seen}); requesting another one")
                if self._try(self._delete):
                    self._new_machine()
            case Do.RETRY:
                self._count_failure(f"the request failed: {seen.reason or 'no reason was given'}")
                if self._try(self._delete):
                    seconds = min(LONGEST_PAUSE, self.poll_seconds * 2**self.failures)
                    _pause(self.gcloud.console, "waiting before the next request", seconds)
                    self._new_machine()
            case Do.LAUNCH:
                if self._try(self.start):
                    self.launched, self.failures = True, 0
            case _:
                self.failures = 0 if seen.workers else self.failures
                _pause(self.gcloud.console, f"{self.name}: {seen}", self.poll_seconds)

    def _new_machine(self) -> None:
        self.launched = False
        self._try(self.create)

    def _delete(self) -> None:
        self.gcloud.do(commands.delete(self.name, self.place))

    def _try(self, act: Callable[[], None]) -> bool:
        """Do something and return whether that succeeded. It may fail on a machine that is being
        preempted or for want of a network; the next check shows what is left to do.

        Raises:
          CloudError: it is one failure too many in a row.
        """
        try:
            act()
        except CloudError as error:
            self._count_failure(f"{error}")
            text = f"{self.name}: waiting before the next try"
            _pause(self.gcloud.console, text, self.poll_seconds)
            return False
        return True

    def _count_failure(self, text: str) -> None:
        self.failures += 1
        if self.failures >= MOST_FAILURES:
            raise CloudError(f"{text} ({self.failures} times in a row)")
        self._say(text)

    def _conclude(self, seen: SeenState) -> int:
        """Print how the run ended and return its status."""
        status = max(_failures(seen), default=0)
        if status:
            self._say(
                f"the run on {self.name} ended with status {status}; these are its last "
                f"lines, azero tpu logs {self.name} shows more"
            )
            self.gcloud.do(commands.logs(self.name, "all", 20, follow=False, place=self.place))
        else:
            self._say(f"the run on {self.name} is finished")
        return status

    def _say(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}"
        self.gcloud.console.print(line, soft_wrap=True)


def _pause(console: Console, text: str, seconds: float) -> None:
    """Wait and print the reason: permanently on a terminal, once in a log."""
    if console.is_terminal:
        with working(text, console):
            time.sleep(seconds)
    else:
        following = f"next check in {format_duration(seconds)}"
        line = f"{time.strftime('%H:%M:%S')} {text}; {following}"
        console.print(line, soft_wrap=True)
        time.sleep(seconds)
