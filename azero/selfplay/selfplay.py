"""Self-play: many games in parallel, in one compiled program over the device mesh.

A dispatch plays K moves of every game. Nothing leaves the devices in between: search, choice of the
move, resignation, rules and the restart of finished games are one `jit(shard_map)` without
collectives (AGZ methods, 'Self-play').
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from azero import mesh as mesh_lib
from azero.games.game import Game
from azero.search.batched.reuse import NewTreesFn
from azero.search.search import PreviousSearch, SearchFn, SearchOutput
from azero.selfplay.carry import Carry, first_games
from azero.selfplay.move import Searches, play_move
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.starts import check_archive
from azero.selfplay.targets import MAX_VISITS
from azero.selfplay.trajectory import HostArray, Step
from azero.types import Array, PyTree


class Selfplay(NamedTuple):
    """The compiled programs of self-play."""

    init: Callable[..., Carry]
    """(key, starts) -> fresh games, sharded over the mesh."""
    play: Callable[..., tuple[Carry, Step[Array]]]
    """(inference parameters, carry, key, resign threshold float32[], starts) -> (carry, Step[K, B,
    ...]). The carry is donated.

    `starts` are the states[P] that games start from, drawn with the key; None, the default, is the
    start of the game.
    """
    new_trees: Callable[[], PreviousSearch | None]
    """() -> what `Carry.kept` is before the first move of an iteration. Trees are kept within one:
    the next has another network, and a checkpoint would be as large as they are."""


def make_selfplay(
    config: SelfplayConfig,
    game: Game,
    search: SearchFn,
    fast_search: SearchFn | None,
    mesh: Mesh,
    most_visits: int | None = None,
    new_trees: NewTreesFn | None = None,
    cheap_search: SearchFn | None = None,
) -> Selfplay:
    """Make the compiled programs of self-play.

    Args:
      config: games at once, moves per dispatch, temperature, resignation.
      game: the rules.
      search: the full search of one batch of positions.
      fast_search: the smaller search of playout-cap randomisation (KG section 3.1), or None.
      mesh: the devices over which the games are spread.
      most_visits: the simulations of a full search whose visits are the policy target, which are
        kept as they are; None for a search with its own target (`SearchOutput.weights`).
      new_trees: makes the trees of searches that keep them from move to move, or None.
      cheap_search: the search of resigned games that are played to the end, or None.

    Raises:
      ValueError: the games do not divide over the devices, or a search has more simulations than a
        target can count.
    """
    _check(config, game, mesh, most_visits)
    local_games = config.num_games // mesh.size
    in_parts = in_chunks if new_trees is None else continued_in_chunks
    searches = Searches(
        in_parts(search, config.search_batch),
        None if fast_search is None else in_parts(fast_search, config.search_batch),
        cheap_search,
        local_games,
        most_visits,
    )
    axis, everywhere = mesh_lib.DATA_AXIS, PartitionSpec()
    games, chunk = PartitionSpec(axis), PartitionSpec(None, axis)

    def init(key: Array, starts: PyTree) -> Carry:
        local_key = jax.random.fold_in(key, jax.lax.axis_index(axis))
        count = config.num_slots // mesh.size
        return first_games(config, game, local_key, count, local_games, starts)

    def play(
        params: PyTree, carry: Carry, key: Array, threshold: Array, starts: PyTree
    ) -> tuple[Carry, Step[Array]]:
        keys = jax.random.split(
            jax.random.fold_in(key, jax.lax.axis_index(axis)), config.moves_per_dispatch
        )

        def move(carry: Carry, move_key: Array) -> tuple[Carry, Step[Array]]:
            return play_move(config, game, searches, params, carry, move_key, threshold, starts)

        return jax.lax.scan(move, carry, keys)

    sharded_init = jax.shard_map(
        init, mesh=mesh, in_specs=(everywhere, everywhere), out_specs=games, check_vma=False
    )
    sharded_play = jax.shard_map(
        play,
        mesh=mesh,
        in_specs=(everywhere, games, everywhere, everywhere, everywhere),
        out_specs=(games, chunk),
        check_vma=False,
    )

    def play_all(
        params: PyTree, carry: Carry, key: Array, threshold: Array, starts: PyTree = None
    ) -> tuple[Carry, Step[Array]]:
        return sharded_play(params, carry, key, threshold, starts)

    return Selfplay(
        init=jax.jit(lambda key, starts=None: sharded_init(key, starts)),
        play=jax.jit(play_all, donate_argnums=1),
        new_trees=(lambda: None)
        if new_trees is None
        else _tree_maker(new_trees, local_games, config.search_batch, mesh),
    )


def _check(config: SelfplayConfig, game: Game, mesh: Mesh, most_visits: int | None) -> None:
    """Check the settings against the devices and the targets; see `make_selfplay`."""
    if most_visits is not None and most_visits > MAX_VISITS:
        raise ValueError(
            f"search.num-simulations = {most_visits}: the policy targets of self-play "
            f"count at most {MAX_VISITS:,} visits"
        )
    mesh_lib.check_divides(config.num_games, mesh, "selfplay.num-games")
    mesh_lib.check_divides(config.played_on_games, mesh, "selfplay.played-on-games")
    check_archive(config, game)
    local_games, size = config.num_games // mesh.size, config.search_batch
    if size is not None and local_games > size and local_games % size:
        raise ValueError(
            f"selfplay.search-batch = {size} does not divide the {local_games} games of one device"
        )


def _tree_maker(
    new_trees: NewTreesFn, local_games: int, search_batch: int | None, mesh: Mesh
) -> Callable[[], PreviousSearch]:
    """Return the compiled `Selfplay.new_trees` of searches that keep their trees."""
    size = min(search_batch or local_games, local_games)

    def make() -> PreviousSearch:
        trees = jax.tree.map(
            lambda leaf: jnp.stack([leaf] * (local_games // size)), new_trees(size)
        )
        return PreviousSearch(trees, jnp.full((local_games, 1), -1, jnp.int32))

    games = PartitionSpec(mesh_lib.DATA_AXIS)
    return jax.jit(jax.shard_map(make, mesh=mesh, in_specs=(), out_specs=games, check_vma=False))


def to_host(step: Step[Array]) -> Step[HostArray]:
    """Copy this host's part of a Step[K, B, ...] into numpy arrays [K, local B, ...]."""

    def local(leaf: Array) -> np.ndarray:
        shards = {shard.index[1].start or 0: shard for shard in leaf.addressable_shards}
        return np.concatenate([np.asarray(shards[start].data) for start in sorted(shards)], axis=1)

    return Step(*map(local, step))


def in_chunks(search: SearchFn, size: int | None) -> SearchFn:
    """Return a search of the same positions, `size` at a time, that keeps no tree: trees take more
    memory than anything else in a run."""

    def run(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        count = jax.tree.leaves(roots)[0].shape[0]
        if size is None or size >= count:
            return search(params, key, roots)._replace(tree=None)

        def chunk(inputs: tuple[Array, PyTree]) -> SearchOutput:
            return search(params, *inputs)._replace(tree=None)

        parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), roots)
        output = jax.lax.map(chunk, (jax.random.split(key, count // size), parts))
        return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), output)

    return run


def continued_in_chunks(search: SearchFn, size: int | None) -> SearchFn:
    """Return a search of the same positions, `size` at a time, that continues the trees of the
    previous search: trees [C, ...] for C chunks, updated in place."""

    def run(params: PyTree, key: Array, roots: PyTree, kept: PreviousSearch) -> SearchOutput:
        chunks = jax.tree.leaves(kept.tree)[0].shape[0]

        def chunk(trees: PyTree, inputs: tuple[Array, Array, PyTree, Array]) -> Any:
            i, key, roots, moves = inputs
            tree = jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, 0, False), trees)
            output = search(params, key, roots, PreviousSearch(tree, moves))
            trees = jax.tree.map(
                lambda leaf, new: jax.lax.dynamic_update_index_in_dim(leaf, new, i, 0),
                trees,
                output.tree,
            )
            return trees, output._replace(tree=None)

        parts = jax.tree.map(
            lambda leaf: leaf.reshape(chunks, -1, *leaf.shape[1:]), (roots, kept.moves)
        )
        keys = key[None] if chunks == 1 else jax.random.split(key, chunks)
        numbers = jnp.arange(chunks, dtype=jnp.int32)
        trees, outputs = jax.lax.scan(chunk, kept.tree, (numbers, keys, *parts))
        joined: SearchOutput = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), outputs)
        return joined._replace(tree=trees)

    return run
