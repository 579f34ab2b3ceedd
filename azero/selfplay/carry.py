"""The games of self-play on one device: those in flight, and the new ones that take their place."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.batching import repeat_state
from azero.games.game import Game
from azero.search.search import PreviousSearch
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.starts import Archive, Pool, draw_states
from azero.types import Array, PyTree


class Carry(NamedTuple):
    """The games in flight. On each device the slots that play resigned games to the end come
    last."""

    states: PyTree
    """State[B] of real games."""
    ply: Array
    """int32[B]: moves played in the game since its start."""
    can_resign: Array
    """bool[B]: False in the share of games that is played to the end (AGZ: 10%)."""
    kept: PreviousSearch | None = None
    """The trees of the games, with an axis of chunks before their own, and int32[B, 1], the last
    moves; None where every search starts with new trees."""
    archive: Archive | None = None
    """Positions that games may start from; None without an archive."""
    resigned: Pool | None = None
    """The positions in which games were last resigned, to be played to the end; None where that is
    off."""


def first_games(
    config: SelfplayConfig, game: Game, key: Array, count: int, num_games: int, starts: PyTree
) -> Carry:
    """Return the games of a device before the first move of a run. Those from `num_games` on do not
    count for the threshold of resignation."""
    carry = new_games(config, game, key, count, starts)
    nothing = Pool(carry.states, jnp.zeros(count, bool))
    return carry._replace(
        can_resign=carry.can_resign | (jnp.arange(count) >= num_games),
        archive=None if config.archive == "none" else Archive(nothing, carry.states),
        resigned=nothing if config.played_on_games else None,
    )


def new_games(
    config: SelfplayConfig, game: Game, key: Array, count: int, starts: PyTree = None
) -> Carry:
    """Return `count` games before their first move, each at one of the states[P] `starts` or,
    without them, at the game's own beginning."""
    if starts is None:
        states = repeat_state(game.init(), count)
    else:
        index = jax.random.randint(
            jax.random.fold_in(key, 1), (count,), 0, jax.tree.leaves(starts)[0].shape[0]
        )
        states = jax.tree.map(lambda leaf: leaf[index], starts)
    can_resign = jax.random.bernoulli(key, 1.0 - config.resign_disabled, (count,))
    return Carry(states=states, ply=jnp.zeros(count, jnp.int32), can_resign=can_resign)


def next_games(
    config: SelfplayConfig, game: Game, key: Array, num_games: int, carry: Carry, starts: PyTree
) -> Carry:
    """Return a new game for every slot. Some start from a position of the archive. Those of the
    slots from `num_games` on start, once there is one, from a position in which a game was
    resigned; they are not resigned again and do not count for the threshold."""
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


def slots_before(config: SelfplayConfig, before: int, now: int) -> np.ndarray:
    """Return int64[B]: from which slot of a run on `before` devices each slot of the same run on
    `now` devices takes its game, so that resigned games that are played on remain such."""

    def in_order(devices: int) -> np.ndarray:
        """Return the slots, those of played-on games last."""
        place = np.arange(config.num_slots) % (config.num_slots // devices)
        return np.argsort(place >= config.num_games // devices, kind="stable")

    slots = np.arange(config.num_slots)
    if before != now:
        slots[in_order(now)] = in_order(before)
    return slots
