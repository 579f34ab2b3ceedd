"""`azero checkpoint`: the checkpoints of a run, or the network of one as a file."""

from collections.abc import Mapping
from pathlib import Path

from azero.checkpoint import load_network
from azero.checkpoint.exported import write_exported
from azero.interop.leela import write_leela
from azero.interop.onnx_file import write_onnx
from azero.train.saving import print_checkpoints


def export_checkpoint(
    workdir: Path, targets: Mapping[str, Path | None], iteration: int | None, half: bool = False
) -> None:
    """Write the network of a checkpoint to every target, by format ("" is ours), and print the
    files; without a target print the list of checkpoints. `half` is that of `write_exported`.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: a format has no such network, or there is no run in `workdir`.
      StorageError: a file cannot be written.
    """
    if half and targets.get("") is None:
        raise ValueError("--half halves the file of --export; give a directory with --export")
    wanted = {kind: path for kind, path in targets.items() if path is not None}
    if not wanted:
        if iteration is not None:
            raise ValueError(
                "--iteration is the checkpoint to export; give a directory with --export"
            )
        print_checkpoints(workdir)
        return
    # once, so that all files have one network while the run goes on
    variables, found, config = load_network(workdir, iteration)
    if (directory := wanted.pop("", None)) is not None:
        print(write_exported(directory, variables, found, config, half))
    for kind, path in wanted.items():
        _WRITERS[kind](path, variables, config)
        print(path)


_WRITERS = {"leela": write_leela, "onnx": write_onnx}
"""What writes a network in the format of another program: (file, variables, settings)."""
