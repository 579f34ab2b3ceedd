"""Positions that games of self-play start from, other than the start of the game: an archive of
positions of earlier games (Trudeau & Bowling 2023, Go-Exploit), and those of resigned games."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games.batching import select_states
from azero.games.game import Game
from azero.search.batched.reductions import categorical
from azero.search.search import SearchOutput
from azero.selfplay.settings import SelfplayConfig
from azero.types import Array, PyTree


class Pool(NamedTuple):
    """Start positions, one of each slot's earlier games."""

    states: PyTree
    """states[B] of real games."""
    is_filled: Array
    """bool[B]"""


class Archive(NamedTuple):
    """Positions of finished games, and of those in flight."""

    pool: Pool
    """One position of the last game that ended in each slot."""
    candidates: PyTree
    """states[B]: of the game in flight, each of its positions so far equally likely."""


def check_archive(config: SelfplayConfig, game: Game) -> None:
    """Check that a game can start from positions of other games.

    Raises:
      ValueError: its states do not hold the earlier positions that its planes show.
    """
    begins_elsewhere = config.archive != "none" or config.played_on_games > 0
    if (
        begins_elsewhere
        and game.num_frames > 1
        and not hasattr(jax.eval_shape(game.init), "frames")
    ):
        raise ValueError(
            f"selfplay.archive and selfplay.played-on-games need a game whose states have their "
            f"newest positions in `frames`; those of {game.name} do not"
        )


def put_states(pool: Pool, mask: Array, states: PyTree) -> Pool:
    """Put states[B] in the places of a pool where bool[B] `mask` holds."""
    return Pool(select_states(mask, states, pool.states), pool.is_filled | mask)


def draw_states(key: Array, game: Game, pool: Pool, wanted: Array, others: PyTree) -> PyTree:
    """Return states[B]: where bool[B] `wanted` holds, one drawn from the pool, each equally likely;
    elsewhere, and while the pool is empty, those of `others`.

    The positions before it are not shown to the network, as in a game from a file of positions: the
    replay does not have them. Repetitions of them remain illegal.
    """
    logits = jnp.where(pool.is_filled, 0.0, -jnp.inf)
    index = jax.random.categorical(key, logits, shape=wanted.shape)
    drawn = jax.tree.map(lambda leaf: leaf[index], pool.states)
    if game.num_frames > 1:
        drawn = dataclasses.replace(drawn, frames=drawn.frames.at[:, 1:].set(0))
    return select_states(wanted & pool.is_filled.any(), drawn, others)


def update_archive(
    config: SelfplayConfig,
    game: Game,
    key: Array,
    archive: Archive,
    states: PyTree,
    ply: Array,
    output: SearchOutput,
    played: PyTree,
    finished: Array,
) -> Archive:
    """Return the archive after a move in each game.

    A game leaves one of its positions when it ends. Which one is known before its length is: the
    position after move t takes the place of the candidate with probability 1 / t.

    Args:
      config: what is archived.
      game: the rules.
      key: of the draws.
      archive: before the move.
      states: states[B] before the move.
      ply: int32[B], moves before it since the start.
      output: of the search.
      played: states[B] after the move.
      finished: bool[B], the game has ended with it and leaves a position.
    """
    move_key, take_key = jax.random.split(jax.random.fold_in(key, 4))
    pool = put_states(archive.pool, finished & (ply > 0), archive.candidates)
    found = played
    if config.archive == "searches":
        # A position of the search's tree: of a move in proportion to its visits. If it ends the
        # game, the move that was played may not.
        logits = jnp.where(output.weights > 0, jnp.log(output.weights), -jnp.inf)
        branch = categorical(move_key, logits)
        searched = jax.vmap(game.step)(states, branch)
        found = select_states(jax.vmap(game.is_terminal)(searched), played, searched)
    share = 1.0 / (ply.astype(jnp.float32) + 1.0)
    takes = jax.random.bernoulli(take_key, share) & ~jax.vmap(game.is_terminal)(found)
    return Archive(pool, select_states(takes, found, archive.candidates))
