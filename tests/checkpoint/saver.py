"""Run as a program: save checkpoint after checkpoint in the directory that is the argument, until
it is killed. Says "begins N" and "done N"."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from azero.checkpoint import Checkpointer
from azero.settings import from_dict

CONFIG = from_dict({"checkpoint": {"keep": 2}})


def make_arrays(iteration: int) -> dict[str, dict[str, np.ndarray]]:
    """Return arrays that tell which iteration they are of."""
    return {
        "train": {
            "a": np.full((300, 1000), iteration, np.float32),
            "b": np.arange(1000) * iteration,
        }
    }


def main() -> None:
    """Save without end."""
    checkpointer = Checkpointer(Path(sys.argv[1]), CONFIG)
    restored = checkpointer.restore(make_arrays(0))
    iteration = 0 if restored is None else restored.iteration
    while True:
        iteration += 1
        print(f"begins {iteration}", flush=True)
        checkpointer.save(
            iteration,
            make_arrays(iteration),
            {"games": iteration},
            {"x": np.full(1000, iteration)},
            {"first_shard": iteration},
        )
        checkpointer.wait()
        print(f"done {iteration}", flush=True)


if __name__ == "__main__":
    main()
