"""The arguments of `azero tpu`. No heavy imports here, because every start of the command line
reads it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from azero.config import check_range
from azero.train.arguments import Overlays


@dataclass(frozen=True)
class Place:
    """Where a machine is."""

    zone: str | None = None
    """Zone, such as us-west4-a; default gcloud's own (gcloud config set compute/zone ZONE)."""
    project: str | None = None
    """Project that is billed; default gcloud's own (gcloud config set project PROJECT)."""
    dry_run: bool = False
    """Print the commands instead of running them."""


@dataclass(frozen=True)
class Hardware:
    """The requested machine."""

    accelerator: str
    """Type and size, as gcloud names them: v5litepod-1, v5litepod-8, v5litepod-64, v6e-8, v5p-8,
    v4-8 ..."""
    runtime_version: str | None = None
    """The machine's system image; default the one for JAX on this type."""
    spot: bool = False
    """Use a cheaper machine that may be preempted at any time (watch then requests another and
    continues)."""
    valid_until: str | None = None
    """Cancel the request after waiting this long, such as 6h; default never."""


@dataclass(frozen=True)
class Storage:
    """Storage that outlives the machine, at most one of the two; mounted as /mnt/azero."""

    disk: str | None = None
    """A disk of the same zone, attached to a machine of one host."""
    device_name: str | None = None
    """The disk's name on the machine, /dev/disk/by-id/google-NAME; default the disk's own name, or
    persistent-disk-1, which Cloud TPU gives the only data disk."""
    format_disk: bool = False
    """Make a file system on the disk if it is blank. A disk with any contents is never
    formatted."""
    bucket: str | None = None
    """A bucket of Cloud Storage, without gs://; unlike a disk, several hosts can share it."""


@dataclass(frozen=True)
class Job:
    """The experiment that runs on the machine."""

    experiment: Positional[str]
    """The experiment, such as go9 (docs/training.md lists them)."""
    flags: Positional[tuple[str, ...]] = ()
    """Flags of the experiment, after two dashes: -- --search.num-simulations 64 --run.seed 3."""
    config: Overlays = ()
    """Overlay, a file on this machine (see configs/); its text is copied. Of several, later ones
    win."""
    workdir: str | None = None
    """Working directory on the machine; default /mnt/azero/EXPERIMENT."""


@dataclass(frozen=True)
class CreateRequest:
    """Request a machine through the queue, and wait until it is ready. Ctrl-C ends the waiting, not
    the request."""

    name: Positional[str]
    """Name of the machine and of its request."""
    hardware: Annotated[Hardware, tyro.conf.arg(name="")]
    disk: str | None = None
    """A disk of the same zone to attach for reading and writing, which outlives the machine
    (machines of one host)."""
    poll_seconds: float = 30.0
    """Seconds between two checks of the queue."""
    place: Annotated[Place, tyro.conf.arg(name="")] = Place()

    def __post_init__(self) -> None:
        check_range(self, "--", "poll_seconds", 0, 86_400, above=True)


@dataclass(frozen=True)
class SetupRequest:
    """Copy the code to all workers of a machine, mount the storage and install Python 3.12, JAX and
    azero there. May be repeated."""

    name: Positional[str]
    """Name of the machine."""
    source: Path | None = None
    """Checkout of azero to copy; default the one that this command runs from."""
    storage: Annotated[Storage, tyro.conf.arg(name="")] = Storage()
    place: Annotated[Place, tyro.conf.arg(name="")] = Place()


@dataclass(frozen=True)
class LaunchRequest:
    """Start or continue an experiment on all workers, in the background; it continues when
    the connection ends."""

    name: Positional[str]
    """Name of the machine."""
    job: Annotated[Job, tyro.conf.arg(name="")]
    place: Annotated[Place, tyro.conf.arg(name="")] = Place()


@dataclass(frozen=True)
class WatchRequest:
    """Run an experiment to its end: create, set up and launch what is missing, again after every
    preemption, until the run is finished."""

    name: Positional[str]
    """Name of the machine and of its request."""
    job: Annotated[Job, tyro.conf.arg(name="")]
    hardware: Annotated[Hardware, tyro.conf.arg(name="")]
    storage: Annotated[Storage, tyro.conf.arg(name="")]
    source: Path | None = None
    """Checkout of azero to copy; default the one that this command runs from."""
    delete_when_done: bool = False
    """Delete the machine when the run is finished; the storage stays."""
    poll_seconds: float = 60.0
    """Seconds between two checks of the machine."""
    place: Annotated[Place, tyro.conf.arg(name="")] = Place()

    def __post_init__(self) -> None:
        check_range(self, "--", "poll_seconds", 0, 86_400, above=True)


@dataclass(frozen=True)
class LogsRequest:
    """Show what the experiment prints."""

    name: Positional[str]
    """Name of the machine."""
    worker: int = 0
    """Which worker; 0 is the lead host."""
    lines: int = 100
    """Number of earlier lines to show first."""
    follow: bool = True
    """Continue until Ctrl-C."""
    place: Annotated[Place, tyro.conf.arg(name="")] = Place()


@dataclass(frozen=True)
class DeleteRequest:
    """Delete a machine and its request, which ends its cost. Disks and buckets remain, and so does
    their cost."""

    name: Positional[str]
    """Name of the machine."""
    yes: bool = False
    """Do not ask."""
    place: Annotated[Place, tyro.conf.arg(name="")] = Place()
