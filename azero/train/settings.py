"""Settings of a run and its checkpoints.

Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362) and its
pseudocode; GUM = Danihelka et al. 2022 (ICLR); KG = Wu 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from azero.config import check_range


@dataclass(frozen=True)
class CheckpointConfig:
    """What is kept on disk."""

    every: int = 10
    """Iterations between checkpoints."""
    keep: int = 3
    """Most recent checkpoints kept."""
    keep_every: int | None = None
    """Checkpoints of every so many iterations are kept for good (players of the Elo curve)."""

    def __post_init__(self) -> None:
        check_range(self, "checkpoint", "every keep keep_every", 1)


@dataclass(frozen=True)
class RunConfig:
    """Length, seed and machines of a run."""

    iterations: int = 7000
    """The run ends after so many iterations in all."""
    seed: int = 0
    """Seed of every random draw."""
    distributed: Literal["auto", "on", "off"] = "auto"
    """Several hosts: found from the cluster (auto), required (on), or not looked for (off)."""
    coordinator: str | None = None
    """Several hosts that JAX does not find by itself: HOST:PORT of process 0, a free port of it."""
    coordinator_bind: str | None = None
    """Address that process 0 listens on where it is not HOST, as behind a router that changes
    addresses; never more than what is named."""
    num_processes: int | None = None
    """With coordinator: how many processes there are; None is what Slurm or Open MPI says."""
    process_id: int | None = None
    """With coordinator: which one this is, from 0; None is what Slurm or Open MPI says."""
    join_seconds: int = 300
    """How long a process waits for the others at the start."""
    profile_iteration: int | None = None
    """Write a profiler trace of this iteration into the working directory."""

    def __post_init__(self) -> None:
        check_range(self, "run", "iterations process_id", 0)
        check_range(self, "run", "seed", 0, 2**32 - 1)
        check_range(self, "run", "num_processes join_seconds profile_iteration", 1)
