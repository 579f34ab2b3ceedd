"""A player of random moves, as a baseline."""

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp

from azero.checkpoint import load_settings
from azero.experiment import NAMES, load
from azero.games.game import Game
from azero.games.settings import GameConfig
from azero.players.play_style import PlayStyle
from azero.players.thinking import Limits
from azero.players.tree_player import TreePlayer
from azero.search.batched.policy import make_policy
from azero.search.leaf import ignore_symmetry, uniform_leaf
from azero.search.search import SearchFn, SearchOutput
from azero.search.single.parallel import TreeSettings
from azero.settings import Config
from azero.types import Array, PyTree

FORM = '"random:EXPERIMENT or DIRECTORY"'
_STYLE = PlayStyle(limits=Limits(visits=0), temperature_moves=1 << 30)
"""Without visits every move is drawn from the policy of the leaf."""


@dataclass(frozen=True)
class RandomMovesSpec:
    """Uniformly random legal moves as a player."""

    source: str
    """An experiment, or the directory of a run or a checkpoint, whose game is played."""
    visits: int | None = 0
    """It does not search."""

    @property
    def name(self) -> str:
        """Its name in results."""
        return "random moves"

    @property
    def config(self) -> Config:
        """The settings of the experiment or of the directory.

        Raises:
          ValueError: there is no such experiment.
          CheckpointError: the directory has no checkpoint.
        """
        if self.source not in NAMES and Path(self.source).is_dir():
            return load_settings(Path(self.source))[1]
        return load(self.source).config

    def make_game(self, rules: GameConfig | None) -> Game:
        """Return the game of `rules`, or that of the spec where they are None."""
        return (self.config.game if rules is None else rules).build()


def make_random_moves(game: Game) -> SearchFn:
    """Make the search of many games at once whose action is any legal move; it has no
    parameters."""
    policy = make_policy(game, uniform_leaf(game))

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        output = policy(params, key, roots)
        action = jax.random.categorical(key, jnp.log(output.weights), axis=-1)
        return output._replace(action=action.astype(jnp.int32))

    return search


def load_random_moves(spec: RandomMovesSpec, rules: GameConfig | None, seed: int) -> TreePlayer:
    """Make the player for `rules`; None is the game of the spec.

    Raises:
      ValueError: there is no such experiment.
    """
    game = spec.make_game(rules)
    settings = TreeSettings(batch=1, symmetry="none", cache_size=0, keeps_tree=False)
    evaluator = settings.make_evaluator(game, ignore_symmetry(uniform_leaf(game)), ())
    return TreePlayer(game, evaluator, settings=settings, style=_STYLE, name=spec.name, seed=seed)
