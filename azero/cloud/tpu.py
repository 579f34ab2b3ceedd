"""`azero tpu`: what each of its commands does."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from azero.cloud import commands
from azero.cloud.gcloud import CloudError, Command, Gcloud
from azero.cloud.requests import (
    CreateRequest,
    DeleteRequest,
    LaunchRequest,
    LogsRequest,
    SetupRequest,
    WatchRequest,
)
from azero.cloud.scripts import RUNS
from azero.cloud.watch import Watch, wait_until_active
from azero.console.terminal import make_console

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
Request = CreateRequest | SetupRequest | LaunchRequest | WatchRequest | LogsRequest | DeleteRequest


def run_tpu(request: Request) -> int:
    """Do what `request` asks for and return the exit status.

    Raises:
      ValueError: the settings do not fit, or gcloud refuses; the message says what to do.
    """
    commands.check_name(request.name)
    console = make_console()
    gcloud = Gcloud(console, request.place.dry_run)
    match request:
        case CreateRequest():
            return _create(gcloud, request)
        case SetupRequest():
            _do_all(gcloud, _setup(request))
        case LaunchRequest():
            gcloud.do(commands.launch(request.name, request.job, request.place))
        case WatchRequest():
            return _watch(gcloud, request)
        case LogsRequest():
            shown = (request.worker, request.lines, request.follow)
            gcloud.run_interactively(commands.logs(request.name, *shown, request.place))
        case DeleteRequest():
            return _delete(gcloud, request)
    return 0


def _create(gcloud: Gcloud, request: CreateRequest) -> int:
    gcloud.do(commands.create(request.name, request.hardware, request.disk, request.place))
    if gcloud.dry_run:
        gcloud.do(commands.describe_request(request.name, request.place))
        return 0
    try:
        wait_until_active(gcloud, request.name, request.place, request.poll_seconds)
    except KeyboardInterrupt:
        gcloud.console.print(
            f"the request stays in the queue; azero tpu delete {request.name} cancels it"
        )
        return INTERRUPTED
    return 0


def _setup(request: SetupRequest | WatchRequest) -> list[Command]:
    """Return the commands that install everything on a machine."""
    name, place = request.name, request.place
    archive = Path(tempfile.gettempdir()) / f"azero-{name}.tar.gz"
    return [
        commands.pack(request.source, archive),
        commands.copy(archive, name, place),
        commands.install(name, request.storage, place),
    ]


def _watch(gcloud: Gcloud, request: WatchRequest) -> int:
    name, place, storage = request.name, request.place, request.storage
    if request.hardware.spot and not (storage.disk or storage.bucket):
        raise ValueError(
            "watch with --spot needs --disk or --bucket: a spot machine's own disk is lost with "
            "it, and every machine would start over"
        )
    workdir = commands.check_job(request.job)
    in_storage = workdir.is_relative_to(RUNS)
    if request.hardware.spot and not in_storage:
        raise ValueError(
            f"watch with --spot needs a --workdir in {RUNS}, where the storage is mounted: "
            f"{workdir} is lost with the machine, and every machine would start over"
        )
    if commands.has_several_hosts(request.hardware) and not storage.bucket and in_storage:
        raise ValueError(
            f"{request.hardware.accelerator} has several hosts, which need one working directory: "
            "give --bucket"
        )
    creating = commands.create(name, request.hardware, storage.disk, place)
    starting = [*_setup(request), commands.launch(name, request.job, place)]
    create, start = partial(_do_all, gcloud, [creating]), partial(_do_all, gcloud, starting)
    if gcloud.dry_run:
        _show_watch(gcloud, request, create, start)
        return 0
    watch = Watch(gcloud, name, place, request.poll_seconds, create, start)
    try:
        status = watch.run()
    except CloudError as error:
        if not watch.began:
            raise
        left = f"what is left of {name} costs money until azero tpu delete {name}"
        raise CloudError(f"{error}; {left}") from error
    except KeyboardInterrupt:
        gcloud.console.print(
            "the machine and the run continue; the same command watches again, azero tpu delete "
            f"{name} ends the cost"
        )
        return INTERRUPTED
    if status == 0 and request.delete_when_done:
        gcloud.do(commands.delete(name, place))
    else:
        gcloud.console.print(f"{name} still costs money; azero tpu delete {name} deletes it")
    return status


def _show_watch(
    gcloud: Gcloud, request: WatchRequest, create: Callable[[], None], start: Callable[[], None]
) -> None:
    """Print the commands of a watch, and when each of them runs."""
    name, place = request.name, request.place
    gcloud.console.print(
        f"# 1. every {request.poll_seconds:g} s: check the request, the machine and the run"
    )
    for describe in (commands.describe_request, commands.describe_machine, commands.status):
        gcloud.do(describe(name, place))
    gcloud.console.print("\n# 2. if there is no machine")
    create()
    gcloud.console.print("\n# 3. if the run has stopped, and on every new machine")
    start()
    at_end = ", and when the run is finished" if request.delete_when_done else ""
    gcloud.console.print(f"\n# 4. after a preemption, before 2{at_end}")
    gcloud.do(commands.delete(name, place))


def _do_all(gcloud: Gcloud, all_commands: Sequence[Command]) -> None:
    for command in all_commands:
        gcloud.do(command)


def _delete(gcloud: Gcloud, request: DeleteRequest) -> int:
    if not (request.yes or gcloud.dry_run):
        if not sys.stdin.isatty():
            raise CloudError(
                f"deleting {request.name} needs an answer, and there is no terminal; --yes deletes "
                "without asking"
            )
        answer = input(f"delete the machine {request.name} and its own disk? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print("nothing was deleted")
            return 1
    gcloud.do(commands.delete(request.name, request.place))
    return 0
