"""Requests as gcloud commands (gcloud compute tpus queued-resources and tpu-vm)."""

import re
from pathlib import Path
from typing import Literal

import azero
from azero.cloud import scripts
from azero.cloud.gcloud import Command
from azero.cloud.requests import Hardware, Job, Place, Storage
from azero.config import find_overlay
from azero.experiment import load
from azero.train.arguments import check_source, find_flags, parse_arguments

RUNTIMES = {
    "v2": "tpu-ubuntu2204-base",
    "v3": "tpu-ubuntu2204-base",
    "v4": "tpu-ubuntu2204-base",
    "v5litepod": "v2-alpha-tpuv5-lite",
    "v5p": "v2-alpha-tpuv5",
    "v6e": "v2-alpha-tpuv6e",
}
"""System image for JAX on each type (Cloud TPU documentation, "TPU VM images")."""
ONE_HOST = 8
"""Largest size that is one host, whether a type counts chips (v5e, v6e) or cores (v2 to v4,
v5p)."""
COPIED = ("pyproject.toml", "README.md", "LICENSE", "constraints.txt", "azero", "configs")
"""Files of a checkout that are copied to the machines, for installing and running."""
KEEP_ALIVE = ("-oConnectTimeout=20", "-oServerAliveInterval=15")
"""Options of ssh and scp, with which they end after 45 s without an answer (ssh_config(5));
otherwise they would wait for hours for a machine that is gone."""
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
"""Valid names of a machine on Google Cloud."""


def check_name(name: str) -> None:
    """Raise ValueError if `name` is not a valid name of a machine."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid machine name: lower-case letters, digits and dashes, a "
            "letter first, no dash at the end"
        )


def create(name: str, hardware: Hardware, disk: str | None, place: Place) -> Command:
    """Return the command that asks for a machine.

    Raises:
      ValueError: the settings do not fit each other.
    """
    check_name(name)
    check_storage(Storage(disk=disk))
    kind, _ = _kind_and_size(hardware.accelerator)
    runtime = hardware.runtime_version or RUNTIMES.get(kind)
    if runtime is None:
        raise ValueError(
            f"--accelerator {hardware.accelerator}: the types with a known image are "
            f"{', '.join(RUNTIMES)}; for another type give --runtime-version"
        )
    options = [
        f"--node-id={name}",
        f"--accelerator-type={hardware.accelerator}",
        f"--runtime-version={runtime}",
    ]
    options += ["--spot"] if hardware.spot else []
    options += [f"--valid-until-duration={hardware.valid_until}"] if hardware.valid_until else []
    if disk is not None:
        if has_several_hosts(hardware):
            raise ValueError(
                f"--disk {disk}: {hardware.accelerator} has several hosts, which cannot "
                f"write to one disk; use --bucket"
            )
        if not (place.project and place.zone):
            raise ValueError(
                f"--disk {disk}: give --project and --zone too, which are part of the disk's full "
                "name"
            )
        source = f"projects/{place.project}/zones/{place.zone}/disks/{disk}"
        options.append(f"--data-disk=source={source},mode=read-write")
    return _queue(f"asking for {name}", "create", name, place, *options)


def has_several_hosts(hardware: Hardware) -> bool:
    """Return whether a machine is a slice of several hosts.

    Raises:
      ValueError: the accelerator is not a type and a size.
    """
    return _kind_and_size(hardware.accelerator)[1] > ONE_HOST


def _kind_and_size(accelerator: str) -> tuple[str, int]:
    form = re.fullmatch(r"(v\d+[a-z]*)-([1-9]\d*)", accelerator)
    if form is None:
        raise ValueError(f"--accelerator {accelerator}: a type and a size as in v5litepod-8")
    if form[1] in ("v5e", "v5lite"):
        raise ValueError(
            f"--accelerator {accelerator}: gcloud calls this type v5litepod, so v5litepod-{form[2]}"
        )
    return form[1], int(form[2])


def describe_request(name: str, place: Place) -> Command:
    """Return the command that asks for the state of a request, and for the reason if it failed."""
    fields = "--format=value(state.state,state.failedData.error.message)"
    return _queue(f"looking for {name} in the queue", "describe", name, place, fields)


def describe_machine(name: str, place: Place) -> Command:
    """Return the command that asks for the state of a machine."""
    words = ("tpu-vm", "describe", name)
    return _gcloud(f"looking at {name}", words, place, "--format=value(state)")


def delete(name: str, place: Place) -> Command:
    """Return the command that deletes a machine and its request."""
    return _queue(f"deleting {name}", "delete", name, place, "--force", "--quiet")


def pack(source: Path | None, archive: Path) -> Command:
    """Return the command that packs the code into `archive`.

    Raises:
      ValueError: there is no checkout to copy.
    """
    root = Path(azero.__file__).parents[1] if source is None else source
    missing = [name for name in COPIED if not (root / name).exists()]
    if missing:
        raise ValueError(
            f"{root} is not a checkout of azero ({missing[0]} is missing); give one with --source"
        )
    options = ("--create", "--gzip", "--exclude=__pycache__")
    places = (f"--file={archive}", f"--directory={root}")
    return Command("packing the code", ("tar", *options, *places, *COPIED))


def copy(archive: Path, name: str, place: Place) -> Command:
    """Return the command that copies the packed code to all workers."""
    words = ("tpu-vm", "scp", str(archive), f"{name}:{scripts.CODE_ARCHIVE}")
    options = [f"--scp-flag={option}" for option in KEEP_ALIVE]
    return _gcloud(f"copying the code to {name}", words, place, "--worker=all", "--quiet", *options)


def install(name: str, storage: Storage, place: Place) -> Command:
    """Return the command that installs everything on all workers.

    Raises:
      ValueError: both a disk and a bucket are given, a disk's settings without a disk, or a path
        instead of a name.
    """
    check_storage(storage)
    purpose = f"installing on {name} (slow the first time)"
    return _on_all(purpose, name, place, scripts.setup(storage))


def check_storage(storage: Storage) -> None:
    """Raise ValueError if the settings of `storage` do not fit each other, or a name is a path."""
    if storage.disk and storage.bucket:
        raise ValueError(
            f"--disk {storage.disk} --bucket {storage.bucket}: both would be mounted as "
            f"{scripts.RUNS}; give one"
        )
    if not storage.disk and (storage.device_name or storage.format_disk):
        raise ValueError("--device-name and --format-disk need a disk: give it with --disk")
    for flag, text in (("--disk", storage.disk), ("--device-name", storage.device_name)):
        if text and not NAME.fullmatch(text):
            raise ValueError(
                f"{flag} {text}: give only the disk's name, lower-case letters, digits and dashes, "
                "without /dev and folders"
            )
    if storage.bucket and not re.fullmatch(r"[a-z0-9][-_.a-z0-9]+", storage.bucket):
        raise ValueError(
            f"--bucket {storage.bucket}: give only the bucket's name, without gs:// and folders"
        )


def check_job(job: Job) -> Path:
    """Return the job's working directory; an error shows here, not on a machine that costs money.

    Raises:
      ValueError: the experiment, its flags or the overlay are wrong.
    """
    if overlays := find_flags(job.flags, "--config"):
        raise ValueError(
            f"--config {overlays[0]}: give it before the two dashes; its text is then copied to "
            "the machine"
        )
    flags = [*(f"--config={path}" for path in job.config), "--workdir", _workdir(job), *job.flags]
    experiment = load(job.experiment)
    arguments = parse_arguments(experiment, flags)
    check_source(experiment, arguments)
    assert arguments.workdir is not None
    return arguments.workdir


def _workdir(job: Job) -> str:
    return job.workdir or f"{scripts.RUNS}/{job.experiment}"


def launch(name: str, job: Job, place: Place) -> Command:
    """Return the command that starts the job on all workers.

    Raises:
      ValueError: the experiment, its flags or the overlay are wrong.
    """
    check_job(job)
    overlays = [find_overlay(path).read_text(encoding="utf-8") for path in job.config]
    script = scripts.launch(job.experiment, job.flags, _workdir(job), overlays)
    return _on_all(f"starting {job.experiment} on {name}", name, place, script)


def status(name: str, place: Place) -> Command:
    """Return the command that asks all workers for the state of the job."""
    return _on_all(f"asking {name} about the run", name, place, scripts.status())


def logs(
    name: str, worker: int | Literal["all"], lines: int, follow: bool, place: Place
) -> Command:
    """Return the command that shows what a worker's job prints, or what all of them do."""
    script = scripts.logs(lines, follow)
    return _ssh(f"the log of {name}", name, worker, place, script)


def _on_all(purpose: str, name: str, place: Place, script: str) -> Command:
    return _ssh(purpose, name, "all", place, script)


def _ssh(purpose: str, name: str, worker: int | str, place: Place, script: str) -> Command:
    flags = [f"--ssh-flag={option}" for option in KEEP_ALIVE]
    options = (f"--worker={worker}", f"--command={script}", "--quiet", *flags)
    return _gcloud(purpose, ("tpu-vm", "ssh", name), place, *options)


def _queue(purpose: str, verb: str, name: str, place: Place, *options: str) -> Command:
    return _gcloud(purpose, ("queued-resources", verb, name), place, *options)


def _gcloud(purpose: str, words: tuple[str, ...], place: Place, *options: str) -> Command:
    """Return a command of gcloud; a project or zone that is not named is gcloud's own."""
    named = {"project": place.project, "zone": place.zone}
    where = [f"--{flag}={value}" for flag, value in named.items() if value]
    return Command(purpose, ("gcloud", "compute", "tpus", *words, *where, *options))
