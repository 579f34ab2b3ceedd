"""What a run will cost: arithmetic, time on these devices, memory."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from azero.chips import CHIPS
from azero.data.shard import row_dtype
from azero.search.batched.tree import tree_bytes
from azero.selfplay.targets import policy_room
from azero.settings import Config
from azero.types import PyTree

# Peak bf16 arithmetic of a device in FLOP/s (vendors' data sheets). The longest name whose words are in the device's kind counts; JAX writes v5e and v6e "v5 lite"
# and "v6 lite", and v5p sometimes "v5".
PEAK_FLOPS = {
    **{f"TPU {name}": chip.device_flops for name, chip in CHIPS.items()},
    "TPU v5 lite": CHIPS["v5e"].device_flops,
    "TPU v5": CHIPS["v5p"].device_flops,
    "TPU v6 lite": CHIPS["v6e"].device_flops,
    "T4": 65e12,
    "V100": 125e12,
    "L4": 121e12,
    "A100": 312e12,
    "H100": 989e12,
    "H200": 989e12,
    "B200": 2250e12,
}
UTILISATION = 0.25
"""Share of the peak that a search over a residual tower is taken to reach on an accelerator (a planning figure)."""
UNKNOWN_ACCELERATOR = 100e12
"""FLOP/s for an accelerator that is not in the table."""
VISITED_MOVES = 64
"""Moves of a policy target on average over a run (a planning figure; first networks visit up to all, see docs/training.md)."""
LIFETIME_SECONDS = 30 * 24 * 3600.0
"""Longer than this, a start says what the run would take (AlphaGo Zero's own long run took 40 days on its machines)."""


@dataclass(frozen=True)
class Estimate:
    """The cost of a whole run on the present devices."""

    flops: float
    """Floating-point operations of the iterations asked for."""
    flops_per_second: float
    """What all devices together are taken to do."""
    tree_bytes_per_game: int
    tree_bytes: int
    """Trees that one device holds at once."""
    parameters: int
    training_bytes: int
    """Parameters, optimiser state and gradients on every device."""
    replay_bytes: int
    """The full window on disk."""

    @property
    def seconds(self) -> float:
        """Wall time of the run, by arithmetic alone."""
        return self.flops / self.flops_per_second


def estimate(config: Config, iterations: int | None = None, plays: bool = True) -> Estimate:
    """Estimate the cost of `iterations` (default: all) of a run on the devices that are present; one that does not play learns from records alone."""
    game = config.game.build()
    network = config.network.build(game)
    variables = jax.eval_shape(network.init, jax.random.key(0))
    evaluation = evaluation_flops(variables["params"], game.board_shape)
    positions = plays * config.selfplay.num_games * config.selfplay.moves_per_dispatch * config.selfplay.dispatches_per_iteration
    simulations = mean_simulations(config)
    learned = config.learner.steps_per_iteration * config.learner.batch_size
    # A training step is a forward pass and a backward pass of twice its cost.
    flops = (positions * (simulations + 1) + 3 * learned) * evaluation * (config.run.iterations if iterations is None else iterations)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(variables["params"]))
    local_games = max(1, config.selfplay.num_games // jax.device_count())
    at_once = min(local_games, config.selfplay.search_batch or local_games)
    per_game = plays * tree_bytes(config.search.num_simulations, game, config.search.edge_width)
    per_position = row_dtype(game.frame_words).itemsize + 4 * min(VISITED_MOVES, policy_room(game), config.search.num_simulations)
    return Estimate(
        flops=flops,
        flops_per_second=device_flops(),
        tree_bytes_per_game=per_game,
        tree_bytes=per_game * at_once,
        parameters=parameters,
        training_bytes=4 * parameters * (3 if config.learner.optimiser == "momentum" else 4),
        replay_bytes=plays * config.replay.window_games * game.max_moves // 3 * per_position,
    )


def mean_simulations(config: Config) -> float:
    """Simulations per move on average, with playout-cap randomisation."""
    full, fast, share = config.search.num_simulations, config.selfplay.fast_simulations, config.selfplay.full_search_probability
    return full if fast is None else share * full + (1 - share) * fast


def evaluation_flops(params: PyTree, board_shape: tuple[int, int]) -> float:
    """Return the operations of one evaluation: a multiplication and an addition per weight, at every point for convolutions.

    (The compiler's own count takes the body of a loop over blocks once.)
    """
    points = board_shape[0] * board_shape[1]
    return float(sum(2 * leaf.size * (points if leaf.ndim >= 4 else 1) for leaf in jax.tree.leaves(params)))


def device_flops() -> float:
    """Return the FLOP/s that the devices together are taken to reach: measured by a matrix product on a CPU, from the table elsewhere."""
    devices = jax.devices()
    if devices[0].platform == "cpu":
        return _measured_cpu_flops()
    return (peak_of(devices[0].device_kind, PEAK_FLOPS) or UNKNOWN_ACCELERATOR) * UTILISATION * len(devices)


def peak_of(kind: str, peaks: dict[str, float]) -> float | None:
    """Return the entry of the longest name in `peaks` whose words are among those of the device's `kind`; None if there is none."""
    names = sorted((name for name in peaks if re.search(rf"\b{name}\b", kind, re.IGNORECASE)), key=len)
    return peaks[names[-1]] if names else None


def _measured_cpu_flops(size: int = 1024) -> float:
    product = jax.jit(lambda a: a @ a)
    matrix = jnp.ones((size, size), jnp.float32)
    product(matrix).block_until_ready()
    started = time.perf_counter()
    product(matrix).block_until_ready()
    return 2 * size**3 / (time.perf_counter() - started)
