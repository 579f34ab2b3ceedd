"""What a committed network does, as numbers: a PUCT and a Gumbel search, a dispatch of self-play
and a train step of a small network of tic-tac-toe.

`python tests/numerics/golden.py` prints the numbers of the programs that users run, `--write` keeps
them in golden.json: do so where a change to search, self-play or learner is meant to change them,
and say why in the commit. Every random draw has its key, so nothing but the order of float32 sums
differs between compilers and devices.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from azero.checkpoint.exported import read_exported
from azero.data.sample import Batch
from azero.learn.learner import make_learner
from azero.learn.settings import LearnerConfig
from azero.mesh import DATA_AXIS, batch_sharded, make_mesh, put, replicated
from azero.search.leaf import network_leaf
from azero.search.settings import GumbelConfig, PuctConfig
from azero.selfplay.selfplay import make_selfplay
from azero.selfplay.settings import SelfplayConfig

STORED = Path(__file__).with_name("golden.json")
NETWORK = Path(__file__).with_name("network")
"""Exported from 20 iterations of `python -m azero.experiments.tictactoe --evaluation.every 0`; 2
blocks of 16. Its rules compile fast: the programs are what is tested."""
GAMES = 8
"""Positions searched, and games played, on every device."""
PUCT = PuctConfig(num_simulations=32, dirichlet_alpha=1.0)
GUMBEL = GumbelConfig(num_simulations=16)
SELFPLAY = SelfplayConfig(moves_per_dispatch=6, temperature_moves=4, resign=False)
LEARNER = LearnerConfig(batch_size=64, learning_rate=((0, 0.01),))

Numbers = dict[str, list[Any]]


def compute(devices: int) -> Numbers:
    """Return the numbers from the programs of that many devices, each of which has the same
    positions; those of self-play are its first device's."""
    variables, config = read_exported(NETWORK)
    mesh = make_mesh(jax.devices()[:devices])
    game = config.game.build()
    network = config.network.build(game)
    params = put(jax.jit(network.fold)(variables), replicated(mesh))
    leaf = network_leaf(game, network.infer, random_symmetry=True)
    roots = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * devices), _positions(game))
    found: Numbers = {}
    for settings in (PUCT, GUMBEL):
        search = settings.build(game, leaf)

        def run(params: Any, key: Any, roots: Any, search: Any = search) -> Any:
            output = search(params, key, roots)
            return {
                name: getattr(output, name) for name in ("action", "visits", "weights", "value")
            }

        if devices > 1:
            games = PartitionSpec(DATA_AXIS)
            run = jax.shard_map(
                run,
                mesh=mesh,
                in_specs=(PartitionSpec(), PartitionSpec(), games),
                out_specs=games,
                check_vma=False,
            )
        for name, array in jax.jit(run)(params, jax.random.key(1), roots).items():
            found[f"{settings.name} {name}"] = (
                np.asarray(array).reshape(devices, GAMES, -1).tolist()
            )

    selfplay = make_selfplay(
        dataclasses.replace(SELFPLAY, num_games=GAMES * devices),
        game,
        GUMBEL.build(game, leaf),
        None,
        mesh,
    )
    _, step = selfplay.play(
        params, selfplay.init(jax.random.key(2)), jax.random.key(3), jnp.float32(-1.0)
    )
    for name in ("action", "finished", "root_value"):
        found[f"selfplay {name}"] = [
            np.asarray(getattr(step, name)).astype(np.float64)[:, :GAMES].T.tolist()
        ]

    learner = make_learner(LEARNER, network, game, mesh)
    state = learner.init(jax.random.key(0))
    state = put(
        state.replace(params=variables["params"], batch_stats=variables["batch_stats"]),
        replicated(mesh),
    )
    before = jax.device_get(state.variables)
    state, metrics = learner.train_step(state, put(_batch(game), batch_sharded(mesh)))
    found["train metrics"] = [
        [[float(metrics[name]) for name in ("loss", "policy_loss", "value_loss", "gradient_norm")]]
    ]
    changes = jax.tree.map(
        lambda new, old: float(np.linalg.norm(np.asarray(new) - old)),
        jax.device_get(state.variables),
        before,
    )
    found["train changes"] = [[jax.tree.leaves(changes)]]
    return found


def _positions(game: Any, count: int = GAMES) -> Any:
    """Return State[count] after none, one, two and three moves of two games."""
    step = jax.jit(game.step)
    states = []
    for moves in ((4, 0, 8), (0, 2, 4)):
        states.append(game.init())
        for move in moves:
            states.append(step(states[-1], jnp.int32(move)))
    assert len(states) == count
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def _batch(game: Any) -> Batch:
    rng = np.random.default_rng(0)
    size = LEARNER.batch_size
    planes = np.tile(np.asarray(jax.vmap(game.observe)(_positions(game))), (size // GAMES, 1, 1, 1))
    weights = rng.dirichlet(np.full(game.num_actions, 0.3), size).astype(np.float32)
    return Batch(planes, weights, rng.choice([-1.0, 1.0], size).astype(np.float32))  # type: ignore[arg-type]


TOLERANCES = {"weights": 2e-3, "value": 1e-4, "root_value": 2e-3, "metrics": 1e-4, "changes": 2e-4}
"""By the last word of a name; what is not here are whole numbers. A float32 network differs by
about 1e-6 between orders of its sums; Gumbel's targets are a softmax of values times 60; root
values of self-play are stored as float16; metrics and changes of the weights are sums of hundreds
of products, and these relative."""
TIES = 1
"""Of the 8 rows of a search or of self-play, as many may differ: two moves whose scores differ by
less than rounding make another visit, and then another search."""


def differences(got: Numbers, wanted: Numbers) -> list[str]:
    """Return where `got` is not `wanted`, whose first device is compared with all of those of
    `got`."""
    wrong = []
    for part in ("puct", "gumbel", "selfplay", "train"):
        names = [name for name in wanted if name.startswith(part)]
        for device in range(len(got[names[0]])):
            rows = [
                {
                    name
                    for name in names
                    if not _close(name, got[name][device][row], wanted[name][0][row])
                }
                for row in range(len(wanted[names[0]][0]))
            ]
            different = [
                f"row {row}: {', '.join(sorted(found))}" for row, found in enumerate(rows) if found
            ]
            if len(different) > (0 if part == "train" else TIES):
                wrong.append(f"{part}, device {device}: {'; '.join(different)}")
    return wrong


def _close(name: str, got: list[Any], wanted: list[Any]) -> bool:
    tolerance = TOLERANCES.get(name.split()[-1], 0.0)
    relative = tolerance if name.startswith("train") else 0.0
    return bool(np.allclose(got, wanted, rtol=relative, atol=tolerance if not relative else 1e-7))


if __name__ == "__main__":
    text = json.dumps(compute(1))
    if "--write" in sys.argv:
        STORED.write_text(text + "\n")
    else:
        print(text)
