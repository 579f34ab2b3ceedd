"""Run as a program, once per process: PROCESS PORT WORKDIR. Saves what each of two processes knows
and restores it."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np

PROCESS, PORT, WORKDIR = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])


def main() -> None:
    """Save one state from both processes, damage nothing, read it back, and compare."""
    from azero.checkpoint import Checkpointer
    from azero.mesh import batch_sharded, make_mesh, replicated
    from azero.settings import Config

    mesh = make_mesh()
    games = np.arange(12, dtype=np.float32).reshape(4, 3)
    state = {
        "games": {
            "x": jax.make_array_from_callback(
                (4, 3), batch_sharded(mesh), lambda index: games[index]
            )
        },
        "train": {
            "w": jax.make_array_from_callback((3,), replicated(mesh), lambda index: games[0][index])
        },
    }
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state
    )
    checkpointer = Checkpointer(WORKDIR, Config())
    increment = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf + 1, tree))
    for iteration in (1, 2):
        checkpointer.save(
            iteration,
            state,
            {"games": 7},
            {"mine": np.full(3, 10 * PROCESS + iteration)},
            {"shard": PROCESS},
        )
        # A program with devices of both processes runs while the save does.
        state = increment(state)
    checkpointer.wait()
    if sys.argv[4:] == ["damage"] and PROCESS == 1:
        (WORKDIR / "checkpoints" / "hosts" / "2.p001.host").unlink()
    restored = checkpointer.restore(target)
    assert restored is not None
    expected = games + restored.iteration - 1
    for shard in restored.arrays["games"]["x"].addressable_shards:
        np.testing.assert_array_equal(shard.data, expected[shard.index])
    np.testing.assert_array_equal(restored.arrays["train"]["w"].addressable_data(0), expected[0])
    print("RESULT", restored.iteration, restored.host["mine"].tolist(), restored.cursor, flush=True)
    checkpointer.close()


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(
        f"127.0.0.1:{PORT}", 2, PROCESS, coordinator_bind_address=f"127.0.0.1:{PORT}"
    )
    main()
