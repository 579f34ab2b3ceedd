"""Self-play: many games step together in one compiled program over the device mesh.

A dispatch plays K moves of every game. Nothing leaves the devices in between: search, choice of the
move, resignation, rules and the restart of finished games are one `jit(shard_map)` without
collectives (AGZ methods, 'Self-play').
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from azero import mesh as mesh_lib
from azero.games.game import Game
from azero.search.batched.reuse import NewTreesFn
from azero.search.search import PreviousSearch, SearchFn, SearchOutput
from azero.selfplay.chunks import continued_in_chunks, in_chunks
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.starts import (
    Archive,
    Pool,
    check_archive,
    draw_states,
    put_states,
    select_states,
    update_archive,
)
from azero.selfplay.targets import MAX_VISITS, countable, policy_room, policy_words
from azero.selfplay.temperature import choose
from azero.selfplay.trajectory import HostArray, Step
from azero.types import Array, PyTree


class Carry(NamedTuple):
    """The games in flight. On each device those that play resigned games on come last."""

    states: PyTree
    """State[B] of real games."""
    ply: Array
    """int32[B]: moves played in the game since its start."""
    can_resign: Array
    """bool[B]: False in the share of games that is played to the end (AGZ: 10%)."""
    kept: PreviousSearch | None = None
    """The trees of the games, with an axis of chunks before their own, and int32[B, 1], the last
    moves; None where every search begins with new trees."""
    archive: Archive | None = None
    """Positions that games may begin with; None where there is none."""
    resigned: Pool | None = None
    """The positions in which games were given up last, to be played on; None where none is."""


class Selfplay(NamedTuple):
    """The compiled programs of self-play."""

    init: Callable[..., Carry]
    """(key, starts) -> fresh games, sharded over the mesh."""
    play: Callable[..., tuple[Carry, Step[Array]]]
    """(inference parameters, carry, key, resign threshold float32[], starts) -> (carry, Step[K, B,
    ...]). The carry is donated.

    `starts` are the states[P] that games begin with, each drawn with the key; None, the default, is
    the game's own beginning.
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
        kept as they are; None is a target of the search's own (`SearchOutput.weights`).
      new_trees: makes the trees of searches that keep them from move to move, or None.
      cheap_search: the search of resigned games that are played on, or None.

    Raises:
      ValueError: the games do not divide over the devices, or a search has more simulations than a
        target can count.
    """
    if most_visits is not None and most_visits > MAX_VISITS:
        raise ValueError(
            f"search.num-simulations = {most_visits}: the policy targets of self-play "
            f"count at most {MAX_VISITS:,} visits"
        )
    mesh_lib.check_divides(config.num_games, mesh, "selfplay.num-games")
    mesh_lib.check_divides(config.played_on_games, mesh, "selfplay.played-on-games")
    check_archive(config, game)
    local_games = config.num_games // mesh.size
    if (
        config.search_batch is not None
        and local_games > config.search_batch
        and local_games % config.search_batch
    ):
        raise ValueError(
            f"selfplay.search-batch = {config.search_batch} does not divide the "
            f"{local_games} games of one device"
        )
    in_parts = in_chunks if new_trees is None else continued_in_chunks
    search = in_parts(search, config.search_batch)
    fast_search = None if fast_search is None else in_parts(fast_search, config.search_batch)
    searches = Searches(search, fast_search, cheap_search, local_games)
    axis = mesh_lib.DATA_AXIS
    games, chunk = PartitionSpec(axis), PartitionSpec(None, axis)

    def init(key: Array, starts: PyTree) -> Carry:
        local_key = jax.random.fold_in(key, jax.lax.axis_index(axis))
        return first_games(config, game, local_key, config.num_slots // mesh.size, starts)

    def play(
        params: PyTree, carry: Carry, key: Array, threshold: Array, starts: PyTree
    ) -> tuple[Carry, Step[Array]]:
        keys = jax.random.split(
            jax.random.fold_in(key, jax.lax.axis_index(axis)), config.moves_per_dispatch
        )

        def move(carry: Carry, move_key: Array) -> tuple[Carry, Step[Array]]:
            return _move(
                config, game, searches, most_visits, params, carry, move_key, threshold, starts
            )

        return jax.lax.scan(move, carry, keys)

    everywhere = PartitionSpec()
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

    def fresh_trees() -> PreviousSearch:
        assert new_trees is not None
        size = min(config.search_batch or local_games, local_games)
        trees = jax.tree.map(
            lambda leaf: jnp.stack([leaf] * (local_games // size)), new_trees(size)
        )
        return PreviousSearch(trees, jnp.full((local_games, 1), -1, jnp.int32))

    sharded_trees = jax.shard_map(
        fresh_trees, mesh=mesh, in_specs=(), out_specs=games, check_vma=False
    )
    return Selfplay(
        init=jax.jit(lambda key, starts=None: sharded_init(key, starts)),
        play=jax.jit(play_all, donate_argnums=1),
        new_trees=(lambda: None) if new_trees is None else jax.jit(sharded_trees),
    )


class Searches(NamedTuple):
    """The searches of self-play."""

    full: SearchFn
    fast: SearchFn | None
    """Of playout-cap randomisation."""
    cheap: SearchFn | None
    """Of resigned games that are played on."""
    num_games: int
    """Games of a device that the first two search; those behind them are the third's."""


def first_games(
    config: SelfplayConfig, game: Game, key: Array, count: int, starts: PyTree = None
) -> Carry:
    """Return the games of a device before the first move of a run."""
    carry = new_games(config, game, key, count, starts)
    nothing = Pool(carry.states, jnp.zeros(count, bool))
    return carry._replace(
        archive=None if config.archive == "none" else Archive(nothing, carry.states),
        resigned=nothing if config.played_on_games else None,
    )


def new_games(
    config: SelfplayConfig, game: Game, key: Array, count: int, starts: PyTree = None
) -> Carry:
    """Return `count` games before their first move, each at one of the states[P] `starts` or,
    without them, at the game's own beginning."""
    if starts is None:
        states = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), game.init()
        )
    else:
        index = jax.random.randint(
            jax.random.fold_in(key, 1), (count,), 0, jax.tree.leaves(starts)[0].shape[0]
        )
        states = jax.tree.map(lambda leaf: leaf[index], starts)
    can_resign = jax.random.bernoulli(key, 1.0 - config.resign_disabled, (count,))
    return Carry(states=states, ply=jnp.zeros(count, jnp.int32), can_resign=can_resign)


def _next_games(
    config: SelfplayConfig, game: Game, key: Array, num_games: int, carry: Carry, starts: PyTree
) -> Carry:
    """Return a new game for every slot: some begin with a position of the archive; those of the
    slots from `num_games` on, once there is one, with one in which a game was given up, and they
    are not given up again, nor do they count for the threshold."""
    count = carry.ply.shape[0]
    fresh = new_games(config, game, key, count, starts)
    states, can_resign = fresh.states, fresh.can_resign
    is_played_on = jnp.arange(count) >= num_games
    if carry.archive is not None:
        share_key, draw_key = jax.random.split(jax.random.fold_in(key, 2))
        wanted = jax.random.bernoulli(share_key, config.archive_share, (count,))
        states = draw_states(draw_key, game, carry.archive.pool, wanted & ~is_played_on, states)
    if carry.resigned is not None:
        draw_key = jax.random.fold_in(key, 3)
        states = draw_states(draw_key, game, carry.resigned, is_played_on, states)
        can_resign |= is_played_on
    return fresh._replace(states=states, can_resign=can_resign)


def _move(
    config: SelfplayConfig,
    game: Game,
    searches: Searches,
    most_visits: int | None,
    params: PyTree,
    carry: Carry,
    key: Array,
    threshold: Array,
    starts: PyTree,
) -> tuple[Carry, Step[Array]]:
    """Play one move in each of the games and put new ones in the place of those that end."""
    search_key, move_key, cap_key, new_key, random_key = jax.random.split(key, 5)
    output, is_full = _search_all(config, searches, params, search_key, cap_key, carry)
    action = choose(
        move_key,
        output.visits.astype(jnp.float32),
        output.action,
        carry.ply,
        config.temperature_moves,
    )
    explores = jnp.zeros(action.shape, bool)
    if config.random_moves:
        legal = jax.vmap(game.legal_action_mask)(carry.states)
        action, explores = _explore(config, random_key, legal, action, carry.ply)
    hopeless = (output.value < threshold) & (output.best_child_value < threshold)
    resigned = hopeless & carry.can_resign & config.resign
    if searches.cheap is not None:
        resigned &= jnp.arange(resigned.shape[0]) < searches.num_games

    to_play = jax.vmap(game.to_play)(carry.states)
    stepped = jax.vmap(game.step)(carry.states, action)
    finished = jax.vmap(game.is_terminal)(stepped) | resigned
    loser_is_first = (to_play == 0)[:, None] == jnp.array([True, False])
    resign_rewards = jnp.where(loser_is_first, jnp.float32(-1.0), jnp.float32(1.0))
    rewards = jnp.where(resigned[:, None], resign_rewards, jax.vmap(game.rewards)(stepped))

    room = policy_room(game)
    if most_visits is None:
        policy = policy_words(output.weights, room)
    elif carry.kept is None:
        policy = policy_words(output.visits, min(room, most_visits))
    else:
        policy = policy_words(countable(output.visits), room)
    step = Step(
        frame=jax.vmap(game.pack_frame)(carry.states),
        to_play=to_play.astype(jnp.uint8),
        action=jnp.where(resigned, -1, action).astype(jnp.int16),
        policy=policy,
        is_target=jnp.broadcast_to(is_full, finished.shape),
        root_value=output.value.astype(jnp.float16),
        best_child_value=output.best_child_value.astype(jnp.float16),
        surprise=_surprise(output),
        is_random=explores & (config.value_before_random == "search") & ~resigned,
        finished=finished,
        resigned=resigned,
        rewards=rewards,
        can_resign=carry.can_resign,
    )
    carry = carry._replace(
        archive=carry.archive
        and update_archive(
            config, game, new_key, carry.archive, carry.states, carry.ply, output, stepped, finished
        ),
        resigned=carry.resigned and put_states(carry.resigned, resigned, carry.states),
    )
    fresh = _next_games(config, game, new_key, searches.num_games, carry, starts)
    going_on = Carry(states=stepped, ply=carry.ply + 1, can_resign=carry.can_resign)
    games = select_states(finished, fresh, going_on)
    kept = None
    if output.tree is not None:
        played = jnp.where(finished, -1, action)[: searches.num_games, None]
        kept = PreviousSearch(output.tree, played)
    return games._replace(kept=kept, archive=carry.archive, resigned=carry.resigned), step


def _surprise(output: SearchOutput) -> Array:
    """Return float16[B]: the Kullback-Leibler divergence of the search's policy from the network's
    in nats, 0 where the search does not tell the network's."""
    if output.prior is None:
        return jnp.zeros(output.value.shape, jnp.float16)
    known = (output.weights > 0) & (output.prior > 0)
    ratio = jnp.where(known, output.weights, 1.0) / jnp.where(known, output.prior, 1.0)
    divergence = jnp.sum(jnp.where(known, output.weights * jnp.log(ratio), 0.0), axis=-1)
    return jnp.clip(divergence, 0.0, 100.0).astype(jnp.float16)


def _explore(
    config: SelfplayConfig, key: Array, legal: Array, action: Array, ply: Array
) -> tuple[Array, Array]:
    """Return `action` int32[B] with some of the moves at the start of a game replaced by legal ones
    (bool[B, A]), all equally likely; and bool[B], which were."""
    share_key, action_key = jax.random.split(key)
    explores = (ply < config.random_moves) & jax.random.bernoulli(
        share_key, config.random_share, ply.shape
    )
    anything = jax.random.categorical(action_key, jnp.where(legal, 0.0, -jnp.inf), axis=-1).astype(
        action.dtype
    )
    return jnp.where(explores, anything, action), explores


def _search_all(
    config: SelfplayConfig,
    searches: Searches,
    params: PyTree,
    key: Array,
    cap_key: Array,
    carry: Carry,
) -> tuple[SearchOutput, Array]:
    """Search all games of a device; those that play resigned games on by the cheap search.

    Returns:
      What was found; and bool[] or bool[B], whether by a full search.
    """
    if searches.cheap is None:
        return _capped_search(config, searches, params, key, cap_key, carry.states, carry.kept)
    count = searches.num_games
    first, last = (
        jax.tree.map(lambda leaf, part=part: leaf[part], carry.states)
        for part in (slice(None, count), slice(count, None))
    )
    output, is_full = _capped_search(config, searches, params, key, cap_key, first, carry.kept)
    cheap = searches.cheap(params, jax.random.fold_in(key, 1), last)
    both = jax.tree.map(
        lambda *parts: jnp.concatenate(parts),
        output._replace(tree=None),
        cheap._replace(tree=None),
    )
    number = jnp.arange(carry.ply.shape[0])
    return both._replace(tree=output.tree), (number < count) & is_full


def _capped_search(
    config: SelfplayConfig,
    searches: Searches,
    params: PyTree,
    key: Array,
    cap_key: Array,
    states: PyTree,
    kept: PreviousSearch | None,
) -> tuple[SearchOutput, Array]:
    """Search in full, or for a random share of the moves only a little (one draw for all games of a
    device, so that the saving is real)."""
    arguments = (params, key, states) if kept is None else (params, key, states, kept)
    if searches.fast is None:
        return searches.full(*arguments), jnp.array(True)
    is_full = jax.random.bernoulli(cap_key, config.full_search_probability)
    return jax.lax.cond(is_full, searches.full, searches.fast, *arguments), is_full


def to_host(step: Step[Array]) -> Step[HostArray]:
    """Copy this host's part of a Step[K, B, ...] into numpy arrays [K, local B, ...]."""

    def local(leaf: Array) -> np.ndarray:
        shards = {shard.index[1].start or 0: shard for shard in leaf.addressable_shards}
        return np.concatenate([np.asarray(shards[start].data) for start in sorted(shards)], axis=1)

    return Step(*map(local, step))
