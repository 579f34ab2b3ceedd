"""What the TPU compiler makes of the rules, one step and the legal mask: seconds, gathers, scatters, bytes. Needs the package libtpu, but no TPU.

pip install libtpu
python -m azero.bench.tpu
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import time
from typing import Any

TOPOLOGY = "v5e:2x4"
"""Eight chips of TPU v5e; others that the compiler knows: v4:2x2x1, v5p:2x2x1, v6e:2x4"""


GAMES: dict[str, tuple[str, dict[str, Any]]] = {"go 19x19": ("go", {"size": 19}), "chess": ("chess", {}), "shogi": ("shogi", {})}
"""What is compiled: name in the table of games, and options."""


def run(topology: str = TOPOLOGY, name: str = "go 19x19", num_games: int = 1024) -> dict[str, Any]:
    """Compile one step and the legal mask of `num_games` real games of GAMES[name] for `topology`, sharded over its chips, and return what came out.

    Raises:
      ValueError: libtpu is not installed, or it does not know the topology.
    """
    if importlib.util.find_spec("libtpu") is None:
        raise ValueError("the TPU compiler is not installed: pip install libtpu")
    _pretend_to_be_a_tpu_host()
    import jax
    import jax.numpy as jnp
    from jax.experimental import topologies

    import azero.games
    import azero.mesh

    try:
        devices = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    except Exception as error:
        raise ValueError(f"the TPU compiler does not take the topology {topology!r}: {error}") from error
    sharding = azero.mesh.batch_sharded(azero.mesh.make_mesh(list(devices)))
    game_name, game_options = GAMES[name]
    game = azero.games.make(game_name, **game_options)

    def move(state: Any, action: Any) -> tuple[Any, Any]:
        state = game.step(state, action)
        return state, game.legal_action_mask(state)

    def shape(leaf: Any) -> Any:
        return jax.ShapeDtypeStruct((num_games, *leaf.shape), leaf.dtype, sharding=sharding)

    states = jax.tree.map(shape, jax.eval_shape(game.init))
    actions = shape(jax.ShapeDtypeStruct((), jnp.int32))
    per_chip = jax.shard_map(jax.vmap(move), mesh=sharding.mesh, in_specs=sharding.spec, out_specs=sharding.spec, check_vma=False)
    lowered = jax.jit(per_chip).lower(states, actions)
    started = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - started
    text = compiled.as_text() or ""
    counts = {name: len(re.findall(rf"(?<![-\w.]){name}\(", text)) for name in ("gather", "scatter", "while", "fusion", "all-reduce")}
    memory = compiled.memory_analysis()
    return {
        "game": name,
        "topology": topology,
        "games": num_games,
        "compile_seconds": seconds,
        **counts,
        "temporary_bytes": memory.temp_size_in_bytes if memory else None,
    }


def _pretend_to_be_a_tpu_host() -> None:
    """Set what libtpu asks of its surroundings, so that it compiles without a TPU. Has to come before jax touches a device."""
    for name, value in {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-8",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
    }.items():
        os.environ.setdefault(name, value)


def main(arguments: list[str] | None = None) -> None:
    """Print what the TPU compiler says."""
    from rich.console import Console

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default=TOPOLOGY)
    parser.add_argument("--game", choices=list(GAMES), action="append", help="only this game; may be given several times")
    options = parser.parse_args(arguments)
    for game in options.game or GAMES:
        for name, value in run(options.topology, game).items():
            Console(highlight=False).print(f"{name}: {value:.1f}" if isinstance(value, float) else f"{name}: {value}")


if __name__ == "__main__":
    main()
