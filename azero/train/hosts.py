"""Checks that the processes of a run agree, and output by one of them."""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np

from azero import mesh as mesh_lib
from azero.console.standard_output import say
from azero.data.directory_lock import hold
from azero.data.files import missing_directories, remove_made
from azero.train.saving import has_begun

_SEEN_SECONDS = 15.0
"""A file written by one host is visible to the others within this time.

(NFS refreshes a directory every 3 to 60 s, a new one at once.)
"""


def check_shared(workdir: Path) -> None:
    """Check that all hosts see one working directory.

    Raises:
      ValueError: a host does not see what the lead has written there.
    """
    if jax.process_count() == 1:
        return
    token = workdir / f".shared-{mesh_lib.from_lead(secrets.token_hex(8))}"
    if mesh_lib.is_lead():
        token.touch()
    mesh_lib.min_of_processes(0)  # a barrier: the file exists before it is looked for
    end = time.monotonic() + _SEEN_SECONDS
    while not token.exists() and time.monotonic() < end:
        time.sleep(0.5)
    sees = mesh_lib.gather(np.asarray(token.exists()))
    if mesh_lib.is_lead():
        token.unlink(missing_ok=True)
    if not sees.all():
        blind = ", ".join(str(process) for process in np.flatnonzero(~sees))
        problem = f"process {blind} does not see what process 0 writes"
        shared = f"{workdir} is not the same directory on all hosts"
        raise ValueError(f"{shared}: {problem}; give a --workdir that all share")


@contextlib.contextmanager
def hold_workdir(workdir: Path) -> Iterator[None]:
    """Make the working directory and keep other runs out of it.

    Of several processes of one run the lead does so for all. A directory that was made here and in
    which no run has begun is removed after an error, with the parents that were made.

    Raises:
      ValueError: another run uses it.
      OSError: it cannot be made or written to.
    """
    made = missing_directories(workdir) if mesh_lib.is_lead() else []
    workdir.mkdir(parents=True, exist_ok=True)
    with hold(workdir) if mesh_lib.is_lead() else contextlib.nullcontext():
        try:
            yield
        except Exception:
            if made and not has_begun(workdir):
                remove_made(made)
            raise


def describe_devices() -> str:
    """Return number and kind of the devices, and the number of processes."""
    devices = jax.devices()
    spread = f" in {jax.process_count()} processes" if jax.process_count() > 1 else ""
    return f"{len(devices)} x {devices[0].device_kind}{spread}"


def note(text: str, show: Callable[[str], None]) -> None:
    """Show a note: on the lead with `show`, on other processes on standard error."""
    if mesh_lib.is_lead():
        show(text)
    else:
        say(f"process {jax.process_index()}: {text}")
