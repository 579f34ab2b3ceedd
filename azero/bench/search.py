"""Speed of the searches on mid-game Go positions, beside mctx: `python -m azero.bench.search --against mctx`.

Three times are taken of each search. The whole search; the same search's plays and evaluations without a tree ("game and leaf": as many calls with as many
positions each); their difference is what the tree costs.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import tyro
from rich.console import Console
from rich.table import Table

from azero.config import NetworkConfig, SearchConfig
from azero.games import Game, make
from azero.networks import make_network
from azero.search import LeafFn, make_search, network_leaf, tree_bytes
from azero.search.gumbel import Phase, halving_schedule
from azero.types import Array, PyTree

OPENING_PLIES = 20
"""Random moves before the measured positions, so that boards are neither empty nor full."""
MCTX_BYTES_PER_ACTION = 24
"""mctx keeps child index, prior logit, visits, reward, discount and value of every edge, four bytes each."""
MCTX_BYTES_PER_NODE = 20
"""mctx keeps visits, raw value, value, parent and action of every node, four bytes each."""


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    search: str
    simulations_per_second: float
    """Simulations of all games together."""
    tree_share: float
    """Share of the time that is not game and leaf, from 0 to 1."""
    calls: int
    """Calls of the leaf per search."""
    bytes_per_game: int


def run(
    against: Literal["mctx", "none"] = "mctx",
    size: int = 9,
    batch: int = 256,
    num_simulations: int = 64,
    network: str = "stand-in",
    searches: tuple[str, ...] = ("puct", "gumbel"),
    repeats: int = 3,
) -> list[Result]:
    """Time each of `searches`, and its twin in mctx if `against` says so, on the same positions.

    Args:
      network: "stand-in", one small matrix product, or BLOCKSxFILTERS, such as "6x96".
      repeats: the best of so many runs counts.

    Raises:
      ValueError: the network or the game is not understood.
    """
    game = make("go", size=size)
    leaf, params = make_leaf(game, network)
    roots = jax.jit(functools.partial(mid_game_positions, game, batch))(jax.random.key(1))
    results = []
    for name in searches:
        for full_name in [name, f"mctx_{name}"] if against == "mctx" else [name]:
            config = SearchConfig(name=full_name, num_simulations=num_simulations, random_symmetry=False)  # type: ignore[arg-type]
            results.append(measure(config, game, leaf, params, roots, repeats))
    return results


def measure(config: SearchConfig, game: Game, leaf: LeafFn, params: PyTree, roots: PyTree, repeats: int) -> Result:
    """Time one search and its plays and evaluations alone."""
    batch = jax.tree.leaves(roots)[0].shape[0]
    search = make_search(config, game, leaf)
    phases = (
        halving_schedule(min(config.max_considered, game.num_actions), config.num_simulations)
        if config.name == "gumbel"
        else (Phase(1, config.num_simulations),)
    )
    whole = best_time(lambda key: search(params, key, roots)._replace(tree=None), repeats)
    alone = best_time(functools.partial(play_and_evaluate, game, leaf, phases, params, roots), repeats)
    return Result(
        search=config.name,
        simulations_per_second=batch * config.num_simulations / whole,
        tree_share=max(0.0, 1.0 - alone / whole),
        calls=1 + sum(phase.rounds for phase in phases),
        bytes_per_game=mctx_tree_bytes(config.num_simulations, game) if config.name.startswith("mctx") else tree_bytes(config.num_simulations, game),
    )


def best_time(function: Callable[[Array], Any], repeats: int) -> float:
    """Return the seconds of the fastest of `repeats` calls, after one that compiles."""
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(jax.random.key(0)))
    seconds = []
    for i in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(compiled(jax.random.key(i)))
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def play_and_evaluate(game: Game, leaf: LeafFn, phases: tuple[Phase, ...], params: PyTree, roots: PyTree, key: Array) -> Array:
    """Do what a search does besides its tree: evaluate the roots, then for every round one move and one evaluation of all its positions."""
    states = jax.vmap(game.search_state)(roots)
    logits, values = leaf(params, key, states)
    total = jnp.sum(values)
    for width, rounds in phases:

        def one_round(carry: tuple[PyTree, Array, Array], _: None) -> tuple[tuple[PyTree, Array, Array], None]:
            states, logits, total = carry
            masked = jnp.where(jax.vmap(game.legal_action_mask)(states), logits, -jnp.inf)
            states = jax.vmap(game.step)(states, jnp.argmax(masked, axis=-1).astype(jnp.int32))
            logits, values = leaf(params, key, states)
            ends = jax.vmap(game.is_terminal)(states)
            values = jnp.where(ends, jax.vmap(game.rewards)(states)[:, 0], values)
            return (states, logits, total + jnp.sum(values)), None

        wide = jax.tree.map(functools.partial(jnp.repeat, repeats=width, axis=0), (states, logits))
        (wide_states, wide_logits, total), _ = jax.lax.scan(one_round, (*wide, total), None, length=rounds)
        states, logits = jax.tree.map(lambda array, width=width: array[::width], (wide_states, wide_logits))
    return total


def make_leaf(game: Game, network: str) -> tuple[LeafFn, PyTree]:
    """Return a leaf over the network that `network` names, and its parameters."""
    if network == "stand-in":
        features = game.board_shape[0] * game.board_shape[1] * game.num_planes
        weights = jax.random.normal(jax.random.key(7), (features, game.num_actions + 1)) / features**0.5

        def infer(params: Array, planes: Array) -> tuple[Array, Array]:
            product = planes.reshape(planes.shape[0], -1).astype(jnp.float32) @ params
            return product[:, :-1], jnp.tanh(product[:, -1])

        return network_leaf(game, infer, random_symmetry=False), weights
    blocks, times, filters = network.partition("x")
    if not (times and blocks.isdecimal() and filters.isdecimal()):
        raise ValueError(f"the network is stand-in or BLOCKSxFILTERS such as 6x96, not {network!r}")
    settings = NetworkConfig(blocks=int(blocks), filters=int(filters))
    functions = make_network(settings, game.board_shape, game.num_planes, game.num_actions)
    return network_leaf(game, functions.infer, random_symmetry=False), functions.fold(functions.init(jax.random.key(7)))


def mid_game_positions(game: Game, batch: int, key: Array) -> PyTree:
    """Return `batch` positions after OPENING_PLIES random legal moves."""
    states = jax.vmap(lambda _: game.init())(jnp.arange(batch))

    def play(states: PyTree, key: Array) -> tuple[PyTree, None]:
        draws = jax.random.uniform(key, (batch, game.num_actions))
        action = jnp.argmax(jnp.where(jax.vmap(game.legal_action_mask)(states), draws, -1.0), axis=-1).astype(jnp.int32)
        return jax.vmap(game.step)(states, action), None

    return jax.lax.scan(play, states, jax.random.split(key, OPENING_PLIES))[0]


def mctx_tree_bytes(num_simulations: int, game: Game) -> int:
    """Return the bytes of mctx's tree of one game: the slim state, six numbers an action and five a node."""
    state = jax.eval_shape(lambda: game.search_state(game.init()))
    state_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    return (num_simulations + 1) * (state_bytes + MCTX_BYTES_PER_ACTION * game.num_actions + MCTX_BYTES_PER_NODE)


def table(results: list[Result], title: str) -> Table:
    """Return the results as a table to print, each search beside its twin in mctx."""
    speeds = {result.search: result.simulations_per_second for result in results}
    out = Table(title=title)
    for column in ("search", "simulations/s", "against mctx", "tree's share", "leaf calls", "KB per game"):
        out.add_column(column, justify="left" if column == "search" else "right")
    for result in results:
        twin = speeds.get(f"mctx_{result.search}")
        ratio = f"{result.simulations_per_second / twin:.1f} x" if twin else ""
        share, kilobytes = f"{result.tree_share:.0%}", f"{result.bytes_per_game / 1000:,.0f}"
        out.add_row(result.search, f"{result.simulations_per_second:,.0f}", ratio, share, str(result.calls), kilobytes)
    return out


@dataclass(frozen=True)
class Arguments:
    """Time the searches on mid-game Go positions."""

    against: Literal["mctx", "none"] = "mctx"
    """Also time the same search through mctx."""
    size: int = 9
    """Points per side of the board."""
    batch: int = 256
    """Games searched at once."""
    num_simulations: int = 64
    """Simulations per move."""
    network: str = "stand-in"
    """stand-in (one small matrix product), or BLOCKSxFILTERS such as 6x96."""
    searches: tuple[str, ...] = ("puct", "gumbel")
    """Which of ours to time."""
    repeats: int = 3
    """The best of so many runs counts."""


def main(arguments: list[str] | None = None) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(Arguments, args=arguments)
    results = run(**dataclasses.asdict(chosen))
    title = f"{chosen.batch} games of {chosen.size}x{chosen.size}, {chosen.num_simulations} simulations, {chosen.network} network, {jax.default_backend()}"
    Console().print(table(results, title))


if __name__ == "__main__":
    main()
