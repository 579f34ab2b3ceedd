"""Running gcloud: commands that are printed or run, and its errors as one line with advice."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from rich.console import Console
from rich.text import Text

from azero.console.progress import working
from azero.console.tables import format_duration

KEPT_LINES = 40
"""Last lines of a command's standard error that are searched for the reason of its failure;
gcloud's errors are at the end."""
ANSWER_SECONDS = 300.0
"""A query that takes longer counts as unanswered: ssh waits for hours for a machine that is
gone."""


@dataclass(frozen=True)
class Command:
    """A program with its arguments, and what it is for."""

    purpose: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        """The command as a line for a POSIX shell."""
        return shlex.join(self.arguments)


class CloudError(ValueError):
    """gcloud refused or failed. The message says what to do."""


class NotFoundError(CloudError):
    """There is no machine or request of that name."""


ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"do not currently have an active account|gcloud auth login|Reauthentication",
        "gcloud is not logged in: gcloud auth login",
    ),
    (
        r"property \[project\]|attribute \[project\]|core/project",
        "no project is chosen: --project PROJECT, or gcloud config set project PROJECT",
    ),
    (
        r"attribute \[zone\]|property \[zone\]|compute/zone",
        "no zone is chosen: --zone ZONE, or gcloud config set compute/zone ZONE",
    ),
    (
        r"SERVICE_DISABLED|has not been used in project|\[tpu\.googleapis\.com\] not enabled",
        "the project does not use Cloud TPU yet: gcloud services enable tpu.googleapis.com",
    ),
    (
        r"(?i)quota",
        "the project has no quota left for this type in this zone (spot machines have a separate "
        "one): request more at IAM & Admin > Quotas in the console, or use another type or zone",
    ),
    (
        r"(?i)no more capacity|stockout",
        "the zone has no such machine available at the moment: try another zone, --spot, or watch, "
        "which tries again",
    ),
    (
        r"(?i)accelerator.*not found in zone|accelerator type .* not found",
        "this zone does not have the type: gcloud compute tpus accelerator-types list --zone ZONE "
        "lists its types",
    ),
    (
        r"ALREADY_EXISTS|already exists",
        "that name is already in use: continue with azero tpu setup, or remove it with azero tpu "
        "delete",
    ),
    (
        r"PERMISSION_DENIED|does not have permission",
        "the account lacks permission in this project: it needs the role TPU Admin (and Service "
        "Account User)",
    ),
)
"""gcloud's message (a regular expression), and the advice; the first match counts."""


class Gcloud:
    """Runs commands, or prints them."""

    def __init__(self, console: Console, dry_run: bool = False) -> None:
        """Say where to write, and whether the commands are only shown.

        Raises:
          CloudError: gcloud is needed and not installed.
        """
        self.console = console
        self.dry_run = dry_run
        if not dry_run and shutil.which("gcloud") is None:
            raise CloudError(
                "gcloud is not installed: https://cloud.google.com/sdk/docs/install (the "
                "console's Cloud Shell has it); --dry-run works without it"
            )

    def do(self, command: Command) -> list[str]:
        """Run `command`, showing what it prints, and return its answer; in a dry run print the
        command itself.

        Raises:
          CloudError: it failed.
        """
        if self.dry_run:
            self.console.print(Text(f"# {command.purpose}\n{command}"), soft_wrap=True)
            return []
        with working(command.purpose, self.console):
            return self._run(command, shows=True)

    def ask(self, command: Command) -> list[str]:
        """Run `command` silently and return the lines that it prints, of all workers.

        Raises:
          CloudError: it failed, or did not end within `ANSWER_SECONDS`.
        """
        return self._run(command, shows=False)

    def run_interactively(self, command: Command) -> None:
        """Run `command` in the terminal until it ends or the user stops it; in a dry run print it.

        Raises:
          CloudError: it failed.
        """
        if self.dry_run:
            self.do(command)
            return
        process = subprocess.Popen(
            command.arguments, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        try:
            _, errors = process.communicate()
        except KeyboardInterrupt:
            process.wait()
            return
        if process.returncode:
            raise explain(command, errors.splitlines())

    def _run(self, command: Command, shows: bool) -> list[str]:
        """Run `command`; what it prints on standard error is only of interest when it is shown or
        when it fails. One that is not shown is a query, whose time is limited."""
        process = subprocess.Popen(
            command.arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"},
            start_new_session=not shows,  # so that it ends with the ssh that it started
        )
        assert process.stdout is not None and process.stderr is not None
        answers: list[str] = []
        errors: deque[str] = deque(maxlen=KEPT_LINES)

        def read(stream: IO[str], lines: list[str] | deque[str]) -> None:
            for line in stream:
                lines.append(line.rstrip())
                if shows:
                    self.console.print(Text(f"  {line.rstrip()}", style="dim"), soft_wrap=True)

        reader = threading.Thread(target=read, args=(process.stderr, errors), daemon=True)
        reader.start()
        is_late = threading.Event()
        with contextlib.nullcontext() if shows else _limit_time(process, is_late):
            read(process.stdout, answers)
            reader.join()
            process.wait()
        if is_late.is_set():
            raise CloudError(
                f"{command.purpose}: no answer within {format_duration(ANSWER_SECONDS)}"
            )
        if process.returncode:
            raise explain(command, [*answers, *errors])
        return answers


@contextlib.contextmanager
def _limit_time(process: subprocess.Popen[str], is_late: threading.Event) -> Iterator[None]:
    """End `process` and all that it started when its time is up, and then set `is_late`, or when
    this ends by an exception, such as Ctrl-C."""

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def end() -> None:
        is_late.set()
        kill()

    timer = threading.Timer(ANSWER_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except BaseException:
        kill()
        raise
    finally:
        timer.cancel()


def explain(command: Command, output: Sequence[str]) -> CloudError:
    """Return the error of a command that failed after printing `output`: what was tried, what to
    do, and the program's own words."""
    text = "\n".join(output)
    # The script's own message says more than the exit status of ssh after it.
    errors = [line for line in output if "ERROR" in line and "exited with return code" not in line]
    last = (errors or [line for line in output if line.strip()] or ["no reason given"])[-1]
    own = re.sub(r"^ERROR: (\([\w.-]+\) )?", "", last)
    is_missing = re.search(r"NOT_FOUND|was not found|(?i:could not fetch resource)", text)
    if is_missing and not re.search(r"(?i)accelerator", text):
        return NotFoundError(f"{command.purpose}: no such name in this zone and project ({own})")
    advice = next((advice for pattern, advice in ADVICE if re.search(pattern, text)), None)
    return CloudError(f"{command.purpose}: {own if advice is None else f'{advice} ({own})'}")
