"""Settings of a run and its checkpoints."""

from dataclasses import dataclass
from typing import Literal

from azero.config import check_range


@dataclass(frozen=True)
class CheckpointConfig:
    """The checkpoints that are kept."""

    every: int = 10
    """Iterations between checkpoints."""
    keep: int = 3
    """Most recent checkpoints kept."""
    keep_every: int | None = None
    """Interval in iterations of checkpoints that are kept permanently (players of the Elo curve),
    also if it changes later; they are saved whatever `every` is."""

    def __post_init__(self) -> None:
        check_range(self, "checkpoint", "every keep keep_every", 1)

    def is_due(self, iteration: int) -> bool:
        """Return whether there is a checkpoint after `iteration` iterations."""
        intervals = (self.every, self.keep_every or self.every)
        return any(iteration % interval == 0 for interval in intervals)


@dataclass(frozen=True)
class RunConfig:
    """Length, seed and machines of a run."""

    iterations: int = 7000
    """Total iterations after which the run ends."""
    seed: int = 0
    """Random seed."""
    distributed: Literal["auto", "on", "off"] = "auto"
    """Several hosts: joined if JAX finds a cluster (auto), required (on), or not looked for
    (off)."""
    coordinator: str | None = None
    """Several hosts that JAX does not find by itself: HOST:PORT of process 0, with a free port."""
    coordinator_bind: str | None = None
    """Address that process 0 listens on if not HOST, as behind NAT; it listens on no other
    address."""
    num_processes: int | None = None
    """With coordinator: number of processes; None takes it from Slurm or Open MPI."""
    process_id: int | None = None
    """With coordinator: index of this process, from 0; None takes it from Slurm or Open MPI."""
    join_seconds: int = 300
    """Seconds a process waits for the others at the start."""
    wandb: str | None = None
    """Project of Weights & Biases to which the metrics also go (`pip install 'azero[wandb]'`;
    WANDB_MODE=offline keeps them in the working directory)."""
    profile_iteration: int | None = None
    """Write a profiler trace of this iteration into the working directory."""

    def __post_init__(self) -> None:
        check_range(self, "run", "iterations process_id", 0)
        check_range(self, "run", "seed", 0, 2**32 - 1)
        check_range(self, "run", "num_processes join_seconds profile_iteration", 1)
