"""The compiled programs of self-play and matches, of one configuration on one mesh: for the loop
and for the workers of a cluster."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.games.contract import check_contract
from azero.match.compiled import Match, make_match
from azero.match.openings import draw_openings
from azero.match.score import MatchResult
from azero.players.searches import match_leaf, match_settings
from azero.search.batched.reuse import make_new_trees
from azero.search.contract import check_search
from azero.search.leaf import network_leaf
from azero.search.search import LeafFn, SearchFn
from azero.selfplay.selfplay import Selfplay, make_selfplay
from azero.settings import Config
from azero.train.estimate import full_simulations
from azero.types import Array, PyTree

# Keys are folded with these numbers, so that different parts never draw the same numbers:
# an iteration's key with one of
PLAY, MATCH = 0, 2
# and the seed's key with one of these; iterations follow them.
START, WORKER, FIRST_ITERATION = 3, 4, 16


class Programs:
    """Self-play and matches of one configuration. No program is compiled at creation; impossible
    matches are refused there."""

    def __init__(self, config: Config, mesh: Mesh):
        """Build the programs.

        Raises:
          ValueError: settings do not fit each other or the devices, or the game, the network or
            the search is not as `Game`, `Network` and `SearchOutput` say.
        """
        self.config = config
        self.mesh = mesh
        self.game = config.game.build()
        check_contract(self.game)
        platform = mesh.devices.flat[0].platform
        self.network = config.network.build(self.game, platform)
        check_search(config.search, self.game)
        leaf = network_leaf(self.game, self.network.infer, config.search.random_symmetry)
        fast = config.selfplay.fast_simulations
        fast_search = None if fast is None else config.search.fast(fast).build(self.game, leaf)
        counts = {count for _, count in config.selfplay.simulations}
        most = config.search.num_simulations
        wanted = {"simulations": max(counts, default=0), "fast-simulations": fast or 0}
        for name, count in wanted.items():
            if count > most:
                problem = f"{count} is above search.num-simulations = {most}"
                raise ValueError(f"selfplay.{name}: {problem}")
        new_trees = make_new_trees(config.search, self.game, most)
        self._selfplay = {
            count: make_selfplay(
                config.selfplay,
                self.game,
                dataclasses.replace(config.search, num_simulations=count).build(self.game, leaf),
                fast_search,
                mesh,
                count if config.search.TEACHES_VISITS else None,
                new_trees,
                self._cheap_search(leaf),
            )
            for count in counts or {most}
        }
        self.fold = jax.jit(self.network.fold, out_shardings=mesh_lib.replicated(mesh))
        self._match = self._make_match() if self.plays_matches else None
        self.are_equal = jax.jit(_are_equal, out_shardings=mesh_lib.replicated(mesh))

    def _cheap_search(self, leaf: LeafFn) -> SearchFn | None:
        """Return the search of resigned games that are played to the end, if there are any."""
        selfplay = self.config.selfplay
        if not selfplay.played_on_games:
            return None
        return self.config.search.fast(selfplay.played_on_simulations).build(self.game, leaf)

    def selfplay_at(self, iteration: int) -> Selfplay:
        """Return the programs of self-play after `iteration` iterations; all have the same
        `init`."""
        return self._selfplay[full_simulations(self.config, iteration)]

    @property
    def match_games(self) -> int:
        """Games of a match: the gate's, or those of the Elo curve."""
        evaluation = self.config.evaluation
        return evaluation.gate_games if evaluation.gate else evaluation.games

    @property
    def plays_matches(self) -> bool:
        """Whether a run has matches at all."""
        return self.config.evaluation.every > 0 and self.match_games > 0

    def _make_match(self) -> Match:
        """Return the match of the settings.

        Raises:
          ValueError: all its games would be the same, or over before they begin.
        """
        evaluation, game = self.config.evaluation, self.game
        averages, moves = evaluation.average_symmetries, evaluation.temperature_moves
        turns = self.config.search.random_symmetry and not averages and game.num_symmetries > 1
        if moves == 0 and evaluation.random_plies == 0 and not turns:
            why = f"{game.name} without random symmetries"
            why = "evaluation.average-symmetries" if averages else why
            ungated = "--evaluation.no-gate " if evaluation.gate else ""
            raise ValueError(
                f"with {why} and evaluation.temperature-moves 0, all {self.match_games} games of a "
                "match would be the same: begin with random moves (--evaluation.random-plies 4), "
                f"or play no matches ({ungated}--evaluation.every 0)"
            )
        self._openings(1, 0)  # refused here, not when the match is due
        settings = match_settings(self.config)
        new_trees = make_new_trees(settings, game, settings.num_simulations)
        search = settings.build(game, match_leaf(self.config, game, self.network))
        return make_match(
            game,
            search,
            search,
            self.match_games,
            temperature_moves=moves,
            mesh=self.mesh,
            new_trees=(new_trees, new_trees),
        )

    def trace_match(self) -> Any:
        """Trace the matches of the run, so that errors show before they are due.

        Returns:
          jax.stages.Traced; None where the run has no matches.
        """
        if self._match is None:
            return None
        params = jax.eval_shape(self.fold, jax.eval_shape(self.network.init, jax.random.key(0)))
        return self._match.trace(params, params)

    def match(self, current: PyTree, opponent: PyTree, iteration: int) -> MatchResult:
        """Play the match between the variables of two players that is due after `iteration`
        iterations; return the result of `current`."""
        assert self._match is not None, "the run has no matches"
        key = jax.random.fold_in(iteration_key(self.config, iteration - 1), MATCH)
        openings = self._openings(-(-self.match_games // 2), iteration)
        return self._match(self.fold(current), self.fold(opponent), key, openings=openings).result

    def _openings(self, pairs: int, iteration: int) -> np.ndarray | None:
        """Return int32[pairs, plies]: the random moves that the pairs of a match begin with.

        Raises:
          ValueError: no game is that long.
        """
        plies = self.config.evaluation.random_plies
        if plies == 0:
            return None
        drawn = draw_openings(self.game, pairs, plies, (self.config.run.seed, iteration))
        return np.asarray([drawn[pair % len(drawn)] for pair in range(pairs)], np.int32)


def _are_equal(current: PyTree, opponent: PyTree) -> Array:
    """Return bool[]: whether all leaves of two trees are the same."""
    return jax.tree.reduce(jnp.logical_and, jax.tree.map(jnp.array_equal, current, opponent))


def iteration_key(config: Config, iteration: int) -> jax.Array:
    """Return the key of all draws of the iteration that follows the first `iteration` ones."""
    return jax.random.fold_in(jax.random.key(config.run.seed), FIRST_ITERATION + iteration)
