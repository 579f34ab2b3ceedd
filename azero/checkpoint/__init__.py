"""The whole state of a run on disk: atomic, versioned, every byte verified on loading."""

from azero.checkpoint.checkpointer import Checkpointer, Restored
from azero.checkpoint.reading import (
    CheckpointRow,
    export_network,
    find_checkpoint,
    list_checkpoints,
    load_network,
    load_settings,
    load_variables,
)
from azero.checkpoint.record import CheckpointError

__all__ = [
    "CheckpointError",
    "CheckpointRow",
    "Checkpointer",
    "Restored",
    "export_network",
    "find_checkpoint",
    "list_checkpoints",
    "load_network",
    "load_settings",
    "load_variables",
]
