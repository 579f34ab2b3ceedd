"""The positions that the value network of AlphaGo (2016) learns from: one per self-play game, or
all of them for comparison.

Source: AG16 methods, 'Value network: training'. U is drawn uniformly from 1 to `last_random_move`;
moves 1 to U - 1 are the supervised policy's, move U any legal one, the others the policy's of
reinforcement learning; the position after move U is kept with the result. Games that end before
give no position. The paper warns against all positions of whole games: neighbouring positions share
their result, which the network then memorises.

Every shard is a function of (seed, its number), so an interrupted stage continues where it stopped.
"""

import functools
from typing import Literal, NamedTuple, cast

import jax
import numpy as np
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.data.records.recorded import pack_decorrelated, pack_whole
from azero.games.game import Game
from azero.games.go.sensible import random_points
from azero.players.alphago2016 import make_go
from azero.search.search import SearchFn
from azero.selfplay.policy_games import Decorrelated, make_decorrelated_games
from azero.selfplay.trajectory import Games, HostArray
from azero.settings import Config
from azero.train.alphago2016.config import ValueDataConfig
from azero.train.alphago2016.reinforce import make_policy_games, make_sampling_policy
from azero.types import PyTree


def draw_turns(settings: ValueDataConfig, num_points: int, number: int) -> HostArray:
    """Return U of all games of shard `number`, int32[games_per_shard], ascending."""
    random = np.random.default_rng([settings.seed, number])
    return np.sort(
        random.integers(1, settings.latest(num_points) + 1, settings.games_per_shard).astype(
            np.int32
        )
    )


class SelfPlayer(NamedTuple):
    """A policy network of 2016 and the settings of its run."""

    variables: PyTree
    config: Config


class MadeShard(NamedTuple):
    """The content of one shard."""

    rows: HostArray
    games: Games
    played: int
    """Games played."""


class ValueGames:
    """The compiled games of two policies."""

    def __init__(
        self,
        settings: ValueDataConfig,
        which: Literal["one", "all"],
        first: SelfPlayer,
        second: SelfPlayer,
        mesh: Mesh,
    ) -> None:
        """Build the programs; nothing is compiled yet. Games are played by `first` (the supervised
        policy) before the random move and by `second` (that of reinforcement learning) after it;
        `which` is one position of each game, or all positions of games of `second` alone.

        Raises:
          ValueError: the boards differ, a player is not a policy network of 2016, or the games do
            not divide over the devices.
        """
        mesh_lib.check_divides(settings.num_games, mesh, "value-data.num-games")
        self._settings, self._which = settings, which
        self.game = make_go(second.config.game)
        shape = make_go(first.config.game).board_shape
        if shape != self.game.board_shape:
            raise ValueError(
                f"the two policies are for boards of {shape} and {self.game.board_shape}"
            )
        (search, self._first), (other, self._second) = (
            sampler(player, mesh) for player in (first, second)
        )
        self._play_one = make_decorrelated_games(
            cast(Game, self.game), search, other, functools.partial(random_points, self.game), mesh
        )
        self._match, self._trace = make_policy_games(self.game, other, settings.num_games, mesh)

    @property
    def rows_per_position(self) -> int:
        """See `azero.data.records.dataset.Dataset`."""
        return self.game.num_frames if self._which == "one" else 1

    def make(self, number: int, most_positions: int) -> MadeShard:
        """Play the games of shard `number`; of whole games only as many as `most_positions` need
        are played, at least one batch."""
        if self._which == "one":
            return self._make_one(number)
        return self._make_all(number, most_positions)

    def _key(self, number: int, batch: int) -> jax.Array:
        return jax.random.fold_in(
            jax.random.fold_in(jax.random.key(self._settings.seed), number), batch
        )

    def _make_one(self, number: int) -> MadeShard:
        size = self._settings.num_games
        turns = draw_turns(self._settings, self.game.num_points, number)
        parts = [
            self._play_one(
                self._first,
                self._second,
                turns[batch * size : (batch + 1) * size],
                self._key(number, batch),
            )
            for batch in range(len(turns) // size)
        ]
        games = Decorrelated(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return MadeShard(*pack_decorrelated(games, number * len(turns)), played=len(turns))

    def _make_all(self, number: int, most_positions: int) -> MadeShard:
        size, positions = self._settings.num_games, 0
        parts: list[tuple[HostArray, Games]] = []
        first = number * self._settings.games_per_shard
        for batch in range(self._settings.games_per_shard // size):
            games = self._match(self._second, self._second, self._key(number, batch))
            rewards = np.where(games.a_moves_first, games.rewards, -games.rewards)
            parts.append(
                pack_whole(self._trace(games.actions), games.actions, rewards, first + batch * size)
            )
            positions += len(parts[-1][0])
            if positions >= most_positions:
                break
        rows, packed = zip(*parts, strict=True)
        return MadeShard(
            np.concatenate(rows),
            Games(*(np.concatenate(column) for column in zip(*packed, strict=True))),
            played=len(parts) * size,
        )


def sampler(player: SelfPlayer, mesh: Mesh) -> tuple[SearchFn, PyTree]:
    """Return a policy's own choice as a search, and its parameters on every device."""
    if player.config.network.name != "policy2016":
        raise ValueError(
            "games for the value network need policy networks of 2016, not a network "
            f"{player.config.network.name}"
        )
    game = make_go(player.config.game)
    network = player.config.network.build(game)
    params = jax.jit(network.fold, out_shardings=mesh_lib.replicated(mesh))(player.variables)
    return make_sampling_policy(game, network.infer), params
