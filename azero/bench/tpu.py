"""The 19x19 step compiled for a TPU v5e by the real TPU compiler, without a TPU: what it is made of, and how long compiling takes.

Needs Linux on x86-64 and the package libtpu (it comes with `pip install 'azero[tpu]'`).
"""

from __future__ import annotations

import os
import re
import time

TOPOLOGY = "v5e:2x4"
GAMES = 1024
COMMAND = "azero bench tpu"


def main(arguments: list[str] | None = None) -> None:
    """Compile one step and legal mask of 1,024 games for v5e:2x4 and print gathers, scatters, loops and seconds.

    Raises:
      ValueError: libtpu is not installed, or a peer was named.
    """
    if arguments:
        raise ValueError("azero bench tpu compares with nobody")
    # The compiler looks for a machine of its own unless it is told which one to compile for; before JAX starts.
    os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_ACCELERATOR_TYPE="v5litepod-8", TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0")
    for name, value in compile_step().items():
        print(f"{name:>24}: {value}")


def compile_step() -> dict[str, str]:
    """Return the figures of the compiled program, by name."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import topologies
    from jax.sharding import NamedSharding, PartitionSpec

    from azero.games import make
    from azero.mesh import DATA_AXIS, make_mesh

    try:
        topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGY)
    except (RuntimeError, ImportError, jax.errors.JaxRuntimeError) as error:
        raise ValueError(f"the TPU compiler is not here; pip install libtpu ({str(error).splitlines()[0]})") from error
    game = make("go", size=19)
    sharding = NamedSharding(make_mesh(list(topology.devices)), PartitionSpec(DATA_AXIS))

    def step(state: object, action: jax.Array) -> tuple[object, jax.Array]:
        after = jax.vmap(game.step)(state, action)
        return after, jax.vmap(game.legal_action_mask)(after)

    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((GAMES, *leaf.shape), leaf.dtype, sharding=sharding), jax.eval_shape(game.init))
    action = jax.ShapeDtypeStruct((GAMES,), jnp.int32, sharding=sharding)
    lowered = jax.jit(step).lower(state, action)
    started = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - started
    text = compiled.as_text() or ""
    counts = {word: len(re.findall(rf" {word}\(", text)) for word in ("gather", "scatter", "while")}
    return {
        "compiled for": f"{TOPOLOGY}, {GAMES} games of 19x19, one step and legal mask",
        "seconds": f"{seconds:.1f}",
        **{k: str(v) for k, v in counts.items()},
    }


if __name__ == "__main__":
    main()
