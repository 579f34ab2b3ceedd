"""Speed of the searches on mid-game positions, compared with mctx: `azero bench search --against
mctx`.

Each search is timed twice: the whole, and its game steps and evaluations alone (the same calls with
the same batch sizes). The difference is the cost of the tree. PUCT is compared with two searches:
`mctx.muzero_policy`, the library's own PUCT, and `mctx_puct`, our rule on the library's tree.
"""

import dataclasses
import functools
import importlib.util
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import tyro

from azero.bench.games import random_positions
from azero.bench.timing import best_seconds, device_name
from azero.config import check_range
from azero.console.tables import Cell, results_table
from azero.console.terminal import make_console
from azero.games.game import Game
from azero.games.table import make
from azero.networks.settings import ResNetConfig
from azero.search.batched.evaluation import CPU_CHUNK, evaluate_roots
from azero.search.batched.gumbel import HalvingPhase, halving_schedule
from azero.search.batched.tree import state_bytes, tree_bytes
from azero.search.leaf import network_leaf
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.search.settings import GumbelConfig, PuctConfig, SearchConfig
from azero.types import Array, PyTree

OPENING_PLIES = 20
"""Random moves before the measured positions, so that they are from the middle of games."""
STAND_IN_SCALE = 0.15
"""Standard deviation of the stand-in's weights: its logits then have a spread of 2, so that priors
are peaked and descents deep, as with a trained network."""
MCTX_BYTES_PER_ACTION = 24
"""mctx keeps child index, prior logit, visits, reward, discount and value of every edge, four bytes
each."""
MCTX_BYTES_PER_NODE = 20
"""mctx keeps visits, raw value, value, parent and action of every node, four bytes each."""


@dataclass(frozen=True)
class SearchResult:
    """One line of the table."""

    search: str
    simulations_per_second: float
    """Simulations of all games together."""
    tree_share: float
    """Share of the time outside game and leaf, from 0 to 1."""
    calls: int
    """Calls of the leaf per search."""
    bytes_per_game: int
    ours_faster: float | None = None
    """Speed of our search of the same kind relative to this one, in the same run; None on our own
    rows."""

    def cells(self) -> dict[str, Cell]:
        """Return its row of the table."""
        return {
            "search": self.search,
            "sims/s": f"{self.simulations_per_second:,.0f}",
            "ours faster": f"{self.ours_faster:.1f} x" if self.ours_faster else "",
            "tree share": f"{self.tree_share:.0%}",
            "leaf calls": self.calls,
            "KB/game": f"{self.bytes_per_game / 1000:,.0f}",
        }


@dataclass(frozen=True)
class SearchArguments:
    """Time the searches on mid-game positions."""

    against: Literal["mctx", "none"] = "mctx"
    """Also time the same search through mctx."""
    game: str = "go"
    """Which game."""
    size: int = 9
    """Go: points per side of the board."""
    batch: int = 256
    """Games searched at once."""
    num_simulations: int = 64
    """Simulations per move."""
    network: str = "stand-in"
    """stand-in (one small matrix product), or BLOCKSxFILTERS such as 6x96."""
    searches: tuple[str, ...] = ("puct", "gumbel")
    """Which of ours to time."""
    edge_width: int | None = None
    """Edges of a node (`search.edge-width`)."""
    repeats: int = 3
    """Number of runs, of which the best counts."""


def run(arguments: SearchArguments) -> list[SearchResult]:
    """Time each of `arguments.searches`, and its twin in mctx if `against` says so, on the same
    positions.

    Raises:
      ValueError: the network or the game is unknown, or mctx is not installed and --against is not
        none.
    """
    with_mctx, repeats = arguments.against == "mctx", arguments.repeats
    if with_mctx and importlib.util.find_spec("mctx") is None:
        raise ValueError("the comparison needs mctx: pip install mctx, or --against none")
    game = make(arguments.game, **({"size": arguments.size} if arguments.game == "go" else {}))
    leaf, params = make_leaf(game, arguments.network)
    draw = functools.partial(random_positions, game, arguments.batch, OPENING_PLIES)
    roots = jax.jit(draw)(jax.random.key(1))
    results = []
    for name in arguments.searches:
        config = SearchConfig.default(name).replace(
            num_simulations=arguments.num_simulations,
            random_symmetry=False,
            edge_width=arguments.edge_width,
        )
        ours = measure(config, game, config.build(game, leaf), leaf, params, roots, repeats)
        results.append(ours)
        for theirs, search in mctx_equivalents(config, game, leaf).items() if with_mctx else ():
            twin = config.as_kind(f"mctx_{name}")
            result = measure(twin, game, search, leaf, params, roots, repeats)
            faster = ours.simulations_per_second / result.simulations_per_second
            results.append(dataclasses.replace(result, search=theirs, ours_faster=faster))
    return results


def mctx_equivalents(config: SearchConfig, game: Game, leaf: LeafFn) -> dict[str, SearchFn]:
    """Return mctx's counterparts of the search `config`, by their names in the table."""
    if not isinstance(config, PuctConfig):
        return {"mctx_gumbel": config.as_kind("mctx_gumbel").build(game, leaf)}
    own_rule = config.as_kind("mctx_puct").build(game, leaf)
    return {"mctx_puct": own_rule, "muzero_policy": muzero_policy(config, game, leaf)}


def muzero_policy(config: PuctConfig, game: Game, leaf: LeafFn) -> SearchFn:
    """Return `mctx.muzero_policy` unchanged: its own rule, noise over all moves, Q-values rescaled
    by those of the siblings."""
    import mctx

    from azero.search.batched.mctx_backend import ILLEGAL_LOGIT, make_recurrent_fn, read_output

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        root_key, policy_key = jax.random.split(key)
        states, logits, legal_mask, values = evaluate_roots(game, leaf, params, root_key, roots)
        policy = mctx.muzero_policy(
            params,
            policy_key,
            mctx.RootFnOutput(
                prior_logits=jnp.where(legal_mask, logits, ILLEGAL_LOGIT),
                value=values,
                embedding=states,
            ),
            make_recurrent_fn(game, leaf),
            config.num_simulations,
            invalid_actions=(~legal_mask).astype(jnp.float32),
            dirichlet_fraction=config.dirichlet_fraction,
            dirichlet_alpha=config.dirichlet_alpha,
        )
        return read_output(policy.search_tree, policy.action, policy.action_weights)

    return search


def measure(
    config: SearchConfig,
    game: Game,
    search: SearchFn,
    leaf: LeafFn,
    params: PyTree,
    roots: PyTree,
    repeats: int,
) -> SearchResult:
    """Time `search`, which `config` describes, and its plays and evaluations alone."""
    batch = jax.tree.leaves(roots)[0].shape[0]
    phases = (
        halving_schedule(min(config.max_considered, game.num_actions), config.num_simulations)
        if isinstance(config, GumbelConfig) and config.name == "gumbel"
        else (HalvingPhase(1, config.num_simulations),)
    )
    whole = jax.jit(lambda key: search(params, key, roots)._replace(tree=None))
    alone = jax.jit(functools.partial(play_and_evaluate, game, leaf, phases, params, roots))
    seconds = best_seconds(lambda number: whole(jax.random.key(number)), repeats)
    seconds_alone = best_seconds(lambda number: alone(jax.random.key(number)), repeats)
    return SearchResult(
        search=config.name,
        simulations_per_second=batch * config.num_simulations / seconds,
        tree_share=max(0.0, 1.0 - seconds_alone / seconds),
        calls=1 + sum(phase.rounds for phase in phases),
        bytes_per_game=mctx_tree_bytes(config.num_simulations, game)
        if config.name.startswith("mctx")
        else tree_bytes(config.num_simulations, game, config.edge_width),
    )


def play_and_evaluate(
    game: Game,
    leaf: LeafFn,
    phases: tuple[HalvingPhase, ...],
    params: PyTree,
    roots: PyTree,
    key: Array,
) -> Array:
    """Do what a search does outside its tree: evaluate the roots, then for every round one move and
    one evaluation of all its positions."""
    states = jax.vmap(game.search_state)(roots)
    batch = jax.tree.leaves(states)[0].shape[0]
    logits, values = leaf(params, key, states)

    def one_round(
        carry: tuple[PyTree, Array, Array], _: None
    ) -> tuple[tuple[PyTree, Array, Array], None]:
        states, logits, total = carry
        masked = jnp.where(jax.vmap(game.legal_action_mask)(states), logits, -jnp.inf)
        states = jax.vmap(game.step)(states, jnp.argmax(masked, axis=-1).astype(jnp.int32))
        logits, values = leaf(params, key, states)
        values = jnp.where(
            jax.vmap(game.is_terminal)(states), jax.vmap(game.rewards)(states)[:, 0], values
        )
        return (states, logits, total + jnp.sum(values)), None

    carry = (states, logits, jnp.sum(values))
    for width, rounds in phases:
        # the chunks in which the search evaluates too
        at_once = max(
            1, min(width, CPU_CHUNK // batch) if jax.default_backend() == "cpu" else width
        )
        wide = (
            *jax.tree.map(lambda array, n=at_once: jnp.repeat(array, n, axis=0), carry[:2]),
            carry[2],
        )
        wide, _ = jax.lax.scan(one_round, wide, None, length=rounds * width // at_once)
        carry = (*jax.tree.map(lambda array, n=at_once: array[::n], wide[:2]), wide[2])
    return carry[2]


def make_leaf(game: Game, network: str) -> tuple[LeafFn, PyTree]:
    """Return a leaf of the network with the name `network`, and its parameters.

    Raises:
      ValueError: it is neither stand-in nor BLOCKSxFILTERS.
    """
    if network == "stand-in":
        features = game.board_shape[0] * game.board_shape[1] * game.num_planes
        weights = STAND_IN_SCALE * jax.random.normal(
            jax.random.key(7), (features, game.num_actions + 1)
        )

        def infer(params: Array, planes: Array) -> tuple[Array, Array]:
            product = planes.reshape(planes.shape[0], -1).astype(jnp.float32) @ params
            return product[:, :-1], jnp.tanh(0.25 * product[:, -1])  # values of about +-0.5

        return network_leaf(game, infer, random_symmetry=False), weights
    blocks, times, filters = network.partition("x")
    if not (times and blocks.isdecimal() and filters.isdecimal()):
        raise ValueError(f"the network is stand-in or BLOCKSxFILTERS such as 6x96, not {network!r}")
    height, width = game.board_shape
    # A code of moves by squares and planes has no other move, such as Go's pass.
    head: Literal["linear", "planes"] = (
        "linear" if game.num_actions % (height * width) else "planes"
    )
    settings = ResNetConfig(blocks=int(blocks), filters=int(filters), policy_head=head)
    functions = settings.build(game)
    return network_leaf(game, functions.infer, random_symmetry=False), functions.fold(
        functions.init(jax.random.key(7))
    )


def mctx_tree_bytes(num_simulations: int, game: Game) -> int:
    """Return the bytes of mctx's tree of one game: the slim state, six numbers an action and five a
    node."""
    return (num_simulations + 1) * (
        state_bytes(game) + MCTX_BYTES_PER_ACTION * game.num_actions + MCTX_BYTES_PER_NODE
    )


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(SearchArguments, args=arguments)
    check_range(chosen, "--", "size batch num_simulations repeats", 1)
    results = run(chosen)
    board = f"{chosen.size}x{chosen.size}" if chosen.game == "go" else chosen.game
    title = (
        f"{chosen.batch} games of {board}, {chosen.num_simulations} "
        f"simulations, {chosen.network} network, {device_name()}"
    )
    make_console().print(results_table(results, title, 1))
