"""The policy of reinforcement learning of AlphaGo (2016): games against a pool of earlier policies,
and REINFORCE on them by the one learner.

Source: AG16 methods, 'Policy network: reinforcement learning'. An iteration is a mini-batch of n
games against one opponent, drawn uniformly from the pool, and one step with the mean over the games
of sum_t grad log p(a_t | s_t) (z_t - v(s_t)) over the moves of the policy that learns; those of the
opponent are not its own choice, and are left out. v is 0, or the value network's output in the
paper's second pass. A generator of events without input or output of its own; every draw is a
function of (seed, iteration), so a continued run repeats what an uninterrupted one does.
"""

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import jax
import numpy as np
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.data.sample import Batch, Samples, unpack
from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.sensible import sensible_moves
from azero.learn.learner import TrainState, make_learner, place_samples, reinforce_loss
from azero.learn.metrics import StepMetrics
from azero.match.compiled import Match, MatchGames, make_match
from azero.players.alphago2016 import make_go
from azero.search.batched.policy import make_policy
from azero.search.leaf import network_leaf
from azero.search.search import SearchFn
from azero.selfplay.policy_games import Trace, make_tracer
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import HostArray
from azero.settings import Config
from azero.train.events import Event, Phase
from azero.types import Array, PyTree

# Streams of an iteration's random numbers.
_OPPONENT, _GAMES = range(2)


Baseline = Callable[[Samples], Array]
"""Positions [B] -> their expected results float32[B] for the side to move."""


@dataclass
class ReinforceState:
    """The whole state of a run; the pool is stored next to the checkpoints."""

    train: TrainState
    pool: list[PyTree]
    """Variables of earlier policies; the first is the initial policy of the run."""
    iteration: int = 0
    num_kept: int = 0
    """Number of pool members on disk."""


class OwnMoves(NamedTuple):
    """The moves of one player in B games, ordered by ply, then game: P positions."""

    samples: Samples
    allowed: HostArray
    """bool[P, A]: the moves that could be chosen."""


def make_sampling_policy(
    game: Go, infer: Callable[[PyTree, Array], tuple[Array, Array]]
) -> SearchFn:
    """Make the search that takes a policy network's own choice among sensible moves, without random
    symmetries."""
    leaf = network_leaf(cast(Game, game), infer, random_symmetry=False)
    return make_policy(cast(Game, game), leaf, functools.partial(sensible_moves, game))


def make_policy_games(
    game: Go, policy: SearchFn, num_games: int, mesh: Mesh
) -> tuple[Match, Callable[[HostArray], Trace]]:
    """Make the match of a policy, with two sets of parameters, in which every move is sampled, and
    the function that replays its games."""
    rules = cast(Game, game)
    match = make_match(
        rules,
        policy,
        policy,
        num_games,
        temperature_moves=rules.max_moves,
        moves_per_chunk=16,
        mesh=mesh,
    )
    return match, make_tracer(rules, functools.partial(sensible_moves, game), mesh)


def own_moves(games: MatchGames, trace: Trace, num_frames: int) -> OwnMoves:
    """Return the moves of player A of a match without openings, each with the result of its game
    for A."""
    length = games.actions.shape[1]
    first_mover = np.arange(length)[:, None] % 2 == 0
    ply, game = np.nonzero((first_mover == games.a_moves_first[None]) & (games.actions.T >= 0))
    back = ply[:, None] - np.arange(num_frames)
    frames = trace.frames[np.maximum(back, 0), game[:, None]] * (back >= 0)[..., None]
    count = len(ply)
    samples = Samples(
        frames=frames.astype(np.uint32),
        to_play=(ply % 2).astype(np.uint8),
        policy=words_of(games.actions[game, ply], np.ones(count, np.uint16))[:, None],
        is_target=np.ones(count, bool),
        value=games.rewards[game].astype(np.float32),
        symmetry=np.zeros(count, np.uint8),  # the policy chose in the position as it was
    )
    return OwnMoves(samples, trace.allowed[ply, game])


class Reinforce:
    """The compiled programs of one configuration, and the loop over them."""

    def __init__(
        self,
        config: Config,
        mesh: Mesh,
        start: PyTree,
        pool_every: int,
        baseline: Baseline | None = None,
    ) -> None:
        """Build the programs; nothing is compiled yet. `config.selfplay.num_games` is n;
        `learner.batch_size` positions are learned from at a time, which all make one step. The run
        starts from the variables `start`; the baseline is the second pass's, None is 0.

        Raises:
          ValueError: settings do not fit each other or the devices.
        """
        if config.network.name != "policy2016":
            raise ValueError(
                f"REINFORCE improves a policy network of 2016, not a network {config.network.name}"
            )
        mesh_lib.check_divides(config.selfplay.num_games, mesh, "selfplay.num-games")
        self.config, self.mesh, self._pool_every = config, mesh, pool_every
        self.game = make_go(config.game)
        self._start, self._baseline = start, baseline
        game = cast(Game, self.game)
        network = config.network.build(game)
        self.learner = make_learner(config.learner, network, game, mesh, reinforce_loss)
        self._fold = jax.jit(network.fold, out_shardings=mesh_lib.replicated(mesh))
        policy = make_sampling_policy(self.game, network.infer)
        self._match, self._trace = make_policy_games(
            self.game, policy, config.selfplay.num_games, mesh
        )

    def fresh_state(self) -> ReinforceState:
        """Return the state before the first iteration."""
        train = self.learner.init(jax.random.key(self.config.run.seed))
        return ReinforceState(train.starting_with(self._start, self.mesh), [self._start])

    def iterate(self, state: ReinforceState) -> Iterator[Event]:
        """Run one iteration on `state`, in place; the state may be saved at its end."""
        started = time.monotonic()
        yield Phase("games against earlier policies")
        random = np.random.default_rng([self.config.run.seed, state.iteration, _OPPONENT])
        opponent = int(random.integers(len(state.pool)))
        key = jax.random.fold_in(
            jax.random.fold_in(jax.random.key(self.config.run.seed), state.iteration), _GAMES
        )
        games = self._match(
            self._fold(state.train.variables), self._fold(state.pool[opponent]), key
        )
        moves = own_moves(games, self._trace(games.actions), self.game.num_frames)
        played = time.monotonic()
        yield from self._learn(state, moves)
        state.iteration += 1
        if state.iteration % self._pool_every == 0:
            state.pool.append(jax.device_get(state.train.variables))
        now, score = time.monotonic(), games.result.total.score
        yield {
            "games": state.iteration * self.config.selfplay.num_games,
            "score": score,
            "score_against_the_first": score if opponent == 0 else None,
            "opponent": opponent * self._pool_every,
            "pool": len(state.pool),
            "game_length": float(games.lengths.mean()),
            "selfplay_seconds": played - started,
            "learn_seconds": now - played,
            "positions_per_second": len(moves.allowed) / (now - started),
        }

    def _learn(self, state: ReinforceState, moves: OwnMoves) -> Iterator[Event]:
        """Take one step with the gradients of all moves, `learner.batch_size` at a time."""
        yield Phase("learning")
        size, total = self.config.learner.batch_size, len(moves.allowed)
        gradients = self.learner.no_gradients(state.train)
        collected = StepMetrics(int(state.train.step))
        for first in range(0, total, size):
            count = min(size, total - first)
            # One shape, one compilation: the last batch is padded with moves of weight 0.
            chosen = np.resize(np.arange(first, first + count), size)
            samples = jax.tree.map(lambda column, chosen=chosen: column[chosen], moves.samples)
            samples = place_samples(self.mesh, samples._replace(is_target=np.arange(size) < count))
            batch = self.batch(samples, moves.allowed[chosen])
            # The metrics are means over the moves of the batch; the step is a sum over moves, and a
            # mean over games.
            share = np.float32(count / self.config.selfplay.num_games)
            gradients, metrics = self.learner.add_gradients(state.train, gradients, batch, share)
            collected.add(metrics)
        state.train = self.learner.update(state.train, gradients)
        yield collected.means()

    def batch(self, samples: Samples, allowed: HostArray) -> Batch:
        """Return the batch of the learner; its `value` is the result minus the baseline."""
        batch = unpack(cast(Game, self.game), samples)
        return batch._replace(
            value=batch.value - (0.0 if self._baseline is None else self._baseline(samples)),
            allowed=jax.device_put(allowed, mesh_lib.batch_sharded(self.mesh)),
        )
