"""Bash scripts that run on the machines."""

import shlex
from collections.abc import Sequence

from azero.cloud.requests import Storage

CODE_ARCHIVE = "azero.tar.gz"
"""Archive of the code, in the home directory."""
RUNS = "/mnt/azero"
"""Where storage is mounted; without any, a directory of the boot disk, which is lost with the
machine."""
STATUS_MARK = "azero-status:"
"""Prefix of the line in which a worker reports the job's status."""
GCSFUSE = "2.7.0"
"""A release of gcsfuse with a Debian package; a machine that has gcsfuse keeps its own."""

BY_ID = "/dev/disk/by-id"
"""Where Google's images name every attached disk google-DEVICE_NAME (Compute Engine documentation,
"Disk symlinks")."""
FIRST_DEVICE = "persistent-disk-1"
"""Device name of the only data disk where it was attached without one, as Cloud TPU does: its API
takes no device name (AttachedDisk, v2)."""
BLANK_BYTES = 16 << 20
"""A new disk reads as zeros. Partition tables, file systems, RAID, LVM and LUKS all write into the
first 16 MiB."""

_BUCKET = f"""\
if ! mountpoint -q {RUNS}; then
  command -v gcsfuse > /dev/null || {{
    curl -fsSLo /tmp/gcsfuse.deb https://github.com/GoogleCloudPlatform/gcsfuse/releases/download/v{GCSFUSE}/gcsfuse_{GCSFUSE}_amd64.deb
    # The updates that a new machine installs at first lock the packages for minutes.
    sudo apt-get -y -qq -o DPkg::Lock::Timeout=600 install /tmp/gcsfuse.deb > /dev/null
  }}
  # A checkpoint becomes valid by renaming its directory.
  gcsfuse --implicit-dirs --rename-dir-limit 1000000 BUCKET {RUNS} > /dev/null
fi
"""


def setup(storage: Storage) -> str:
    """Return the script that unpacks the code, mounts `storage` and installs everything. The
    images' own Python 3.10 is too old for JAX, so uv brings 3.12."""
    mount = (
        _mount_disk(storage)
        if storage.disk
        else _BUCKET.replace("BUCKET", shlex.quote(storage.bucket))
        if storage.bucket
        else ""
    )
    return f"""\
set -eu
sudo mkdir -p {RUNS}
mountpoint -q {RUNS} || sudo chown "$(id -u):$(id -g)" {RUNS}
{mount}mkdir -p ~/azero ~/azero-run
{"touch ~/azero-run/has-storage" if mount else ""}
tar -xzf ~/{CODE_ARCHIVE} -C ~/azero
python3 -m pip install --quiet --user uv
~/.local/bin/uv venv --quiet --allow-existing --python 3.12 ~/azero/.venv
~/.local/bin/uv pip install --quiet --python ~/azero/.venv/bin/python --constraint ~/azero/constraints.txt --editable ~/azero'[tpu]'
echo "$(hostname): $(~/azero/.venv/bin/azero --version) is installed"
"""


def launch(experiment: str, flags: Sequence[str], workdir: str, overlays: Sequence[str]) -> str:
    """Return the script that starts an experiment in a session of its own, so that it outlives the
    connection.

    It refuses a machine whose storage is not mounted, as after a restart: the run would start over
    on the boot disk, and be hidden once the storage is mounted over it.

    A lock held by the job's processes shows whether it is running; the file `status` says how it
    ended. A running job is left alone. The job waits for the lock, because a check shares it for a
    moment.
    """
    arguments = ["--workdir", workdir, *flags]
    files = {f"overlay-{number}.toml": text for number, text in enumerate(overlays, 1)}
    config = "".join(f'--config "$HOME/azero-run/{name}" ' for name in files)
    overlay_files = "".join(_file(name, text) for name, text in files.items())
    job = f"""\
cd ~/azero
export PYTHONUNBUFFERED=1 JAX_COMPILATION_CACHE_DIR={RUNS}/.jax_cache
.venv/bin/python -m azero.experiments.{experiment} {config}{shlex.join(arguments)}
echo "ended $?" > ~/azero-run/status
"""
    return f"""\
set -eu
[ -x ~/azero/.venv/bin/python ] || {{ echo "ERROR: azero is not installed on $(hostname); azero tpu setup installs it" >&2; exit 1; }}
cd ~/azero-run
flock -ns lock true || {{ echo "$(hostname): a run is already in progress"; exit 0; }}
[ ! -e has-storage ] || mountpoint -q {RUNS} || {{
  problem="the storage is not mounted at {RUNS} of $(hostname), for example after a restart"
  echo "ERROR: $problem; repeat azero tpu setup with its --disk or --bucket" >&2
  exit 1
}}
{overlay_files}{_file("job.sh", job)}echo started > status
setsid nohup flock -w 10 lock bash job.sh >> log 2>&1 < /dev/null &
echo "$(hostname): started"
"""


def status() -> str:
    """Return the script by which a worker reports the state of the job in one line: absent,
    running, started (but not running: it was cut off), or ended N. A status file that a full disk
    left empty counts as cut off."""
    return f"""\
cd ~/azero-run 2> /dev/null && [ -e status ] || {{ echo "{STATUS_MARK} absent"; exit 0; }}
if flock -ns lock true
then state=$(cat status); echo "{STATUS_MARK} ${{state:-started}}"
else echo "{STATUS_MARK} running $(tail -n 1 log)"; fi
"""


def logs(lines: int, follow: bool) -> str:
    """Return the script that shows the job's last lines, and the following ones as they come."""
    return f"tail -n {lines} {'-F ' if follow else ''}~/azero-run/log"


def _file(name: str, text: str) -> str:
    """Return the lines of a script that write `text` into a file as it is."""
    return f"cat > {name} <<'END_OF_FILE'\n{text.rstrip()}\nEND_OF_FILE\n"


def _mount_disk(storage: Storage) -> str:
    """Return the script that mounts the disk of `storage`.

    It formats nothing that is not asked for, and nothing that is not blank: by blkid, by wipefs
    (blkid's status 2 also means that it could not read) and by its first bytes.
    """
    names = [storage.device_name] if storage.device_name else [storage.disk or "", FIRST_DEVICE]
    links = " ".join(shlex.quote(f"{BY_ID}/google-{name}") for name in names)
    format_it = f"""\
    status=0; signatures=$(sudo wipefs --noheadings --no-act "$disk") || status=$?
    [ "$status" = 0 ] && [ -z "$signatures" ] || fail "wipefs finds something on $disk, or cannot read it ($signatures, status $status); it is not formatted"
    sudo cmp --quiet --bytes={BLANK_BYTES} "$disk" /dev/zero || fail "$disk is not blank: its first {BLANK_BYTES >> 20} MiB are not zeros; it is not formatted"
    sudo mkfs.ext4 -q "$disk"
"""
    refuse = (
        f'    fail "$disk has no file system; azero tpu setup --disk '
        f'{shlex.quote(storage.disk or "")} --format-disk makes one if it is blank"\n'
    )
    return f"""\
fail() {{ echo "ERROR: $1" >&2; exit 1; }}
if ! mountpoint -q {RUNS}; then
  disk=""
  for link in {links}; do
    [ -n "$disk" ] || [ ! -e "$link" ] || disk=$(readlink -f "$link")
  done
  [ -n "$disk" ] || fail "no disk is attached as {" or ".join(names)} ($(ls {BY_ID} 2> /dev/null | grep ^google- | tr '\\n' ' ')); create the machine with --disk"
  [ "$(lsblk -no NAME "$disk" | wc -l)" = 1 ] || fail "$disk has partitions, so azero did not format it; name another one with --device-name"
  status=0; found=$(sudo blkid --probe "$disk") || status=$?
  if [ "$status" = 2 ] && [ -z "$found" ]; then
{format_it if storage.format_disk else refuse}  elif [ "$status" != 0 ]; then
    fail "blkid cannot tell what is on $disk (status $status); nothing is formatted or mounted"
  fi
  sudo mount -o discard,defaults "$disk" {RUNS} || fail "$disk cannot be mounted ($found); nothing was formatted"
  sudo chown "$(id -u):$(id -g)" {RUNS}
fi
"""
