"""One move of self-play in every game of a device: search, choice of the move, resignation, rules,
and the record of the position."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games.batching import select_states
from azero.games.game import Game
from azero.search.batched.reductions import categorical
from azero.search.search import PreviousSearch, SearchFn, SearchOutput
from azero.selfplay.carry import Carry, next_games
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.starts import put_states, update_archive
from azero.selfplay.targets import countable, policy_room, policy_words
from azero.selfplay.temperature import choose
from azero.selfplay.trajectory import Step
from azero.types import Array, PyTree


class Searches(NamedTuple):
    """The searches of self-play."""

    full: SearchFn
    fast: SearchFn | None
    """Of playout-cap randomisation."""
    cheap: SearchFn | None
    """Of resigned games that are played on."""
    num_games: int
    """Games of a device for the first two searches; `cheap` searches those after them."""
    most_visits: int | None
    """Simulations of the full search; None where its policy target is not its visits."""

    def is_played_on(self, count: int) -> Array:
        """Return bool[B]: which of all `count` slots of a device are for resigned games that are
        played on."""
        return jnp.arange(count) >= self.num_games


def play_move(
    config: SelfplayConfig,
    game: Game,
    searches: Searches,
    params: PyTree,
    carry: Carry,
    key: Array,
    threshold: Array,
    starts: PyTree,
) -> tuple[Carry, Step[Array]]:
    """Play one move in each of the games and replace those that end by new ones; the arguments are
    those of `Selfplay.play`."""
    search_key, move_key, cap_key, new_key, random_key = jax.random.split(key, 5)
    output, is_full = _search_all(config, searches, params, search_key, cap_key, carry)
    action, explores = _choose(config, game, searches, move_key, random_key, output, carry)
    resigned = _resigns(config, searches, output, carry, threshold)
    to_play = jax.vmap(game.to_play)(carry.states)
    stepped = jax.vmap(game.step)(carry.states, action)
    finished = jax.vmap(game.is_terminal)(stepped) | resigned
    step = Step(
        frame=jax.vmap(game.pack_frame)(carry.states),
        to_play=to_play.astype(jnp.uint8),
        action=jnp.where(resigned, -1, action).astype(jnp.int16),
        policy=_policy_target(game, searches, output, carry.kept is not None),
        is_target=jnp.broadcast_to(is_full, finished.shape),
        root_value=output.value.astype(jnp.float16),
        best_child_value=output.best_child_value.astype(jnp.float16),
        surprise=_surprise(output),
        is_random=explores & (config.value_before_random == "search") & ~resigned,
        finished=finished,
        resigned=resigned,
        rewards=_rewards(game, stepped, to_play, resigned),
        can_resign=carry.can_resign,
    )
    # Decided positions are no starts: those of resigned games that are played on.
    left = finished & ~searches.is_played_on(len(finished))
    carry = carry._replace(
        archive=carry.archive
        and update_archive(
            config, game, new_key, carry.archive, carry.states, carry.ply, output, stepped, left
        ),
        resigned=carry.resigned and put_states(carry.resigned, resigned, carry.states),
    )
    fresh = next_games(config, game, new_key, searches.num_games, carry, starts)
    continued = Carry(states=stepped, ply=carry.ply + 1, can_resign=carry.can_resign)
    games = select_states(finished, fresh, continued)
    kept = None
    if output.tree is not None:
        played = jnp.where(finished, -1, action)[: searches.num_games, None]
        kept = PreviousSearch(output.tree, played)
    return games._replace(kept=kept, archive=carry.archive, resigned=carry.resigned), step


def _choose(
    config: SelfplayConfig,
    game: Game,
    searches: Searches,
    key: Array,
    random_key: Array,
    output: SearchOutput,
    carry: Carry,
) -> tuple[Array, Array]:
    """Return the moves int32[B], and bool[B], which of them are exploratory.

    Resigned games that are played on are not at their start, whatever their own moves are.
    """
    ply = carry.ply
    if carry.resigned is not None:
        is_late = searches.is_played_on(len(ply)) & carry.resigned.is_filled.any()
        ply = jnp.where(is_late, jnp.iinfo(ply.dtype).max, ply)
    visits = output.visits.astype(jnp.float32)
    action = choose(key, visits, output.action, ply, config.temperature_moves)
    if not config.random_moves:
        return action, jnp.zeros(action.shape, bool)
    legal = jax.vmap(game.legal_action_mask)(carry.states)
    return _explore(config, random_key, legal, action, ply)


def _resigns(
    config: SelfplayConfig, searches: Searches, output: SearchOutput, carry: Carry, threshold: Array
) -> Array:
    """Return bool[B]: whether the side to move resigns. Resigned games that are played on are not
    resigned again.

    Values are rounded to float16, as in the record that the threshold is calibrated on: where many
    games have one value, all of them could lie just below it.
    """
    point = jnp.maximum(output.value, output.best_child_value)
    hopeless = jax.lax.reduce_precision(point, exponent_bits=5, mantissa_bits=10) < threshold
    resigned = hopeless & carry.can_resign & config.resign
    if searches.cheap is not None:
        resigned &= ~searches.is_played_on(len(resigned))
    return resigned


def _rewards(game: Game, states: PyTree, to_play: Array, resigned: Array) -> Array:
    """Return float32[B, 2]: the rewards after the move; where a game was resigned, `to_play`
    loses."""
    loser_is_first = (to_play == 0)[:, None] == jnp.array([True, False])
    resign_rewards = jnp.where(loser_is_first, jnp.float32(-1.0), jnp.float32(1.0))
    return jnp.where(resigned[:, None], resign_rewards, jax.vmap(game.rewards)(states))


def _policy_target(
    game: Game, searches: Searches, output: SearchOutput, has_kept_trees: bool
) -> Array:
    """Return the packed policy target, uint32[B, words]: visits or, where the search has a target
    of its own, its weights."""
    room = policy_room(game)
    if searches.most_visits is None:
        return policy_words(output.weights, room)
    if has_kept_trees:
        return policy_words(countable(output.visits), room)
    return policy_words(output.visits, min(room, searches.most_visits))


def _surprise(output: SearchOutput) -> Array:
    """Return float16[B]: the Kullback-Leibler divergence of the search's policy from the network's
    in nats, 0 where the search does not report the network's."""
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
    (bool[B, A]), all equally likely; and bool[B], where this was done."""
    share_key, action_key = jax.random.split(key)
    explores = (ply < config.random_moves) & jax.random.bernoulli(
        share_key, config.random_share, ply.shape
    )
    anything = categorical(action_key, jnp.where(legal, 0.0, -jnp.inf)).astype(action.dtype)
    return jnp.where(explores, anything, action), explores


def _search_all(
    config: SelfplayConfig,
    searches: Searches,
    params: PyTree,
    key: Array,
    cap_key: Array,
    carry: Carry,
) -> tuple[SearchOutput, Array]:
    """Search all games of a device, resigned ones that are played to the end with the cheap search.

    Returns:
      The output; and bool[] or bool[B], whether the search was a full one.
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
        lambda *parts: jnp.concatenate(parts), output._replace(tree=None), cheap._replace(tree=None)
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
    """Run the full search, or for a random share of the moves the fast one (one draw for all games
    of a device, so that time is saved)."""
    arguments = (params, key, states) if kept is None else (params, key, states, kept)
    if searches.fast is None:
        return searches.full(*arguments), jnp.array(True)
    is_full = jax.random.bernoulli(cap_key, config.full_search_probability)
    return jax.lax.cond(is_full, searches.full, searches.fast, *arguments), is_full
