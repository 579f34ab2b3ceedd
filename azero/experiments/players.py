"""Players by name: checkpoints of our runs, and programs that speak GTP."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

import jax

from azero.checkpoint import load_variables
from azero.config import Config, GameConfig
from azero.games import Game, make
from azero.networks import make_network
from azero.pipelines.loop import match_settings
from azero.search import SearchFn, make_search
from azero.search.leaf import network_leaf
from azero.search.policy import make_policy
from azero.types import PyTree

FORMS = '"checkpoint:WORKDIR?visits=64&iteration=100" or "gtp:PROGRAM ARGUMENTS"'


@dataclass(frozen=True)
class CheckpointSpec:
    """A checkpoint as a player."""

    workdir: Path
    iteration: int | None = None
    """None is the newest."""
    visits: int | None = None
    """Simulations per move; 0 is the raw policy, None is as in the run's matches."""

    @property
    def name(self) -> str:
        """How results call it."""
        parts = [self.workdir.name]
        parts += [] if self.iteration is None else [f"iteration {self.iteration}"]
        parts += [] if self.visits is None else [f"{self.visits} visits"]
        return ", ".join(parts)


@dataclass(frozen=True)
class GtpSpec:
    """A GTP program as a player."""

    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """How results call it."""
        return Path(self.command[0]).name


class Loaded(NamedTuple):
    """A checkpoint ready to play."""

    config: Config
    game: Game
    search: SearchFn
    params: PyTree
    """Inference parameters."""


def parse_player(text: str) -> CheckpointSpec | GtpSpec:
    """Return the player that `text` names.

    Raises:
      ValueError: it is not of one of the forms.
    """
    kind, _, rest = text.partition(":")
    if kind == "gtp" and rest.strip():
        return GtpSpec(tuple(shlex.split(rest)))
    if kind != "checkpoint" or not rest:
        raise ValueError(f"{text!r} is not a player; a player is {FORMS}")
    workdir, _, query = rest.partition("?")
    numbers: dict[str, int] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in ("iteration", "visits") or not value.isdigit():
            raise ValueError(f"{name}={value} in {text!r} is not understood; a checkpoint takes visits=NUMBER and iteration=NUMBER")
        numbers[name] = int(value)
    return CheckpointSpec(Path(workdir), **numbers)


def load_player(spec: CheckpointSpec, rules: GameConfig | None = None) -> Loaded:
    """Load a checkpoint as a player of its own game, or of `rules` (another komi).

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: there is no such directory.
    """
    if not spec.workdir.is_dir():
        raise ValueError(f"there is no directory {spec.workdir}")
    variables, config = load_variables(spec.workdir, spec.iteration)
    game_config = config.game if rules is None else rules
    game = make(game_config.name, **game_config.options())
    network = make_network(config.network, game.board_shape, game.num_planes, game.num_actions)
    leaf = network_leaf(game, network.infer, config.search.random_symmetry)
    settings = match_settings(config)
    if spec.visits == 0:
        search = make_policy(game, leaf)
    else:
        search = make_search(settings if spec.visits is None else dataclasses.replace(settings, num_simulations=spec.visits), game, leaf)
    return Loaded(config, game, search, jax.jit(network.fold)(variables))
